"""Splits a stream of JSON lines into lines: at LF and nowhere else.

`str.splitlines` and the line readers of HTTP clients also split at U+2028, U+0085 and other
characters that may occur unescaped in JSON.

Rule: the time is linear in the size of the stream, in any chunking.
"""

from __future__ import annotations

from collections.abc import Callable

from ..errors import WireError

LINE_LIMIT = 64 * 1024 * 1024  # bytes


class LineDecoder:
    """Splits one stream into lines.

    `on_fault` gets a WireError for each line above `limit` bytes. If it raises that error, `feed`
    raises it too; the other lines of the chunk are lost, and the beginning of the line at its end.
    """

    def __init__(self, on_fault: Callable[[WireError], None], *, limit: int = LINE_LIMIT) -> None:
        self._on_fault = on_fault
        self._limit = limit
        self._pieces: list[bytes] = []  # the pieces of the incomplete line
        self._size = 0
        self._skipping = False  # the incomplete line is too large and was reported

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that `data` completes."""
        lines = self.take_block(data).split(b"\n")[:-1]
        return [_text(line) for line in lines if len(line) <= self._limit or self._fits(line)]

    def close(self) -> list[str]:
        """End the stream and return the last line if it had no line break."""
        line = self.take_rest()
        return [_text(line)] if line else []

    def take_block(self, data: bytes) -> bytes:
        """Return all lines that `data` completes as one piece; whole lines may exceed the limit."""
        if data[-1:] == b"\n" and not self._pieces and not self._skipping:
            return data  # nearly every chunk of a live stream
        if self._skipping:
            _, line_end, data = data.partition(b"\n")
            self._skipping = not line_end
        cut = data.rfind(b"\n") + 1
        block = data[:cut]
        if cut and self._pieces:
            block = self.take_rest() + block
        if cut < len(data) and not self._skipping:
            self._pieces.append(data[cut:])
            self._size += len(data) - cut
            if self._size > self._limit:
                beginning, self._skipping = self.take_rest(), True
                self._fits(beginning)
        return block

    def take_rest(self) -> bytes:
        """End the stream, or its incomplete line; return that line."""
        line = b"".join(self._pieces)
        self._pieces, self._size, self._skipping = [], 0, False
        return line

    def _fits(self, line: bytes) -> bool:
        """Return whether a line is within the limit; report one that is not."""
        if len(line) <= self._limit:
            return True
        self._on_fault(
            WireError(
                f"A line is larger than {self._limit:,} bytes. Is this a stream of JSON lines?",
                raw=_text(line[:500]),
            )
        )
        return False


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")
