"""Follows the code fences of an answer that streams: is the next character inside one?

In a fence a thought tag is an example, which the reader must see.

Rule: a fence begins with a line that starts with three or more backticks or tildes (the marks of
the fence), perhaps after those of a list or quote, as in `- ```python`. It ends with a line of at
least as many of the same character. While the first line is unfinished its rest counts as inside,
even if the marks begin only a code span.
"""

from __future__ import annotations

import re

_INDENT = r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?"
_OPENING = re.compile(rf"{_INDENT}(?P<marks>`{{3,}}|~{{3,}})").match
_HEAD_SIZE = 1000  # characters of an unfinished line, after which no fence can begin
_CLOSING = re.compile(r"[ \t>]*(?P<marks>`{3,}|~{3,})\s*\Z").match


class Fences:
    """Follows the fences of one text."""

    def __init__(self) -> None:
        self._marks = ""  # of the open fence
        self._line: list[str] = []  # the pieces of the unfinished line
        self._head = ""  # its beginning, so that `inside` need not join a long line each time

    @property
    def inside(self) -> bool:
        """Whether the text so far ends inside a fence."""
        return bool(self._marks or _OPENING(self._head))

    def feed(self, text: str) -> None:
        """Take more of the text."""
        if "\n" in text:  # not true of most pieces; splitting would double the cost of a feed
            *ended, text = text.split("\n")
            for line in ended:
                self._end_line("".join([*self._line, line]))
                self._line, self._head = [], ""
        self._line.append(text)
        if len(self._head) < _HEAD_SIZE:
            self._head += text[: _HEAD_SIZE - len(self._head)]

    def _end_line(self, line: str) -> None:
        if self._marks:
            closing = _CLOSING(line)
            if closing and closing["marks"].startswith(self._marks):
                self._marks = ""
        elif (opening := _OPENING(line)) and not _is_inline(opening, line):
            self._marks = opening["marks"]


def _is_inline(opening: re.Match[str], line: str) -> bool:
    """Return whether the marks begin a code span: backticks follow in the same line."""
    return opening["marks"][0] == "`" and "`" in line[opening.end() :]
