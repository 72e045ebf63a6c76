"""Extensions of other protocols and events of newer versions: one muted line that opens.

Why muted: their payloads are made for programs, and people read them only when something is
missing.
"""

from __future__ import annotations

from ..format import clip_text, count_noun, text_row
from ..nodes import Fold, Json, Node, Row, T
from ..state.cards import NoteCard
from .base import Context
from .state import LONGEST_NAMES, MOST_EVENTS, count_left_out


def card(state: NoteCard, context: Context) -> Node:
    """Return consecutive events as a fold: their number and names, and each payload below."""
    names = ", ".join(dict.fromkeys(title for title, _ in state.items))
    size = count_noun(len(state.items), "extension event")
    line = (
        T(f"⋯ {size}", tone="muted"),
        T(f"  {clip_text(names, LONGEST_NAMES)}", tone="muted"),
    )
    body: list[Node] = []
    for title, payload in state.items[:MOST_EVENTS]:
        body += [text_row(title), Json(payload)]
    return Fold((Row(line),), (*body, *count_left_out(state)), title=f"{size}: {names}")
