"""Parse the unfinished line before the cursor: the magic, its words, and the word being typed.

`%%agent -t python --mo` gives the magic `cell`, the words `-t` and `python`, the prefix `--mo`.
"""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from ..mentions import find_unfinished_name

CELL = "%%agent"
LITERAL = ("--map", "--from")  # options with which `@name` means nothing
# a line of `%agent`, also one that assigns its value (`x = %agent …`)
_LINE_MAGIC = re.compile(r"\s*(?:[^=#'\"]+=\s*)?%agent(?=\s)")
#: What is typed: the first line of a cell, a line of `%agent`, or an `@name` in a prompt.
Magic = Literal["cell", "line", "mention"]


class Typed(msgspec.Struct, frozen=True):
    """The magic, its whole words before the cursor, and the beginning of the word at the cursor."""

    magic: Magic
    arguments: tuple[str, ...]
    prefix: str


def parse_typed(text: str, line: int, column: int) -> Typed | None:
    """Return the words typed before a line and column of a cell; None outside our magics."""
    lines = text.split("\n")
    if not 0 <= line < len(lines):
        return None
    first = next((n for n, other in enumerate(lines) if other.strip()), 0)
    before = lines[line][:column]
    if lines[first].lstrip().split(None, 1)[:1] != [CELL]:
        magic = _LINE_MAGIC.match(before)
        return _split_typed("line", before[magic.end() :]) if magic is not None else None
    if line == first:
        return _split_typed("cell", before.lstrip()[len(CELL) :])
    if line < first or any(word.partition("=")[0] in LITERAL for word in lines[first].split()):
        return None
    begun = find_unfinished_name("\n".join([*lines[first + 1 : line], before]))
    return Typed("mention", (), begun) if begun is not None else None


def _split_typed(magic: Magic, text: str) -> Typed | None:
    """Return the words of `text`, None inside the name of the magic or a quoted word.

    The last word, which is unfinished and may be "", becomes the prefix.
    """
    if not text[:1].isspace():
        return None
    words, word, quote = list[str](), "", ""
    for letter in text:
        if quote or letter in "'\"":
            quote = "" if letter == quote else quote or letter
            word += letter
        elif letter.isspace():
            if word:
                words.append(word)
            word = ""
        else:
            word += letter
    if quote or set(word) & {"'", '"'}:
        return None
    return Typed(magic, tuple(w.replace("'", "").replace('"', "") for w in words), word)
