"""Extensions of other protocols and events of newer versions: one muted line that opens."""

from __future__ import annotations

from ..format import text_row
from ..nodes import Json, Node
from ..state.cards import NoteCard
from .base import Context
from .state import MOST_EVENTS, draw_group


def card(state: NoteCard, context: Context) -> Node:
    """Return consecutive events as a fold: their number and names, and each payload below."""
    names = (title for title, _ in state.items)
    body: list[Node] = []
    for title, payload in state.items[:MOST_EVENTS]:
        body += [text_row(title), Json(payload)]
    return draw_group(state, "⋯", "extension event", names, body)
