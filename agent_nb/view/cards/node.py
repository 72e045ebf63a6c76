"""A span (a sub-agent's run or a node of a foreign graph) with its own cards inside.

Why a fold: a sub-agent may have more cards than the run around it. Charts inside are moved below
the fold, because a front end draws only those outside folds.
"""

from __future__ import annotations

from msgspec import structs

from ..format import count_noun, draw_status, format_duration
from ..nodes import Fold, Node, Panel, Row, Stack, Step, T
from ..parts import separate_charts
from ..state.cards import CallCard, CardList, NodeCard
from .base import Context, shown


def card(state: NodeCard, context: Context) -> Node | None:
    """Return the span as a fold around its cards; None if it went well and has no cards.

    While the span runs in the live view, its cards stand below its line, without a fold.
    """
    status = _status(state)
    if status == "ok" and not state.inside.cards:
        return None
    duration = format_duration(state.seconds) if state.done and state.seconds else ""
    left = (
        T("◇ ", tone="muted", mono=True, label="Node"),
        T(state.name or "node", bold=True, mono=True),
    )
    remark = state.result if status == "error" else count_noun(state.inside.events, "event")
    row = Row((*left, T(f"  {remark}", tone="muted")), draw_status(status, duration))
    panels = steps(state.inside, context)
    if not state.done and context.live:
        return Stack((row, *panels))
    panels, charts = separate_charts(panels)
    fold = Fold((row,), panels, open=status == "error", title=f"{state.name}: {status}")
    return Stack((fold, *charts)) if charts else fold


def _status(state: NodeCard) -> str:
    if not state.done:
        return "running"
    if state.left:
        return "left"
    return "ok" if state.result in {"", "ok"} else "error"


def nested(call: CallCard, context: Context) -> tuple[Node, ...]:
    """Return the runs inside a call, one after the other.

    A prompt that repeats the longest text among the call's arguments is not shown again.
    """
    texts = (text for text in call.args.values() if isinstance(text, str))
    inside_call = structs.replace(context, above=max(texts, key=len, default=""))
    return tuple(part for view in call.children for part in steps(view, inside_call))


def steps(view: CardList, context: Context) -> tuple[Node, ...]:
    """Return the cards of a nested view as one panel."""
    nested_context = structs.replace(context, nested=True)
    rows = tuple(Step(card.key, node) for card, node in shown(view.cards, nested_context))
    return (Panel(rows),) if rows else ()
