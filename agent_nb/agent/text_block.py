"""The open block of text or reasoning of a turn.

Why apart from `turn`: that file decides which block is open, this one what the block contains.

Rule: white space at the start of a block is held back until other text follows.
"""

from __future__ import annotations

from io import StringIO
from typing import Any, Literal

from ..models import parts
from .clean_json import clean_value

Kind = Literal["respond", "think"]


class TextBlock:
    """One block, which grows by `add`.

    `key`: the provider's name of the block. `held`: white space that is held back. `attributes` and
    `opaque`: further values of a thought (`parts.Thought`). `by_final_tool`: the text is a typed
    answer that came as arguments of the final tool (`typed.output_way`).
    """

    __slots__ = ("_text", "attributes", "by_final_tool", "held", "id", "key", "kind", "opaque")

    def __init__(self, kind: Kind, block_id: str, key: str, held: str = "") -> None:
        self.kind: Kind = kind
        self.id = block_id
        self.key = key
        self.held = held
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
        """True if the block yields no event: no text and, in a thought, no other values."""
        has_values = self.kind == "think" and (self.opaque is not None or self.attributes)
        return not (self._text.tell() or has_values)

    def add(self, text: str) -> str:
        """Add text and return the text to show now, "" while only white space has come."""
        if not self._text.tell():
            text = self.held + text
            if not text or text.isspace():
                self.held = text
                return ""
            self.held = ""
        self._text.write(text)
        return text

    def complete(self, part: parts.Thought) -> None:
        """Take over the attributes and the opaque value of a thought."""
        if part.attributes:
            self.attributes = {**(self.attributes or {}), **clean_value(part.attributes)}
        if part.opaque is not None:
            self.opaque = part.opaque
