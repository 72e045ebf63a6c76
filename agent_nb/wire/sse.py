"""Decodes server-sent events: bytes, cut into chunks anywhere, become frames.

    b"id: 7\\ndata: hello\\n\\n"  ->  Frame(event="message", data="hello", id="7")

The standard is WHATWG HTML, "Server-sent events", interpretation of an event stream. Common
decoders yield an empty event for a keep-alive after any `id:`, split lines at U+2028, or copy their
buffer at each chunk; here each byte is read a fixed number of times.

Rule: a frame larger than `limit` bytes raises WireError and drops the rest of its chunk. If the
chunk completes frames before it, `feed` returns these, and the next call raises and drops its
chunk. The decoder then starts afresh.
"""

from __future__ import annotations

import msgspec

from ..errors import WireError

_BOM = b"\xef\xbb\xbf"
_LF = 10  # b"\n"[0]
_MOST_DIGITS = 15  # of a `retry`: more would be no real time


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One event.

    `id` is the last event id in force (None before the first). `retry` is in milliseconds, if this
    frame set it.
    """

    event: str
    data: str
    id: str | None = None
    retry: int | None = None


class SSEDecoder:
    """Decodes one event stream.

    `last_event_id` (None before the first) and `retry` (milliseconds, None if never set) are the
    latest values in the stream. `errors`: a field `error`, which llama.cpp writes instead of
    `data`, counts as the data of an event named `error`.
    """

    FRAME_LIMIT = 64 * 1024 * 1024  # bytes

    def __init__(self, *, limit: int = FRAME_LIMIT, errors: bool = False) -> None:
        self._errors = errors
        self.last_event_id: str | None = None
        self.retry: int | None = None
        self._limit = limit
        self._pieces: list[bytes] = []  # of the incomplete frame
        self._size = 0  # of the pieces, in bytes
        self._newline = False  # the pieces end with a line break
        self._after_cr = False  # the last chunk ended with CR: a following LF belongs to it
        self._begun = False  # past the BOM, or past where it would be
        self._fault: WireError | None = None  # the fault to raise, if not now, at the next call

    def feed(self, data: bytes) -> list[Frame]:
        """Return the frames that `data` completes. Raises WireError for one above the limit."""
        if self._fault is not None:
            raise self._take_fault()
        if not self._begun or self._after_cr or b"\r" in data:
            data = self._normalize(data)
        elif (
            data[:6] == b"data: "
            and data.find(b"\n") == len(data) - 2
            and data[-1] == _LF
            and not self._pieces
            and len(data) <= self._limit
        ):
            # nearly every chunk of a chat completion is one frame of one line: no call, no copy
            return [Frame("message", data[6:-2].decode("utf-8", "replace"), self.last_event_id)]
        if b"\n\n" in data or (self._newline and data[:1] == b"\n"):
            return self._split(data)
        if data:
            self._keep(data)
            if self._fault is not None:
                raise self._take_fault()
        return []

    def close(self, *, lenient: bool = False) -> list[Frame]:
        """End the stream, and drop an unfinished frame, as the standard says.

        `lenient`: return that frame, since some providers end their last one without a blank line.
        Raises WireError if a frame above the limit was not reported yet.
        """
        if self._fault is not None:
            raise self._take_fault()
        self._begun = True
        block, self._pieces, self._size, self._newline = b"".join(self._pieces), [], 0, False
        frame = self._frame(block.strip(b"\n")) if lenient else None
        return [frame] if frame is not None else []

    def _normalize(self, data: bytes) -> bytes:
        """Return `data` without a leading BOM and with LF for every line break."""
        if not self._begun:
            data = b"".join(self._pieces) + data
            self._pieces, self._size = [], 0
            if len(data) < len(_BOM) and _BOM.startswith(data):
                self._keep(data)
                return b""
            self._begun = True
            data = data.removeprefix(_BOM)
        if not data:
            return data
        if self._after_cr and data[:1] == b"\n":
            data = data[1:]
            self._after_cr = False
            if not data:
                return data
        self._after_cr = data[-1:] == b"\r"
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _keep(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        self._newline = data[-1:] == b"\n"
        if self._size > self._limit:
            self._drop_oversized(b"".join(self._pieces))

    def _split(self, data: bytes) -> list[Frame]:
        """Return the frames of a chunk in which at least one ends."""
        blocks = (b"".join(self._pieces) + data).split(b"\n\n")
        self._pieces, self._size, self._newline = [], 0, False
        incomplete = blocks.pop()
        frames = []
        for block in blocks:
            if len(block) > self._limit:
                self._drop_oversized(block)
                break
            frame = self._frame(block)
            if frame is not None:
                frames.append(frame)
        if incomplete and self._fault is None:
            self._keep(incomplete)
        if self._fault is not None and not frames:
            raise self._take_fault()
        return frames

    def _frame(self, block: bytes) -> Frame | None:
        """Return the frame of one block of lines, None without a data line."""
        # nine of ten frames have one data line, which needs no split into lines
        if block[:6] == b"data: " and b"\n" not in block:
            return Frame("message", block[6:].decode("utf-8", "replace"), self.last_event_id)
        event = ""
        data: list[bytes] = []
        retry = None
        for line in block.split(b"\n"):
            if line[:6] == b"data: ":
                data.append(line[6:])
                continue
            name, _, value = line.partition(b":")
            if value[:1] == b" ":
                value = value[1:]
            if name == b"data":
                data.append(value)
            elif name == b"event":
                event = value.decode("utf-8", "replace")
            elif name == b"error" and self._errors:
                event = "error"
                data.append(value)
            elif name == b"id" and b"\0" not in value:
                self.last_event_id = value.decode("utf-8", "replace")
            elif name == b"retry" and value.isdigit() and len(value) <= _MOST_DIGITS:
                self.retry = retry = int(value)
        if not data:
            return None
        text = data[0] if len(data) == 1 else b"\n".join(data)
        return Frame(event or "message", text.decode("utf-8", "replace"), self.last_event_id, retry)

    def _drop_oversized(self, raw: bytes) -> None:
        """Drop the frame that has become too large; keep the error that reports it."""
        self._pieces, self._size, self._newline = [], 0, False
        self._fault = WireError(
            f"A frame of the event stream is larger than {self._limit} bytes. Is this a stream of events?",
            raw=raw[:500].decode("utf-8", "replace"),
        )

    def _take_fault(self) -> WireError:
        """Return the fault to raise, once: the decoder then starts afresh."""
        fault, self._fault = self._fault, None
        assert fault is not None
        return fault
