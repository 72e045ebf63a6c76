"""The card of a text of the model: markdown that grows, or the value of a typed answer.

If the run asked for a type, text that begins as JSON is code until its event names the type: as
markdown, unfinished JSON would be garbled.
"""

from __future__ import annotations

from .. import typed_answer
from ..format import text_row
from ..nodes import Node, Stack
from ..state.cards import RespondCard
from .base import Context, prose


def card(state: RespondCard, context: Context) -> Node | None:
    """Return the text, and a remark if it was cut off; None for a text that ended empty."""
    if state.done and not len(state.text):
        return None
    parts: tuple[Node, ...]
    if state.typed:
        parts = typed_answer.answer_nodes(str(state.text), state.typed, state.field_order)
    elif state.is_json_code:
        parts = (typed_answer.json_code(str(state.text)),)
    else:
        parts = prose(state.text, context, growing=not state.done, key=state.key)
    cut = (text_row("The answer was cut off here.", "wait"),) if state.incomplete else ()
    return Stack((*parts, *cut)) if len(parts) + len(cut) > 1 else parts[0]
