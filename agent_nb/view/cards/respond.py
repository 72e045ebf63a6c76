"""A text of the model: markdown, as it streams."""

from __future__ import annotations

from ..nodes import Node, Row, Stack, T
from ..state.cards import RespondCard
from .base import Context, prose


def card(state: RespondCard, context: Context) -> Node | None:
    """Return the text, and a remark if it was cut off."""
    if state.done and not len(state.text):
        return None
    told = prose(state.text, context, growing=not state.done, key=state.key)
    cut = (Row((T("The answer was cut off here.", tone="wait"),)),) if state.incomplete else ()
    return Stack((*told, *cut)) if len(told) + len(cut) > 1 else told[0]
