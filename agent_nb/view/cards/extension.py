"""Extensions of other protocols and events of newer versions: one quiet line that opens.

Why quiet: their content is made for programs, and people read it only when something is missing.
"""

from __future__ import annotations

from ..nodes import Node
from ..state.cards import NoteCard
from .base import Context
from .state import notes


def card(state: NoteCard, context: Context) -> Node:
    """Return consecutive events of this kind as one fold."""
    return notes(state, "extension", "⋯")
