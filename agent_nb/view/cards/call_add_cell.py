"""An ended call of the tool `add_cell`: a cell that the model offers, and the button to insert it.

Other calls are folds; this one is open, because an offered cell in a closed fold is overlooked. A
press only chooses the cell; it is inserted when the run ends. The shown code is bounded
(`values.bound_text`); the button carries it whole.
"""

from __future__ import annotations

from msgspec import structs

from ..format import clip_text, find_icon, text_row
from ..nodes import Button, Buttons, Code, Node, Row, Stack, T
from ..state.cards import CallCard
from ..values import bound_text
from .base import Context

LONGEST_PURPOSE = 500  # characters
LONGEST_ADVICE = 80  # characters
INSERT = "Insert below"
CHOSEN = "✓ Inserted when the run ends"
HINT = (
    "The cell is inserted below this one when the run has ended well. A second press withdraws it."
)


def card(state: CallCard, context: Context) -> Node | None:
    """Return the offered cell; None if the call failed or has no code."""
    code, why = state.args.get("code"), state.args.get("why", "")
    if state.status != "ok" or not isinstance(code, str) or not code.strip():
        return None
    title = [
        T(f"{find_icon(state.name)} ", tone="muted", mono=True, label="Tool"),
        T("A cell for you", bold=True),
    ]
    if isinstance(why, str) and (purpose := clip_text(" ".join(why.split()), LONGEST_PURPOSE)):
        title.append(T(f"  {purpose}"))
    return Stack(
        (
            Row(tuple(title), wrap=True),
            Code(bound_text(code), "python", whole=True),
            *_button_or_advice(state, code, context),
        )
    )


def _button_or_advice(state: CallCard, code: str, context: Context) -> tuple[Node, ...]:
    """Return the button or, in a static view or where cells cannot be inserted, the advice.

    The advice is the text of the call's result. Without one, nothing is returned.
    """
    if not (context.live and context.inserting and context.can_click):
        advice = (state.display or {}).get("text/plain")
        return (text_row(clip_text(advice, LONGEST_ADVICE)),) if isinstance(advice, str) else ()
    button = Button("insert", INSERT, {"call_id": state.call_id, "code": code}, hint=HINT)
    if context.chosen == button.key:
        button = structs.replace(button, label=CHOSEN)
    return (Buttons((button,)),)
