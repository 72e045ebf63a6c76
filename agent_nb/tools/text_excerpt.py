"""Read some lines of a text file, in bounded memory and time: a file or a line may be huge."""

from __future__ import annotations

import codecs
import io
import mimetypes
import os
from collections.abc import Iterator

from ..errors import Cancelled, ToolError
from .base import ToolContext
from .paths import ConfinedPath
from .values import byte_size

_LONGEST_EXCERPT = 16_000  # characters, about
_LONGEST_LINE = 2_000  # characters of a line; the rest is left out
_MOST_SCANNED = 64_000_000  # characters of a file that are read
_SNIFFED = 8_192  # first bytes of a file, which show whether it is text
# mark at the beginning of a file -> its encoding
_BOMS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}


def read_excerpt(
    raw: io.BufferedReader, path: ConfinedPath, context: ToolContext, offset: int, limit: int
) -> str:
    """Return up to `limit` lines of the open file `raw`, after the first `offset`; close it.

    Raises ToolError for a binary file or a line too far into the file, Cancelled after a stop.
    """
    with io.TextIOWrapper(raw, encoding=_find_encoding(raw, path), errors="replace") as text:
        return _cut_excerpt(_Lines(text, context), offset, limit)


def _find_encoding(raw: io.BufferedReader, path: ConfinedPath) -> str:
    """Return the encoding of an open file, by its first bytes. Raises ToolError if it is binary."""
    head = raw.peek(_SNIFFED)[:_SNIFFED]
    bom = next((encoding for mark, encoding in _BOMS.items() if head.startswith(mark)), "")
    # binary: a null byte, or more than a tenth unreadable; `+ 1`: `head` may end within a character
    if not bom and (
        b"\0" in head or head.decode("utf-8", "replace").count("\ufffd") > len(head) // 10 + 1
    ):
        kind = mimetypes.guess_type(path.parts[-1])[0] or "binary"
        size = byte_size(os.fstat(raw.fileno()).st_size)
        raise ToolError(f"{path.name!r} is not text ({kind}, {size}) and cannot be read.")
    return bom or "utf-8"


class _Lines:
    """The lines of a file; long ones are cut and marked. Raises Cancelled after a stop.

    `limit_reached`: the reading ended at `_MOST_SCANNED` characters, perhaps before the file's end.
    """

    def __init__(self, text: io.TextIOWrapper, context: ToolContext) -> None:
        self.limit_reached = False
        self._text = text
        self._context = context
        self._characters_left = _MOST_SCANNED

    def __iter__(self) -> Iterator[str]:
        while line := self._read_piece():
            is_cut = len(line) == _LONGEST_LINE and not line.endswith("\n")
            yield line + self._replace_rest_of_line() if is_cut else line

    def _replace_rest_of_line(self) -> str:
        """Skip the rest of a line; return the text that stands for it."""
        dropped = 0
        while rest := self._read_piece():
            dropped += len(rest)
            if rest.endswith("\n"):
                dropped -= 1  # the line break, which the mark has too
                break
        if not dropped:
            return rest  # only the line break, or "" at the end of the file
        at_least = "at least " if self.limit_reached else ""
        return f" [… {at_least}{dropped:,} more characters in this line]\n"

    def _read_piece(self) -> str:
        """Return a line or a piece of a long one, "" at the end. Raises Cancelled after a stop."""
        if self._context.cancelled:
            raise Cancelled
        self.limit_reached = self._characters_left <= 0
        piece = "" if self.limit_reached else self._text.readline(_LONGEST_LINE)
        self._characters_left -= len(piece)
        return piece


def _cut_excerpt(lines: _Lines, offset: int, limit: int) -> str:
    """Return up to `limit` (at least 1) lines after the first `offset`, and how to read on.

    Raises ToolError.
    """
    shown: list[str] = []
    characters_left = _LONGEST_EXCERPT
    has_more = False
    for number, line in enumerate(lines):
        if number < offset:
            continue
        characters_left -= len(line)
        has_more = len(shown) == limit or characters_left < 0
        if has_more:
            break
        shown.append(line)
    if not shown and lines.limit_reached:
        raise ToolError(
            f"Line {offset + 1} is behind the first {_MOST_SCANNED:,} characters of the file; no more of it is read."
        )
    if not shown:
        return f"(the file has no line {offset + 1})" if offset else "(the file is empty)"
    end = offset + len(shown)
    body = "".join(shown)
    if has_more:
        mark = f"[lines {offset + 1}-{end} of a longer file; read on with offset={end}]"
    elif lines.limit_reached:
        mark = f"[only the first {_MOST_SCANNED:,} characters of the file are read]"
    else:
        return body
    return f"{body}{mark}" if body.endswith("\n") else f"{body}\n{mark}"
