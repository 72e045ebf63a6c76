"""What another protocol or a later version said and this one has no word for: one quiet line that
opens.
"""

from __future__ import annotations

from ..nodes import Node
from ..state.cards import NoteCard
from .base import Context
from .state import notes


def card(state: NoteCard, context: Context) -> Node:
    """Return the notes of this kind in a row as one fold."""
    return notes(state, "extension", "⋯")
