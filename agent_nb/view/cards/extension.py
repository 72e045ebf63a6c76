"""An extension of another protocol, or an event of a newer version: one quiet line that opens."""

from __future__ import annotations

from ..nodes import Node
from ..state.cards import NoteCard
from .base import Context
from .state import notes


def card(state: NoteCard, context: Context) -> Node:
    """Return consecutive notes of this kind as one fold."""
    return notes(state, "extension", "⋯")
