"""A block of the answer: markdown, as it streams."""

from __future__ import annotations

from ..cardstates import RespondCard
from ..nodes import Node, Prose, Row, Stack, T
from .base import Context


def card(state: RespondCard, context: Context) -> Node | None:
    """Return the text, and a remark if it was cut off."""
    if state.done and not len(state.text):
        return None
    prose = Prose(state.text, open=not state.done, key=state.key)
    if not state.incomplete:
        return prose
    return Stack((prose, Row((T("The answer was cut off here.", tone="wait"),))))
