"""Bytes to JSON objects and back: NDJSON, server-sent events, or one JSON array.

Every protocol occurs in each framing, so a codec maps one object at a time and never sees the
framing. The first characters of a stream decide it, in any chunking.

Rule: in NDJSON an object never spans lines. A JSON array may; it is read at the end of the stream.
If the whole stream is not a JSON array after all, it is read as lines.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from ..errors import WireError
from ..wire import Frame, SSEDecoder, dumps, loads
from .lines import LineDecoder
from .losses import Losses

Framing = Literal["ndjson", "sse"]
#: framing -> its media type
MEDIA: dict[Framing, str] = {"ndjson": "application/x-ndjson", "sse": "text/event-stream"}
RAW = "raw\n"  # names an item that is always a frame, its data not JSON; no `event:` line holds it
_SSE_START = re.compile(rb"(data|event|id|retry)\s*:|:")
_ARRAY_START = re.compile(rb"\[\s*[{\]]")
_HEAD_SIZE = 8  # bytes by which the framings can be distinguished
_UNSAFE = re.compile(r"[\r\n\0]")


class Item(msgspec.Struct, frozen=True):
    """One JSON value and its frame: the SSE event name ("" for none) and id (None for none)."""

    obj: Any
    event: str = ""
    id: str | None = None

    def write(self, framing: Framing, number: str | None = None) -> str:
        """Return a JSON line without its newline, or an SSE frame with its blank line.

        `number`: the id of the frame instead of the item's own.
        """
        if self.event == RAW:
            return frame_sse(str(self.obj))
        if framing == "ndjson":
            return dumps(self.obj)
        event = self.event if is_sse_safe(self.event) else ""
        return frame_sse(dumps(self.obj), event, self.id if number is None else number)


class Unframer:
    """Splits one stream into JSON values; `framing` is None until the stream shows it."""

    def __init__(self, losses: Losses) -> None:
        self.framing: Framing | None = None
        self._losses = losses
        self._held = b""
        self._parser: _Parser | None = None

    def feed(self, data: bytes | str) -> list[Item]:
        """Return the values that `data` completes."""
        chunk = data.encode("utf-8", "replace") if isinstance(data, str) else bytes(data)
        if self._parser is None:
            chunk = self._choose_parser(chunk, last=False)
        return self._parser.feed(chunk) if self._parser is not None else []

    def close(self) -> list[Item]:
        """End the stream: return the values that are left."""
        head = self._choose_parser(b"", last=True) if self._parser is None else b""
        parser = self._parser
        return [*parser.feed(head), *parser.close()] if parser is not None else []

    def _choose_parser(self, chunk: bytes, *, last: bool) -> bytes:
        """Hold bytes until the head shows the framing; then choose the parser, return its bytes."""
        self._held += chunk
        head = self._held.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")
        if not head or not (last or _shows_framing(head)):
            # without blanks, which a server may send without end; a line break may end the line `[`
            blank = b"[\n" if b"\n" in head else b"["
            self._held = blank if head.strip() == b"[" else head
            return b""
        self.framing = "sse" if _SSE_START.match(head[:_HEAD_SIZE]) else "ndjson"
        parser = _Array if _ARRAY_START.match(head) else _PARSERS[self.framing]
        self._parser = parser(self._losses)
        self._held = b""
        return head


def _shows_framing(head: bytes) -> bool:
    """Return whether the beginning of a stream shows its framing.

    `{` does at once, any other after `_HEAD_SIZE` bytes or a line break; `[` also needs a character
    that is not white space after it.
    """
    is_long = len(head) >= _HEAD_SIZE or b"\n" in head
    if head.startswith(b"["):
        return is_long and bool(head[1:].strip())
    return is_long or head.startswith(b"{")


class _Parser(ABC):
    """A parser of one framing: bytes in, items out."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses

    @abstractmethod
    def feed(self, data: bytes) -> list[Item]:
        """Return the items that `data` completes."""

    @abstractmethod
    def close(self) -> list[Item]:
        """Return the items held back."""

    def _count_fault(self, fault: WireError) -> None:
        self._losses.add("malformed line", str(fault), raw=fault.raw)

    def _parse_items(self, texts: Iterable[tuple[str | bytes, str, str | None]]) -> list[Item]:
        """Parse (JSON text, event name, id) each; count what is not JSON."""
        out = []
        for text, event, number in texts:
            try:
                out.append(Item(loads(text), event, number))
            except (ValueError, RecursionError) as fault:
                raw = text if isinstance(text, str) else text.decode("utf-8", "replace")
                self._losses.add("malformed line", f"it is not JSON ({fault})", raw=raw)
        return out


class _Lines(_Parser):
    """NDJSON: one value a line."""

    def __init__(self, losses: Losses) -> None:
        super().__init__(losses)
        self._lines = LineDecoder(self._count_fault)

    def feed(self, data: bytes) -> list[Item]:
        lines = filter(str.strip, self._lines.feed(data))
        return self._parse_items((line, "", None) for line in lines)

    def close(self) -> list[Item]:
        return self._parse_items((line, "", None) for line in self._lines.close() if line.strip())


class _Frames(_Parser):
    """Server-sent events: one value a frame."""

    def __init__(self, losses: Losses) -> None:
        super().__init__(losses)
        self._sse = SSEDecoder()
        self._last: str | None = None

    def feed(self, data: bytes) -> list[Item]:
        return self._parse_frames(lambda: self._sse.feed(data))

    def close(self) -> list[Item]:
        return self._parse_frames(lambda: self._sse.close(lenient=True))

    def _parse_frames(self, read: Callable[[], list[Frame]]) -> list[Item]:
        """Return the items of the frames that `read` returns; count one that is too large."""
        try:
            frames = read()
        except WireError as fault:
            self._count_fault(fault)
            return []
        # `[DONE]`: the last frame of many model servers, not JSON
        return self._parse_items(
            (f.data, f.event, self._drop_repeated(f.id)) for f in frames if f.data != "[DONE]"
        )

    def _drop_repeated(self, number: str | None) -> str | None:
        """Return a frame's id; None if it is the last one, as SSE repeats it for frames without."""
        if number == self._last:
            return None
        self._last = number
        return number


class _Array(_Parser):
    """A whole JSON array of objects, as `json.dump` writes a list."""

    def __init__(self, losses: Losses) -> None:
        super().__init__(losses)
        self._chunks: list[bytes] = []

    def feed(self, data: bytes) -> list[Item]:
        self._chunks.append(data)
        return []

    def close(self) -> list[Item]:
        data, self._chunks = b"".join(self._chunks), []
        try:
            return [Item(obj) for obj in loads(data)]
        except (ValueError, RecursionError):
            lines = _Lines(self._losses)
            return [*lines.feed(data), *lines.close()]


_PARSERS: dict[Framing, type[_Parser]] = {"ndjson": _Lines, "sse": _Frames}


def frame_sse(data: str, event: str = "", number: str | None = None) -> str:
    """Write one SSE frame with the id `number`.

    Raises ValueError if the event name or the id has a line break or NUL.
    """
    if _UNSAFE.search(event) or (number and _UNSAFE.search(number)):
        raise ValueError("an SSE event name or id cannot hold a line break")
    head = f"id: {number}\n" if number is not None else ""
    kind = f"event: {event}\n" if event else ""
    return f"{head}{kind}data: {data}\n\n"


def is_sse_safe(text: str) -> bool:
    """Return whether `text` fits on an `event:` or `id:` line."""
    return not _UNSAFE.search(text)
