"""Turns the text of blocks into parts: deltas of an answer or of a thought, and the Close of each.

The parser (`markers`) decides where a block begins and ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..models import Close, Part, Text, Thought
from .fences import Fences


class TextParts:
    """Collects the parts of one turn; `fences` follows its answer, for `is_in_fence`."""

    def __init__(self, fences: Fences | None) -> None:
        self.pending: list[Part] = []  # parts that `take_pending` has not returned yet
        self.part_type: type[Text] | type[Thought] = Text  # what text becomes now
        self.is_open = False  # a part of `part_type` was made, and its Close is due
        self._fences = fences
        self._attributes: dict[str, Any] | None = None  # for the next Thought

    @property
    def is_in_fence(self) -> bool:
        """Whether the next character is inside a code fence, where thought tags do not count."""
        return self._fences is not None and self._fences.inside

    def begin_block(
        self, part_type: type[Text] | type[Thought], attributes: dict[str, Any] | None = None
    ) -> None:
        """Close the open block; from now on text becomes parts of `part_type`."""
        self.close_block()
        self.part_type, self._attributes = part_type, attributes

    def emit_text(self, text: str) -> None:
        """Add a part of the block for `text`, unless it is empty."""
        if not text:
            return
        self.is_open = True
        if self._attributes is not None:
            self.pending.append(Thought(text, attributes=self._attributes))
            self._attributes = None
        else:
            self.pending.append(self.make_delta(text))

    def make_delta(self, text: str) -> Text | Thought:
        """Return a part that continues the open block with `text`, without collecting it."""
        if self._fences is not None and self.part_type is Text:
            self._fences.feed(text)
        return self.part_type(text)

    @property
    def delta_maker(self) -> Callable[[str], Part]:
        """The quickest maker of deltas: the class of the part itself if no fence is followed."""
        is_followed = self._fences is not None and self.part_type is Text
        return self.make_delta if is_followed else self.part_type

    def add(self, *parts: Part) -> None:
        """Add parts that are not text."""
        self.pending += parts

    def close_block(self, *, incomplete: bool = False) -> None:
        """Close the block, if a part of it was made."""
        if self.is_open:
            self.pending.append(Close(incomplete=incomplete))
        self.is_open, self._attributes = False, None

    def take_pending(self) -> list[Part]:
        """Return the parts since the last call."""
        parts, self.pending = self.pending, []
        return parts
