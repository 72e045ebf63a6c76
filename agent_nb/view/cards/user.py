"""The user's prompt: one line, which opens if the prompt is longer.

Why so short: in a notebook the prompt stands in the cell above.

Rules
- A prompt that is empty or only repeats the cell above is not shown, unless it has attachments.
- The line has the text before the first block of code, or all if the prompt begins with code.
"""

from __future__ import annotations

from itertools import takewhile

from ..format import clip_text, count_noun
from ..nodes import Fold, Node, Pre, Row, Stack, T
from ..state.cards import UserCard
from ..values import bounded, pictures
from .base import Context

LINE = 140  # characters


def card(state: UserCard, context: Context) -> Node | None:
    """Return the prompt as a line, or as a fold if it is long or has attachments."""
    lines = state.text.strip().splitlines()
    repeats_cell = not lines or state.text.strip() == context.above.strip()
    if repeats_cell and not state.attachments:
        return None
    before_code = list(takewhile(lambda line: not line.lstrip().startswith("```"), lines)) or lines
    left = (
        T("❯ ", tone="muted", label="You:"),
        T(clip_text(" ".join(before_code), LINE), tone="muted"),
    )
    images = pictures(state.attachments)
    if len(lines) <= 1 and len(state.text) <= LINE and not images:
        return Row(left)
    body = (*((Pre(bounded(state.text)),) if lines else ()), *images)
    size = "prompt" if len(lines) <= 1 else count_noun(len(lines), "line")
    count = sum(str(a.get("media_type", "")).startswith("image/") for a in state.attachments)
    images_too = f", {count_noun(count, 'picture')}" if count else ""
    title = (T(size + images_too, tone="muted"),)
    fold = Fold((Row(left, title),), body, title=clip_text(state.text, LINE))
    return Stack((fold,))
