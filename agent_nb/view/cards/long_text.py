"""A text of a card as markdown; the middle of a very long one is left out of a saved page.

Why: front ends do not open a page of several megabytes.
"""

from __future__ import annotations

from ..format import count_noun, text_row
from ..nodes import Node, Prose
from ..state.text import Text
from .base import Context

LONGEST = 400_000  # characters of one text in a saved page


def draw_long_text(
    text: Text, context: Context, *, growing: bool, dim: bool = False, key: str = ""
) -> tuple[Node, ...]:
    """Return one node, or three: the head, the size of what is left out, and the tail.

    `growing` is `Prose.open`; `dim`, `key`: see `Prose`.
    """
    if context.live or len(text) <= LONGEST:
        return (Prose(text, open=growing, dim=dim, key=key),)
    full_text, half_length = str(text), LONGEST // 2
    head, tail = full_text[:half_length], full_text[-half_length:]
    # cut between paragraphs where possible
    head = head.rpartition("\n\n")[0] or head
    tail = tail.partition("\n\n")[2] or tail
    left_out = count_noun(len(full_text) - len(head) - len(tail), "character")
    return (
        Prose(Text(head), dim=dim, key=key),
        text_row(
            f"… {left_out} left out here; the run and its record have the whole text.", "wait"
        ),
        Prose(Text(tail), dim=dim, key=f"{key}…"),
    )
