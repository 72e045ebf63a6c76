"""Split a stream of JSON lines into lines: at LF and nowhere else.

Why ours: `str.splitlines` and the line readers of HTTP clients also split at U+2028, U+0085 and
other characters that may occur unescaped in JSON.

Rules
- A line is returned without its LF; a CR before it stays. Empty lines are returned too.
- Bytes are decoded as UTF-8 line by line, errors become U+FFFD: a chunk may end inside a character.
- A line larger than `limit` bytes is skipped up to its LF, however it is chunked.
- The time is linear in the size of the stream, in any chunking.
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
        *line_ends, beginning_of_line = data.split(b"\n")
        complete: list[str] = []
        for line_end in line_ends:
            line, skipped = b"".join([*self._pieces, line_end]), self._skipping
            self._pieces, self._size, self._skipping = [], 0, False
            if not skipped and self._fits(line):
                complete.append(_text(line))
        if beginning_of_line and not self._skipping:
            self._pieces.append(beginning_of_line)
            self._size += len(beginning_of_line)
            if self._size > self._limit:
                beginning = b"".join(self._pieces)
                self._pieces, self._size, self._skipping = [], 0, True
                self._fits(beginning)
        return complete

    def close(self) -> list[str]:
        """End the stream and return the last line if it had no line break."""
        pieces, self._pieces, self._size, self._skipping = self._pieces, [], 0, False
        return [_text(b"".join(pieces))] if pieces else []

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
