"""Split a stream of JSON lines into lines: at LF and nowhere else.

Why ours: `str.splitlines` and the line readers of HTTP clients also split at U+2028, U+0085 and
others, which may occur unescaped in JSON.

Rules
- A line is returned without its LF; a CR before it stays. Empty lines are returned too.
- Bytes are decoded as UTF-8 line by line, errors become U+FFFD: a chunk may end inside a character.
- A line larger than `limit` (bytes or characters) is skipped up to its LF, however it is chunked.
- Linear time in any chunking. One stream is either bytes or text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ..errors import WireError

LINE_LIMIT = 64 * 1024 * 1024  # bytes or characters
Data = TypeVar("Data", bytes, str)


class LineDecoder(Generic[Data]):
    """Splits one stream into lines.

    `on_fault` gets a WireError for each line above `limit`; if it raises that error, the rest of
    the chunk is dropped.
    """

    def __init__(self, on_fault: Callable[[WireError], None], *, limit: int = LINE_LIMIT) -> None:
        self._on_fault = on_fault
        self._limit = limit
        self._pieces: list[Data] = []  # the pieces of the incomplete line
        self._size = 0
        self._skipping = False  # the incomplete line is too large and was reported

    def feed(self, data: Data) -> list[str]:
        """Return the lines that `data` completes."""
        lines, beginning_of_line = _split(data)
        complete: list[str] = []
        for line in lines:
            complete_line = self._end_line(line)
            if complete_line is not None and self._fits(complete_line, len(complete_line)):
                complete.append(_text(complete_line))
        if beginning_of_line and not self._skipping:
            self._pieces.append(beginning_of_line)
            self._size += len(beginning_of_line)
            if self._size > self._limit:
                beginning, size = _join(self._pieces), self._size
                self._pieces, self._size, self._skipping = [], 0, True
                self._fits(beginning, size)
        return complete

    def close(self) -> list[str]:
        """End the stream and return the last line if it had no line break."""
        pieces, self._pieces, self._size, self._skipping = self._pieces, [], 0, False
        return [_text(_join(pieces))] if pieces else []

    def _end_line(self, end: Data) -> Data | None:
        """Return the line that `end` completes, None if it is being skipped."""
        pieces: list[Data] = self._pieces
        skipped = self._skipping
        self._pieces, self._size, self._skipping = [], 0, False
        complete_line: Data = _join([*pieces, end]) if pieces else end
        return None if skipped else complete_line

    def _fits(self, line: Data, size: int) -> bool:
        """Return whether a line is within the limit; report one that is not."""
        if size <= self._limit:
            return True
        self._on_fault(
            WireError(
                f"A line is larger than {self._limit}. Is this a stream of JSON lines?",
                raw=_text(line[:500]),
            )
        )
        return False


def _split(data: Data) -> tuple[list[Data], Data]:
    """Return the complete lines of `data`, without their breaks, and the rest."""
    lines: list[Data] = data.split(b"\n") if isinstance(data, bytes) else data.split("\n")
    return lines, lines.pop()


def _join(pieces: list[Any]) -> Any:
    return type(pieces[0])().join(pieces)


def _text(line: Data) -> str:
    return line.decode("utf-8", "replace") if isinstance(line, bytes) else line
