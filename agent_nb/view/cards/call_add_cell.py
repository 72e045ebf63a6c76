"""An ended call of the tool `add_cell`: a cell that the model offers, and the button to insert it.

Other calls are folds; this one is open, because an offer in a closed fold is overlooked.

Rules
- The code is text from a model: it is escaped, bounded (`values.bounded`) and never run from here.
- The button exists while the run goes on; the chosen cell is inserted when the run ends.
"""

from __future__ import annotations

from msgspec import structs

from ..format import clip_text, icon, text_row
from ..nodes import Button, Buttons, Code, Node, Row, Stack, T
from ..state.cards import CallCard
from ..values import bounded
from .base import Context

INSERT = "Insert below"
CHOSEN = "✓ Inserted when the run ends"
HINT = (
    "The cell is inserted below this one when the run has ended well. A second press withdraws it."
)


def card(state: CallCard, context: Context) -> Node | None:
    """Return an offered cell; None if the call failed or holds no code."""
    code, why = state.args.get("code"), state.args.get("why", "")
    if state.status != "ok" or not isinstance(code, str) or not code.strip():
        return None
    purpose = clip_text(" ".join(why.split()), 500) if isinstance(why, str) else ""
    head = (
        T(f"{icon(state.name)} ", tone="muted", mono=True, label="Tool"),
        T("A cell for you", bold=True),
    )
    return Stack(
        (
            Row((*head, *((T(f"  {purpose}"),) if purpose else ())), wrap=True),
            Code(bounded(code), "python", whole=True),
            *_below(state, code, context),
        )
    )


def _below(state: CallCard, code: str, context: Context) -> tuple[Node, ...]:
    """Return the button; where it cannot work, the line that says how to get the cell."""
    if not (context.live and context.inserting and context.can_click):
        advice = (state.display or {}).get("text/plain")
        return (text_row(clip_text(advice, 80)),) if isinstance(advice, str) else ()
    button = Button("insert", INSERT, {"call_id": state.call_id, "code": code}, hint=HINT)
    chosen = context.chosen == button.key
    return (Buttons((structs.replace(button, label=CHOSEN) if chosen else button,)),)
