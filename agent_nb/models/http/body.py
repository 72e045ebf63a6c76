"""A response body as frames, whatever form the server chose.

A server that is asked for an event stream may also answer with one JSON object, with JSON lines,
with a web page, or with nothing. The first bytes decide which decoding applies. Nothing raises: a
body that cannot be read sets `fault`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...errors import WireError
from ...wire import Frame, SSEDecoder
from ..parts import Fault
from .errors import is_page

LARGEST = 64 * 1024 * 1024  # bytes of a JSON body
_BLANK = b" \t\r\n\xef\xbb\xbf"  # the last three: the BOM


class Body:
    """Reads one response body; `fault`: why it cannot be read, None while it can."""

    def __init__(self) -> None:
        self.fault: Fault | None = None
        self._sse = SSEDecoder(errors=True)
        self._start = b""  # the first bytes once the form is known, for a fault
        self._json_pieces: list[bytes] | None = None  # of a JSON body; None: another form
        self._json_size = 0  # bytes
        self._has_frames = False  # the event stream has brought one
        self._is_known = False  # the form

    def feed(self, data: bytes) -> Sequence[Frame]:
        """Return the frames that `data` completes; none once there is a `fault`."""
        if self.fault is not None:
            return []
        if not self._is_known:
            data = self._choose_form(data)
        if self._json_pieces is not None:
            return self._hold_json(data)
        return self._read_events(lambda: self._sse.feed(data))

    def close(self) -> Sequence[Frame]:
        """End the body: return the remaining frames, and set `fault` if the body held none."""
        if self.fault is not None:
            return []
        if self._json_pieces is not None:
            return self._split_json(b"".join(self._json_pieces).strip(_BLANK))
        frames = self._read_events(lambda: self._sse.close(lenient=True))
        if not self._has_frames and self.fault is None:
            self.fault = _no_frame_fault(self._start)
        return frames

    def _read_events(self, read: Callable[[], Sequence[Frame]]) -> Sequence[Frame]:
        """Return the frames of an event stream; one that exceeds a limit is a fault."""
        try:
            frames = read()
        except WireError as error:
            self.fault = Fault("limit", str(error), raw=error.raw[:500])
            return []
        self._has_frames = self._has_frames or bool(frames)
        return frames

    def _choose_form(self, data: bytes) -> bytes:
        """Choose the form by the first bytes that are not blank; return the bytes to decode."""
        begin = data.lstrip(_BLANK)
        if not begin:  # dropped, since a server may send blanks without end
            return b""
        self._is_known = True
        if begin[:1] in b"{[":  # no line of an event stream begins so
            self._json_pieces = []
        self._start = begin[:1000]
        return begin

    def _hold_json(self, data: bytes) -> list[Frame]:
        """Keep a piece of a JSON body until `close`; give up above `LARGEST` bytes."""
        assert self._json_pieces is not None
        self._json_size += len(data)
        if self._json_size > LARGEST:
            self._json_pieces = []
            self.fault = Fault(
                "limit", f"The answer is larger than {LARGEST >> 20} MB and was given up."
            )
        else:
            self._json_pieces.append(data)
        return []

    def _split_json(self, body: bytes) -> list[Frame]:
        """Return a JSON body as one frame, or JSON lines as a frame each, all named `message`."""
        # every JSON line looks like an object; a pretty-printed object also has other lines
        text = body.decode("utf-8", "replace")
        lines = [line for line in text.split("\n") if line.strip()]
        is_json_lines = len(lines) > 1 and all(
            line.lstrip()[:1] == "{" and line.rstrip()[-1:] == "}" for line in lines
        )
        return [Frame("message", line) for line in (lines if is_json_lines else [text])]


def _no_frame_fault(start: bytes) -> Fault:
    """Return the fault for a body without a single frame."""
    text = start.decode("utf-8", "replace").strip()
    if is_page(text):
        return Fault(
            "garbage", "The server answered with a web page. Is the base URL right?", raw=text[:500]
        )
    if not text or text.startswith(":"):  # only comments of an event stream
        return Fault("empty", "The server answered with nothing.", retryable=True)
    return Fault(
        "garbage",
        f"The answer is neither an event stream nor JSON. It begins with {text[:80]!r}.",
        raw=text[:500],
    )
