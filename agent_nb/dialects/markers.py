"""The base parser of the text dialects: text with markers, in any chunking, becomes parts.

Why shared: every dialect must hold back the same text, close blocks at the same points and end a
cut stream in the same way. Thought tags (`<think>`) are read here too, because they count only
outside the blocks of the dialect, and only the dialect's parser knows where a block is open.

Rules
- A parser is a set of modes: methods that consume what they can of the buffer (`_buf` from `_pos`)
  and set the next `_mode`. A mode that leaves `_mode` unchanged needs more text.
- Plain text in an open block costs one search for each sigil (the first character of a marker), and
  is returned unchanged by the same call. Only a search for code fences (`anywhere` tags) is added.
- Leading thought tags count until the first visible character; a marker of the dialect is visible.
- Text is kept raw: white space around markers belongs to the adjacent text, unless the dialect
  skips it.
- Nothing raises, whatever the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol, runtime_checkable

import msgspec

from ..models import Close, Fault, Part, Text, Thought
from .base import Parser
from .fences import Fences
from .scanner import Markers, find_marker_start
from .tags import TagReader

Mode = Callable[[], None]
Handler = Callable[["re.Match[str]"], None]
# white space, and marks that no reader sees: a byte order mark, zero-width spaces and joiners
_invisible = re.compile("[\\s\ufeff\u200b-\u200d\u2060]*").match
_white_space = re.compile(r"\s*").match
LONGEST_QUOTE = 64 * 1024  # characters that a fault quotes of an oversized block or a forged line


class ThoughtTags(msgspec.Struct, frozen=True):
    """Names of thought tags.

    `leading`: those that count only before the first visible character of a turn. `anywhere`: those
    that count wherever there is text, except in code fences.
    """

    leading: tuple[str, ...] = ()
    anywhere: tuple[str, ...] = ()


NO_TAGS = ThoughtTags()


@runtime_checkable
class Taggable(Protocol):
    """A dialect whose parser can also read thought tags."""

    def tagged_parser(self, tags: ThoughtTags) -> Parser:
        """Return a parser that also reads `tags` (see `thinking`) where it reads text."""


@cache
def markers_with_tags(
    pattern: str, markers: tuple[str, ...], tags: tuple[str, ...], *, fold: bool = False
) -> Markers:
    """Return the markers of a dialect with the thought tags `tags` after them."""
    if not tags:  # "(?!)" matches nothing
        return Markers(pattern or "(?!)", markers, fold=fold)
    # the longest first: a regular expression takes the first alternative that matches
    names = "|".join(sorted(map(re.escape, tags), key=len, reverse=True))
    tagged = rf"<(?P<tag>{names})(?=[\s/>])"
    texts = (*markers, *(f"<{tag}" for tag in tags))
    return Markers(f"{pattern}|{tagged}" if pattern else tagged, texts, fold=fold)


class MarkerParser:
    """Reads text with thought tags; dialects add their markers.

    `pattern`: a regular expression whose named groups are the markers; `markers`: their texts (see
    `scanner.Markers`). `last`: the pattern for the end of the stream, if it differs. `fold`: the
    letter case of markers is ignored. A subclass adds to `_handlers`, by the name of the group, a
    method that moves `_pos` past the marker.
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
        self._leading_markers = markers_with_tags("", (), tags.leading) if tags.leading else None
        self._fences = Fences() if tags.anywhere else None
        # "<" also begins the closing tag of a thought
        self._other_sigils = [sigil for sigil in self._markers.sigils if sigil != "<"]
        self._buf, self._pos = "", 0  # the text from `_pos` on is not consumed yet
        self._buf_offset = 0  # offset of the buffer in the turn
        self._final = self._cut = False  # the stream has ended; the model was stopped (`close`)
        self._part_type: type[Text] | type[Thought] = Text
        self._block_open = False  # a part of `_part_type` was emitted, and its Close is due
        # the type of the part that `feed` makes of text without a sigil (None: modes must run)
        self._direct_type: type[Text] | type[Thought] | None = None
        self._mode: Mode = self._read_text if self._leading_markers is None else self._read_lead
        self._handlers: dict[str, Handler] = {"tag": self._begin_tag}
        # the thought: its opening tag while that is read, its closing tag (or that of a block), and
        # the attributes of the opening tag for the next Thought part
        self._tag: TagReader | None = None
        self._closing = ""
        self._attributes: dict[str, Any] | None = None
        # kept text, of a block that is read as a whole at its end: the pieces that have left the
        # buffer (None: no such block is open), their length, and where the rest begins in it
        self._kept_pieces: list[str] | None = None
        self._kept_size = self._kept_from = 0
        self._block_offset = 0  # where that block begins in the turn
        self._out: list[Part] = []

    def feed(self, text: str) -> Sequence[Part]:
        """Return the parts that `text` completes."""
        part_type = self._direct_type
        if part_type is not None and "<" not in text:
            for sigil in self._other_sigils:
                if sigil in text:
                    break
            else:
                self._buf_offset += len(text)
                if self._fences is not None and part_type is Text:
                    self._fences.feed(text)
                return (part_type(text),) if text else ()
        return self._advance(text)

    def close(self, *, cut: bool = False) -> Sequence[Part]:
        """End the stream: flush held text and close open blocks (see `base`)."""
        self._final, self._cut, self._markers = True, cut, self._final_markers
        out = self._advance("")
        self._close_block()
        self.stopped = True
        return out

    def _advance(self, text: str) -> list[Part]:
        """Run modes over the buffer and `text`; return the parts, and keep what is not consumed."""
        out = self._out = []
        if self.stopped:
            return out
        self._buf += text
        mode: Mode | None = None
        while self._mode != mode and not self.stopped:
            mode = self._mode
            mode()
        if self._kept_pieces is not None:
            self._kept_pieces.append(self._buf[self._kept_from : self._pos])
            self._kept_size += self._pos - self._kept_from
            self._kept_from = 0
        self._buf_offset += self._pos
        self._buf = self._buf[self._pos :]
        self._pos = 0
        # in an open block, a text without a sigil needs no mode
        reads_plain = self._kept_pieces is None and self._mode != self._read_lead
        is_direct = reads_plain and self._block_open and not self._buf and not self.stopped
        self._direct_type = self._part_type if is_direct else None
        return out

    def _start_keeping(self, start: int) -> None:
        """Start keeping text: a block is read as a whole at its end."""
        self._kept_pieces, self._kept_size, self._kept_from = [], 0, start

    @property
    def _kept_start(self) -> int:
        """Where the kept text begins in the buffer; below 0: its pieces have left the buffer."""
        return self._kept_from - self._kept_size

    def _read_kept(self, pos: int) -> str:
        """Return the kept text up to `pos`."""
        return "".join(self._kept_pieces or ()) + self._buf[self._kept_from : pos]

    def _take_kept(self, pos: int, mode: Mode) -> str:
        """Return the kept text up to `pos` and continue there in `mode`."""
        text = self._read_kept(pos)
        self._kept_pieces, self._pos, self._mode = None, pos, mode
        return text

    def _rewind(self) -> None:
        """Go back to the start of the kept text."""
        if self._kept_pieces:  # put the pieces back before the buffer, which then begins earlier
            self._buf_offset += self._kept_start
            self._buf = self._read_kept(len(self._buf))
            self._start_keeping(0)
        self._pos = self._kept_from

    def _emit(self, text: str) -> None:
        if not text:
            return
        self._block_open = True
        if self._fences is not None and self._part_type is Text:
            self._fences.feed(text)
        if self._attributes is not None:
            self._out.append(Thought(text, attributes=self._attributes))
            self._attributes = None
        else:
            self._out.append(self._part_type(text))

    def _close_block(self, *, incomplete: bool = False) -> None:
        if self._block_open:
            self._out.append(Close(incomplete=incomplete))
        self._block_open = False
        self._attributes = None

    def _read_lead(self) -> None:
        """Mode: before the first visible character of the turn, where leading tags count."""
        assert self._leading_markers is not None
        buf, start = self._buf, self._pos
        self._pos = _invisible(buf, start).end()  # type: ignore[union-attr]  # the pattern matches everywhere
        self._emit(buf[start : self._pos])
        if self._pos == len(buf):
            return
        if marker := self._leading_markers.match(buf, self._pos):
            self._begin_tag(marker)
        # what follows can no longer become a leading tag
        elif self._final or self._leading_markers.find_start(buf, self._pos) != self._pos:
            self._end_lead()

    def _end_lead(self) -> None:
        self._leading_markers = None
        self._mode = self._read_text

    def _read_text(self) -> None:
        """Mode: text up to the next marker, or to what may be the start of one."""
        buf, mode = self._buf, self._mode
        while marker := self._markers.search(buf, self._pos):
            self._emit(buf[self._pos : marker.start()])
            self._pos = marker.start()
            self._handlers[marker.lastgroup or ""](marker)
            if self._mode != mode or self.stopped:
                return
        at_end = self._final and not self._cut
        end = len(buf) if at_end else self._markers.find_start(buf, self._pos)
        # a cut stream loses half a marker, but a lone sigil is more likely text
        if self._cut and end == len(buf) - 1:
            end += 1
        self._emit(buf[self._pos : end])
        self._pos = end

    def _stop(self, match: re.Match[str], part: Part) -> None:
        """End the turn with `part`, after its marker."""
        self._close_block()
        self._out.append(part)
        self._pos = match.end()
        self.stopped = True

    def _give_up(self, block: str, largest: int, raw: str) -> None:
        """Report a block of more than `largest` characters, and stop reading the turn."""
        message = f"A {block} is larger than {largest} characters; the turn was given up there."
        self._out.append(Fault("limit", message, raw[:LONGEST_QUOTE], self._block_offset))
        self.stopped = True

    def _skip_white_space(self) -> None:
        self._pos = _white_space(self._buf, self._pos).end()  # type: ignore[union-attr]  # the pattern matches everywhere

    def _emit_marker(self, match: re.Match[str]) -> None:
        """Emit what looks like a marker as text."""
        self._emit(match[0])
        self._pos = match.end()

    def _begin_thought(self, end: int, closing: str) -> None:
        """Begin a thought after its opening tag, which ends at `end`; `closing` ends it."""
        self._close_block()
        self._pos = end
        self._part_type = Thought
        self._closing = closing
        self._mode = self._read_thought

    def _read_thought(self) -> None:
        """Mode: reasoning up to its closing tag; other markers are text."""
        buf, pos = self._buf, self._pos
        end = buf.find(self._closing, pos)
        if end >= 0:
            self._emit(buf[pos:end])
            self._pos = end + len(self._closing)
            self._end_thought()
            return
        self._pos = len(buf) if self._final else find_marker_start(buf, pos, self._closing)
        self._emit(buf[pos : self._pos])
        if self._final:
            self._close_block(incomplete=True)

    def _end_thought(self) -> None:
        self._close_block()
        self._part_type = Text
        self._mode = self._read_text if self._leading_markers is None else self._read_lead

    def _begin_tag(self, match: re.Match[str]) -> None:
        if self._part_type is Thought or (self._fences is not None and self._fences.inside):
            self._emit_marker(match)
            return
        self._tag = TagReader(match["tag"])
        self._closing = f"</{match['tag']}>"
        self._mode = self._read_tag

    def _read_tag(self) -> None:
        """Mode: the opening tag of a thought, with its attributes."""
        assert self._tag is not None
        end = self._tag.read(self._buf, self._pos)
        if end is None and not self._final:
            return
        if end is None or end < 0:
            # not a tag: its "<" is text, and visible, so no leading tag can follow
            self._emit("<")
            self._pos += 1
            self._end_lead()
            return
        self._begin_thought(end, self._closing)
        attributes: dict[str, Any] = dict(self._tag.attributes)
        thought = next((attributes.pop(n) for n in ("thought", "content") if attributes.get(n)), "")
        attributes.pop("thought", "")  # an empty one
        self._attributes = _convert_confidence(attributes) or None
        if thought:
            self._emit(thought)
            self._close_block()  # the text between the tags is another thought
        if self._tag.closed:
            self._end_thought()


def _convert_confidence(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return attributes with a numeric `confidence` as a float."""
    confidence = attributes.get("confidence")
    if confidence is not None and re.fullmatch(r"-?\d{1,9}(\.\d{1,17})?", confidence, re.ASCII):
        attributes["confidence"] = float(confidence)
    return attributes
