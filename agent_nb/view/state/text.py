"""Two growing texts: `Text` keeps everything, `Output` keeps a head and a tail.

Why: a stream may have 100,000 small pieces, so appending is O(1) amortised, and a tool that prints
100 MB must not fill the memory of the view (the log has the whole output).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ..format import count_noun

T = TypeVar("T")

# so many pieces are joined into one, since an object for each token would take far more memory
MERGE = 256


class Text:
    """An append-only text. `len()` is in code points; `str()` joins the pieces once."""

    __slots__ = ("_length", "_memo", "_pieces", "_small")

    def __init__(self, text: str = "") -> None:
        self._pieces = [text] if text else []
        self._length = len(text)
        self._small = 0  # pieces at the end that are not joined yet
        self._memo: Any = None

    def append(self, piece: str) -> None:
        """Add `piece` at the end."""
        if piece:
            self._pieces.append(piece)
            self._length += len(piece)
            self._small += 1
            if self._small == MERGE:
                self._pieces[-MERGE:] = ["".join(self._pieces[-MERGE:])]
                self._small = 0

    def __str__(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
            self._small = 0
        return self._pieces[0] if self._pieces else ""

    def memo(self, make: Callable[[], T]) -> T:
        """Return what `make` returned at the first call: an object that reads this text.

        A text has one such object: the `make` of later calls is ignored.
        """
        if self._memo is None:
            self._memo = make()
        memo: T = self._memo
        return memo

    def head(self, limit: int) -> str:
        """Return the first `limit` code points without joining the whole text.

        Cards of other packages may call it.
        """
        return "".join(_take_pieces(self._pieces, limit))[:limit]

    def begins(self) -> str:
        """Return the first character that is not white space, "" if there is none."""
        return next((piece.lstrip()[0] for piece in self._pieces if not piece.isspace()), "")

    def tail(self, limit: int) -> str:
        """Return the last `limit` code points without joining the whole text."""
        last = _take_pieces(reversed(self._pieces), limit)
        return "".join(reversed(last))[-limit:] if limit else ""

    def __len__(self) -> int:
        return self._length

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Text) and str(self) == str(other)

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __repr__(self) -> str:
        return f"Text({str(self)[:40]!r}, {self._length})"


def _take_pieces(pieces: Iterable[str], size: int) -> list[str]:
    """Return the first pieces, as many as have `size` code points together."""
    taken: list[str] = []
    for piece in pieces:
        if size <= 0:
            break
        taken.append(piece)
        size -= len(piece)
    return taken


class Output:
    """The output of a tool: the first `head` and the last `tail` characters.

    `omitted` counts the characters between them; `len()` counts these too.
    """

    __slots__ = ("_head_limit", "_tail", "_tail_limit", "_tail_size", "head", "omitted")

    def __init__(self, head: int = 4000, tail: int = 8000) -> None:
        self.head = ""  # the beginning
        self._head_limit = head
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._tail_limit = tail
        self.omitted = 0

    def append(self, piece: str) -> None:
        """Add `piece`, dropping what no longer fits the tail."""
        if room := self._head_limit - len(self.head):
            self.head, piece = self.head + piece[:room], piece[room:]
        if piece:
            self._tail.append(piece)
            self._tail_size += len(piece)
            self._trim()

    def _trim(self) -> None:
        """Drop the oldest characters of the tail until it fits; a piece may lose its beginning."""
        while self._tail_size > self._tail_limit:
            over = self._tail_size - self._tail_limit
            first = self._tail.popleft()
            if len(first) > over:
                self._tail.appendleft(first[over:])
            dropped = min(over, len(first))
            self._tail_size -= dropped
            self.omitted += dropped

    @property
    def tail(self) -> str:
        """The rest after the head, or the end of the output if characters were omitted."""
        return "".join(self._tail)

    def __bool__(self) -> bool:
        return bool(self.head)

    def __len__(self) -> int:
        return len(self.head) + self.omitted + self._tail_size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Output) and str(self) == str(other)

    __hash__ = None  # type: ignore[assignment]  # it grows

    def __str__(self) -> str:
        return self.between(0, len(self))

    def between(self, start: int, end: int) -> str:
        """Return the characters from `start` to `end`, with a line in place of omitted ones."""
        head, tail = self.head, self.tail
        tail_start = len(head) + self.omitted
        omitted = min(end, tail_start) - max(start, len(head))
        note = ""
        if omitted > 0:
            note = f"\n… {count_noun(omitted, 'character')} left out here; the log has them …\n"
        return (
            f"{head[start:end]}{note}{tail[max(0, start - tail_start) : max(0, end - tail_start)]}"
        )

    def last(self, limit: int) -> str:
        """Return the last `limit` characters that are kept."""
        return self.tail[-limit:] if self._tail_size >= limit else (self.head + self.tail)[-limit:]


def between_paragraphs(text: Text) -> bool:
    """Return whether a markdown text ends with a blank line outside code fences."""
    blank_line = re.search(r"\n[ \t]*\n[ \t\n]*\Z", text.tail(200))
    return blank_line is not None and not in_fence(str(text))


def in_fence(source: str) -> bool:
    """Return whether a markdown source ends inside a code fence."""
    fence = ""  # the characters that opened it; as many of the same close it
    for line in source.split("\n"):
        match = re.match(r"^ {0,3}(`{3,}|~{3,})(.*)", line)
        if match is None:
            continue
        marks, info = match.groups()
        if not fence:
            # backticks after backticks are a code span on one line, not a fence
            fence = marks if marks[0] == "~" or "`" not in info else ""
        elif marks[0] == fence[0] and len(marks) >= len(fence) and not info.strip():
            fence = ""
    return bool(fence)
