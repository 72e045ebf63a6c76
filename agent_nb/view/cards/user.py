"""The user's prompt: one line, which opens if the prompt is longer."""

from __future__ import annotations

from itertools import takewhile

from ..format import clip_text, count_noun
from ..nodes import Fold, Node, Pre, Row, T
from ..state.cards import UserCard
from ..values import bound_text, draw_attachments
from .base import Context

LONGEST_LINE = 140  # characters


def card(state: UserCard, context: Context) -> Node | None:
    """Return the prompt as a line or a fold, None if it only repeats the cell above."""
    lines = state.text.strip().splitlines()
    repeats_cell = not lines or state.text.strip() == context.above.strip()
    if repeats_cell and not state.attachments:
        return None
    before_code = list(takewhile(lambda line: not line.lstrip().startswith("```"), lines)) or lines
    left = (
        T("❯ ", tone="muted", label="You:"),
        T(clip_text(" ".join(before_code), LONGEST_LINE), tone="muted"),
    )
    shown_attachments = draw_attachments(state.attachments)
    if len(lines) <= 1 and len(state.text) <= LONGEST_LINE and not shown_attachments:
        return Row(left)
    body = (*((Pre(bound_text(state.text)),) if lines else ()), *shown_attachments)
    size = "prompt" if len(lines) <= 1 else count_noun(len(lines), "line")
    images = sum(str(a.get("media_type", "")).startswith("image/") for a in state.attachments)
    right = T(f"{size}, {count_noun(images, 'picture')}" if images else size, tone="muted")
    return Fold((Row(left, (right,)),), body, title=clip_text(state.text, LONGEST_LINE))
