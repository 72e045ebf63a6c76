"""Snapshots, updates and checkpoints of somebody's state: one quiet line that opens."""

from __future__ import annotations

from ..cardstates import NoteCard
from ..nodes import Fold, Json, Node, Row, T
from ..words import clip, plural
from .base import Context

SHOWN = 50


def card(state: NoteCard, context: Context) -> Node:
    """Return the notes of this kind in a row as one fold."""
    return notes(state, "state", "⟳")


def notes(state: NoteCard, noun: str, mark: str) -> Node:
    """Return gathered notes as a fold: how many, of what names, and each payload."""
    names = list(dict.fromkeys(title for title, _ in state.items))
    said = plural(len(state.items), f"{noun} event")
    left = (T(f"{mark} {said}", tone="muted"), T(f"  {clip(', '.join(names), 100)}", tone="muted"))
    body = tuple(part for title, payload in state.items[:SHOWN] for part in (Row((T(title, tone="muted"),)), Json(payload)))
    more = (Row((T(f"… {plural(len(state.items) - SHOWN, 'more')}", tone="muted"),)),) if len(state.items) > SHOWN else ()
    return Fold((Row(left),), (*body, *more), title=f"{said}: {', '.join(names)}")
