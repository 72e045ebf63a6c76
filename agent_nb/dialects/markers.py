"""The base parser of the text dialects: text with markers, in any chunking, becomes parts.

`<think>Add.</think>It is 4.` becomes Thought("Add."), Close, Text("It is 4."), Close. Every dialect
must hold back the same text, close blocks at the same points and end a cut stream in the same way.
Thought tags are read here too: they count only outside the blocks of the dialect, and only its
parser knows where a block is open.

Rules
- A mode is a method that consumes what it can of the buffer (`turn_buffer`) and sets the next
  `_mode`. A mode that leaves `_mode` unchanged needs more text. The modes here are `_read_lead`,
  then `_read_text`; both go to `_read_tag` and `_read_thought`, which come back.
- Leading thought tags count until the first visible character; a marker of the dialect is visible.
- White space around markers belongs to the adjacent text, unless the dialect skips it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ..models import Fault, Part, Text, Thought
from .fences import Fences
from .scanner import find_marker_start
from .tags import TagReader, ThoughtTags, markers_with_tags
from .text_parts import TextParts
from .turn_buffer import TurnBuffer

Mode = Callable[[], None]
Handler = Callable[["re.Match[str]"], None]
# white space, and marks that no reader sees: a byte order mark, zero-width spaces and joiners
_invisible = re.compile("[\\s\ufeff\u200b-\u200d\u2060]*").match
_white_space = re.compile(r"\s*").match
LONGEST_QUOTE = 64 * 1024  # characters that a fault quotes of an oversized block or a forged line


class MarkerParser:
    """Reads text with thought tags; dialects add their markers.

    `pattern`: a regular expression whose named groups are the markers; `markers`: their texts (see
    `scanner.Markers`). `last`: the pattern for the end of the stream, if it differs. `fold`: the
    letter case of markers is ignored. A subclass adds to `_handlers`, by the name of the group, a
    method that moves `_buffer.pos` past the marker.
    """

    def __init__(
        self,
        pattern: str,
        markers: tuple[str, ...],
        tags: ThoughtTags,
        *,
        last: str = "",
        fold: bool = False,
    ) -> None:
        self.stopped = False
        self._markers = markers_with_tags(pattern, markers, tags.anywhere, fold=fold)
        self._final_markers = markers_with_tags(last or pattern, markers, tags.anywhere, fold=fold)
        # None: a visible character has come, so leading tags no longer count
        self._leading_markers = markers_with_tags("", (), tags.leading) if tags.leading else None
        # "<" also begins the closing tag of a thought
        self._sigils = tuple({"<", *self._markers.sigils})  # a tuple is iterated faster than a set
        self._handlers: dict[str, Handler] = {"tag": self._begin_tag}
        self._buffer = TurnBuffer()
        self._parts = TextParts(Fences() if tags.anywhere else None)
        self._mode: Mode = self._read_text if self._leading_markers is None else self._read_lead
        # makes a part of text without a sigil, which continues the open block; None: modes read it
        self._make_delta: Callable[[str], Part] | None = None
        self._final = self._cut = False  # the stream has ended; the model was stopped (`close`)
        self._tag: TagReader | None = None  # reads the opening tag of a thought
        self._closing = ""  # the closing tag of the open thought or of a block of the dialect
        self._block_offset = 0  # where a block of the dialect begins in the turn

    def feed(self, text: str) -> Sequence[Part]:
        """Return the parts that `text` completes."""
        make_delta = self._make_delta
        if make_delta is None or not text:
            return self._advance(text)
        for sigil in self._sigils:
            if sigil in text:
                return self._advance(text)
        self._buffer.offset += len(text)
        return (make_delta(text),)

    def close(self, *, cut: bool = False) -> Sequence[Part]:
        """End the stream: flush held text and close open blocks (see `base`)."""
        self._final, self._cut, self._markers = True, cut, self._final_markers
        out = self._advance("")
        self._parts.close_block()
        self.stopped = True
        return [*out, *self._parts.take_pending()]

    def _advance(self, text: str) -> list[Part]:
        """Run modes over the buffer and `text`, until they need more; return the parts."""
        if self.stopped:
            return []
        buffer = self._buffer
        buffer.text += text
        mode: Mode | None = None
        while self._mode != mode and not self.stopped:
            mode = self._mode
            mode()
        buffer.discard_consumed()
        is_held = buffer.in_block or bool(buffer.text) or self._mode == self._read_lead
        needs_modes = is_held or self.stopped or not self._parts.is_open
        self._make_delta = None if needs_modes else self._parts.delta_maker
        return self._parts.take_pending()

    def _take_block(self, end: int, mode: Mode) -> str:
        """Return the text of the open block up to `end`; continue there in `mode`."""
        self._mode = mode
        return self._buffer.take_block(end)

    def _read_lead(self) -> None:
        """Mode: before the first visible character of the turn, where leading tags count."""
        assert self._leading_markers is not None
        buffer, text = self._buffer, self._buffer.text
        self._emit_to(_invisible(text, buffer.pos).end())  # type: ignore[union-attr]  # the pattern matches everywhere
        if (pos := buffer.pos) == len(text):
            return
        if marker := self._leading_markers.match(text, pos):
            self._begin_tag(marker)
        # what follows can no longer become a leading tag
        elif self._leading_markers.find_start(text, pos) != pos or not self._is_held(pos):
            self._end_lead()

    def _end_lead(self) -> None:
        self._leading_markers = None
        self._mode = self._read_text

    def _read_text(self) -> None:
        """Mode: text up to the next marker, or to what may be the start of one."""
        buffer, text, mode = self._buffer, self._buffer.text, self._mode
        while marker := self._markers.search(text, buffer.pos):
            self._emit_to(marker.start())
            self._handlers[marker.lastgroup or ""](marker)
            if self._mode != mode or self.stopped:
                return
        self._emit_before(self._markers.find_start(text, buffer.pos))

    def _is_held(self, start: int) -> bool:
        """Return whether the possible marker at `start` waits for more, or is dropped at a cut."""
        # a lone sigil is more likely text
        return not self._final or (self._cut and start < len(self._buffer.text) - 1)

    def _emit_before(self, start: int) -> None:
        """Consume the text up to `start`, where a marker may begin, or all text at the end."""
        self._emit_to(start if self._is_held(start) else len(self._buffer.text))

    def _emit_to(self, end: int) -> None:
        """Consume the text up to `end`, which belongs to the block."""
        self._parts.emit_text(self._buffer.text[self._buffer.pos : end])
        self._buffer.pos = end

    def _stop(self, match: re.Match[str], part: Part) -> None:
        """End the turn with `part`, after its marker."""
        self._parts.close_block()
        self._parts.add(part)
        self._buffer.pos = match.end()
        self.stopped = True

    def _report_fault(self, kind: str, message: str, raw: str) -> None:
        """Report text that the dialect forbids; the model reads `message` in its next turn."""
        self._parts.add(Fault(kind, message, raw, self._block_offset, feedback=True))

    def _give_up(self, block: str, largest: int, raw: str) -> None:
        """Report a block of more than `largest` characters, and stop reading the turn."""
        message = f"A {block} is larger than {largest} characters; the turn was given up there."
        self._parts.add(Fault("limit", message, raw[:LONGEST_QUOTE], self._block_offset))
        self.stopped = True

    def _skip_white_space(self) -> None:
        buffer = self._buffer
        buffer.pos = _white_space(buffer.text, buffer.pos).end()  # type: ignore[union-attr]  # the pattern matches everywhere

    def _begin_thought(
        self, end: int, closing: str, attributes: dict[str, Any] | None = None
    ) -> None:
        """Begin a thought after its opening tag, which ends at `end`; `closing` ends it."""
        self._parts.begin_block(Thought, attributes)
        self._buffer.pos = end
        self._closing = closing
        self._mode = self._read_thought

    def _read_thought(self) -> None:
        """Mode: reasoning up to its closing tag; other markers are text."""
        text, pos = self._buffer.text, self._buffer.pos
        end = text.find(self._closing, pos)
        if end >= 0:
            self._emit_to(end)
            self._buffer.pos += len(self._closing)
            self._end_thought()
            return
        self._emit_before(find_marker_start(text, pos, self._closing))
        if self._final:
            self._parts.close_block(incomplete=True)

    def _end_thought(self) -> None:
        self._parts.begin_block(Text)
        self._mode = self._read_text if self._leading_markers is None else self._read_lead

    def _begin_tag(self, match: re.Match[str]) -> None:
        """Handle what looks like the opening tag of a thought."""
        if self._parts.part_type is Thought or self._parts.is_in_fence:
            self._emit_to(match.end())
            return
        self._tag = TagReader(match["tag"])
        self._closing = f"</{match['tag']}>"
        self._mode = self._read_tag

    def _read_tag(self) -> None:
        """Mode: the opening tag of a thought, with its attributes."""
        assert self._tag is not None
        end = self._tag.read(self._buffer.text, self._buffer.pos)
        if end is None and self._is_held(self._buffer.pos):
            return
        if end is None or end < 0:
            # not a tag: its "<" is text, and visible, so no leading tag can follow
            self._emit_to(self._buffer.pos + 1)
            self._end_lead()
            return
        thought, attributes = self._tag.split_thought()
        self._begin_thought(end, self._closing, attributes)
        if thought:
            self._parts.emit_text(thought)
            # the text between the tags is another thought
            self._parts.close_block()
        if self._tag.is_empty:
            self._end_thought()
