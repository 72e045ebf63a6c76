"""The open block of text or reasoning of a turn.

`turn` decides which block is open, this file what the block contains. White space at the start of a
block is held back until other text follows.
"""

from __future__ import annotations

from io import StringIO
from typing import Any, Literal

from ..models import parts
from .clean_json import clean_value

BlockKind = Literal["respond", "think"]  # a text of the answer, or a thought


class TextBlock:
    """One block, which grows by `add`.

    `key`: the provider's name of the block. `space`: white space that is held back, at first what
    `Turn` held back before this block. `attributes` and `opaque`: see `parts.Thought`.
    `by_final_tool`: the text is a typed answer that came as arguments of the final tool
    (`typed.output_way`).
    """

    __slots__ = ("_text", "attributes", "by_final_tool", "id", "key", "kind", "opaque", "space")

    def __init__(self, kind: BlockKind, block_id: str, key: str, space: str = "") -> None:
        self.kind: BlockKind = kind
        self.id = block_id
        self.key = key
        self.space = space
        self.by_final_tool = False
        self.attributes: dict[str, Any] | None = None
        self.opaque: Any = None
        # not a list: an object for each token would take many times the memory of its letters
        self._text = StringIO()

    @property
    def text(self) -> str:
        """The text so far, without white space that is held back."""
        return self._text.getvalue()

    @property
    def empty(self) -> bool:
        """Whether the block yields no event: it has no text, no attributes, no opaque value."""
        return not (self._text.tell() or self.attributes or self.opaque is not None)

    def add(self, text: str) -> str:
        """Add text and return the text to show now, "" while only white space has come."""
        if not self._text.tell():
            text = self.space + text
            if not text or text.isspace():
                self.space = text
                return ""
            self.space = ""
        self._text.write(text)
        return text

    def merge_thought(self, part: parts.Thought) -> None:
        """Add a thought's attributes, of which the later count, and replace its opaque value."""
        if part.attributes:
            self.attributes = {**(self.attributes or {}), **clean_value(part.attributes)}
        if part.opaque is not None:
            self.opaque = part.opaque
