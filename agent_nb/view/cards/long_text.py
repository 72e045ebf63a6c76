"""A markdown text of a card; of a very long one, a saved page shows the head and the tail.

Why: front ends do not open a page of several megabytes.
"""

from __future__ import annotations

from msgspec import structs

from ..format import count_noun, text_row
from ..nodes import Node, Prose
from ..state.text import Text
from .base import Context

LONGEST = 400_000  # characters of one text in a saved page


def shorten_prose(node: Prose, context: Context) -> tuple[Node, ...]:
    """Return the node, or three: the head, the size of what is left out, and the tail."""
    if context.live or len(node.text) <= LONGEST:
        return (node,)
    text, half_length = str(node.text), LONGEST // 2
    head, tail = text[:half_length], text[-half_length:]
    # cut between paragraphs where possible
    head = head.rpartition("\n\n")[0] or head
    tail = tail.partition("\n\n")[2] or tail
    left_out = count_noun(len(text) - len(head) - len(tail), "character")
    return (
        structs.replace(node, text=Text(head), open=False),
        text_row(
            f"… {left_out} left out here; the run and its record have the whole text.", "wait"
        ),
        structs.replace(node, text=Text(tail), open=False, key=f"{node.key}…"),
    )
