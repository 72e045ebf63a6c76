"""Parse what is typed before the cursor: the magic, the words on its line, and the word begun.

Rules
- Only the first line of a `%%agent` cell is completed: below it stands the prompt.
- Words are split as for the options (`options.split_words`); inside quotes nothing is completed.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

CELL = "%%agent"
_LINE_MAGIC = re.compile(r"\s*(?:[^=#'\"]+=\s*)?%agent(?=\s)")


class Typed(msgspec.Struct, frozen=True):
    """The magic, its whole words before the cursor, and the beginning of the word at the cursor."""

    magic: Literal["cell", "line"]
    arguments: tuple[str, ...]
    prefix: str


def parse_typed(text: str, line: int, column: int) -> Typed | None:
    """Return what is typed at a line and column of a cell, None where there is no magic of ours."""
    lines = text.split("\n")
    if not 0 <= line < len(lines):
        return None
    first = next((n for n, one in enumerate(lines) if one.strip()), 0)
    before = lines[line][:column]
    cell = _is_cell(lines[first])
    if cell and line == first:
        return _split("cell", before.lstrip()[len(CELL) :])
    typed_line = None if cell else _LINE_MAGIC.match(before)
    return _split("line", before[typed_line.end() :]) if typed_line else None


def _is_cell(line: str) -> bool:
    return line.lstrip().split(None, 1)[:1] == [CELL]


def _split(magic: Literal["cell", "line"], text: str) -> Typed | None:
    """Return the words of `text`, None inside the name of the magic or a quoted word."""
    if not text[:1].isspace():  # the name of the magic itself
        return None
    parts, word, quote = [], "", ""
    for letter in text:
        if quote or letter in "'\"":
            quote = "" if letter == quote else quote or letter
            word += letter
        elif letter.isspace():
            parts += [word] if word else []
            word = ""
        else:
            word += letter
    if quote or set(word) & {"'", '"'}:
        return None
    return Typed(magic, tuple(w.replace("'", "").replace('"', "") for w in parts), word)
