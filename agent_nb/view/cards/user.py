"""The user's prompt: one line, which opens if the prompt is longer.

Why so short: in a notebook the prompt stands in the cell above.

Rules
- A prompt that is empty or only repeats the cell above is not shown, unless it has attachments.
- The line has the text before the first block of code, or all if the prompt begins with code.
"""

from __future__ import annotations

from itertools import takewhile

from ..format import clip_text, count_noun
from ..nodes import Fold, Node, Pre, Row, T
from ..state.cards import UserCard
from ..values import bounded, pictures
from .base import Context

LONGEST_LINE = 140  # characters


def card(state: UserCard, context: Context) -> Node | None:
    """Return the prompt as a line, or as a fold if it is long or has attachments."""
    lines = state.text.strip().splitlines()
    repeats_cell = not lines or state.text.strip() == context.above.strip()
    if repeats_cell and not state.attachments:
        return None
    before_code = list(takewhile(lambda line: not line.lstrip().startswith("```"), lines)) or lines
    left = (
        T("❯ ", tone="muted", label="You:"),
        T(clip_text(" ".join(before_code), LONGEST_LINE), tone="muted"),
    )
    shown_attachments = pictures(state.attachments)
    if len(lines) <= 1 and len(state.text) <= LONGEST_LINE and not shown_attachments:
        return Row(left)
    body = (*((Pre(bounded(state.text)),) if lines else ()), *shown_attachments)
    size = "prompt" if len(lines) <= 1 else count_noun(len(lines), "line")
    images = sum(str(a.get("media_type", "")).startswith("image/") for a in state.attachments)
    right = T(f"{size}, {count_noun(images, 'picture')}" if images else size, tone="muted")
    return Fold((Row(left, (right,)),), body, title=clip_text(state.text, LONGEST_LINE))
