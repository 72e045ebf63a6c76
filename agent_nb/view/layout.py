"""The page of a run: header, prompt, panels of steps, answers, footer, as nodes with stable keys.

Why one file: the static page and the live view cannot differ. Consecutive steps (thoughts, calls,
notes) form one panel; an unchanged card yields the identical node, since a redraw compares
identities.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from msgspec import structs

from .cards.base import Context, draw
from .folds import Folds
from .nodes import Node, Page, Panel, Row, Section, Step, Tone
from .state.cards import CallCard, Card, ErrorCard, NodeCard, RetryCard
from .state.fold import RunView

# kinds of cards that stand outside panels (a soft error, though, is a step)
OUTSIDE = frozenset({"user", "respond", "error", "interrupt"})


class Layout:
    """Arranges one view again and again, reusing the nodes of what has not changed."""

    def __init__(self) -> None:
        # key of a card, a panel or the header: what its node depends on, and the node
        self._drawn: dict[str, tuple[object, Node | None]] = {}
        self.folds = Folds()

    def page(self, view: RunView, context: Context | None = None) -> Page:
        """Return the current page of `view`."""
        context = context or Context()
        header = self._draw_header(view, context)
        sections = [Section("header", header)] if header else []
        steps: list[Step] = []
        pairs = [(c, node) for c in view.cards if (node := self._draw_card(c, context)) is not None]
        now = context.now if view.running else None
        for card, node in self.folds.apply(pairs, context.folds, now):
            if card.kind in OUTSIDE and not (isinstance(card, ErrorCard) and card.soft):
                sections += self._make_panel(steps)
                steps = []
                sections.append(Section(card.key, node))
            else:
                steps.append(Step(card.key, node, step_tint(card)))
        sections += self._make_panel(steps)
        footer = draw(view, context, "footer")
        sections.extend((Section("footer", footer),) if footer else ())
        return Page(_page_label(view, context), tuple(sections))

    def _draw_card(self, card: Card, context: Context) -> Node | None:
        ticks = isinstance(card, CallCard | NodeCard | RetryCard) and not card.done
        second = _whole_second(context) if ticks else None
        # `Folds` opens and closes cards after they are drawn
        depends_on = (card.version, structs.replace(context, now=second, folds={}))
        return self._reuse(card.key, depends_on, lambda: draw(card, context))

    def _draw_header(self, view: RunView, context: Context) -> Node | None:
        """Return the header; if only figures changed, the last one until the second is over."""
        node = draw(view, context, "header")
        if not isinstance(node, Row) or context.now is None:
            return node
        depends_on = (
            _whole_second(context),
            tuple(t.text for t in node.left),  # `node.right` has the figures
            tuple((b.key, b.label, b.enabled) for b in node.buttons),
        )
        return self._reuse("header", depends_on, lambda: node)

    def _make_panel(self, steps: list[Step]) -> list[Section]:
        """Return a section with the steps, [] if none; an unchanged panel is reused."""
        if not steps:
            return []
        key, children = f"panel-{steps[0].key}", tuple(s.child for s in steps)
        panel = self._reuse(key, children, lambda: Panel(tuple(steps)))
        return [Section(key, panel)] if panel else []

    def _reuse(self, key: str, depends_on: object, make: Callable[[], Node | None]) -> Node | None:
        """Return the node that was made for `key` last, a new one if what it depends on changed."""
        if key not in self._drawn or self._drawn[key][0] != depends_on:
            self._drawn[key] = (depends_on, make())
        return self._drawn[key][1]


def page(view: RunView, context: Context | None = None) -> Page:
    """Return the page of a view that is drawn only once."""
    return Layout().page(view, context)


def step_tint(card: Card) -> Tone:
    """Return the tint of a step that runs, waits or reports a passing failure; "" for others."""
    if isinstance(card, ErrorCard) or (isinstance(card, RetryCard) and not card.done):
        return "wait"
    if isinstance(card, NodeCard):
        return "" if card.done else "run"
    tones: dict[str, Tone] = {"running": "run", "waiting": "wait"}
    return tones.get(card.status, "") if isinstance(card, CallCard) else ""


def _page_label(view: RunView, context: Context) -> str:
    """Return the name and the status of the view for assistive technology."""
    may_be_over = view.running and context.still and not context.alive
    status = "unfinished" if may_be_over else view.status or "starting"
    name = f"Agent run with {view.model}" if view.model else "Agent run"
    return f"{name}: {status}"


def _whole_second(context: Context) -> int | None:
    return None if context.now is None else math.floor(context.now)
