"""Lines of a stream of JSON lines: split at LF and nowhere else.

Why ours: `str.splitlines` and the line readers of HTTP clients also split at U+2028, U+0085 and
others, which may occur unescaped in JSON.

Rules
- A line is returned without its LF; a CR before it stays (JSON takes it for white space). Empty
  lines are lines.
- Bytes are decoded as UTF-8 line by line (errors become U+FFFD), so a chunk may end inside a
  character.
- A line larger than `limit` (bytes or characters) raises WireError. If lines before it in the same
  chunk are returned, the next `feed` or `close` raises it instead, and that call's data is dropped.
- The rest of the chunk with such a line is dropped. The decoder may be used further: the next data
  is read as the beginning of a line, even if it continues the line that was too large.
- Linear time in any chunking. One stream is either bytes or text.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from ..errors import WireError

LINE_LIMIT = 64 * 1024 * 1024
Data = TypeVar("Data", bytes, str)


class LineDecoder(Generic[Data]):
    """Reads one stream of lines."""

    def __init__(self, *, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._pieces: list[Data] = []  # of the incomplete line
        self._size = 0
        self._fault: WireError | None = None

    def feed(self, data: Data) -> list[str]:
        """Return the lines that `data` completes. Raises WireError for one above the limit."""
        self._raise_fault()
        lines, rest = _split(data)
        if lines and self._pieces:
            lines[0] = _join([*self._pieces, lines[0]])
        if lines:
            self._pieces, self._size = [], 0
        done: list[str] = []
        for line in lines:
            if len(line) > self._limit:
                self._refuse(line)
                break
            done.append(_text(line))
        else:
            if rest:
                self._keep(rest)
        if not done:
            self._raise_fault()
        return done

    def close(self) -> list[str]:
        """End the stream and return the last line if it had no line break."""
        self._raise_fault()
        pieces, self._pieces, self._size = self._pieces, [], 0
        return [_text(_join(pieces))] if pieces else []

    def _keep(self, data: Data) -> None:
        self._pieces.append(data)
        self._size += len(data)
        if self._size > self._limit:
            self._refuse(_join(self._pieces))

    def _refuse(self, raw: Data) -> None:
        self._pieces, self._size = [], 0
        self._fault = WireError(
            f"A line is larger than {self._limit}. Is this a stream of JSON lines?",
            raw=_text(raw[:500]),
        )

    def _raise_fault(self) -> None:
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault


def _split(data: Data) -> tuple[list[Data], Data]:
    """Return the complete lines of `data`, without their breaks, and the rest."""
    lines: list[Data] = data.split(b"\n") if isinstance(data, bytes) else data.split("\n")
    return lines, lines.pop()


def _join(pieces: list[Any]) -> Any:
    return type(pieces[0])().join(pieces)


def _text(line: Data) -> str:
    return line.decode("utf-8", "replace") if isinstance(line, bytes) else line
