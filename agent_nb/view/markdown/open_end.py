"""The open end of a growing markdown text, completed for display.

    "**bol"  →  "**bol**"      "[the do"  →  "the do"      "| a |"  →  a table with one column

Why: half a marker would be seen as text, and jump to its form later.
"""

from __future__ import annotations

import re

from ..state.text import in_fence

CARET = "▍"  # where the text will continue
# marks alone on a line may become a list, a heading, a rule or a fence
_UNDECIDED = re.compile(r"^ {0,3}(?:[-=*_+#~`>|:]{1,6}|\d{1,9}[.)]?)[ \t]*\Z")
# a link without an end in its address, or in its text
_OPEN_ADDRESS = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\s]*\Z")
_OPEN_TEXT = re.compile(r"!?\[([^\[\]\n]*)\Z")
_OPEN_EMPHASIS = re.compile(r"(?<![*\w])\*[^*\s][^*\n]*\Z")
_BACKSLASH = re.compile(r"(?<!\\)\\\Z")  # at the end, where it may become anything
# the row of delimiters below a table's header, complete or not
_DELIMITERS = re.compile(r"^ {0,3}\|?[ \t]*:?-*:?[ \t|:-]*\Z")
# opener of a formula -> its end
_END_OF_FORMULA = {"$$": "$$", "\\[": "\\]", "\\(": "\\)", "$": "$"}
# a display formula that is open to the end
_OPEN_DISPLAY = re.compile(r"( {0,3}(?:\$\$|\\\[))((?:(?!\$\$|\\\]).)*)\Z", re.DOTALL)
# code spans and formulas that are closed
_CLOSED = re.compile(
    r"`[^`]*`|\$\$[^$]+\$\$|(?<!\$)\$(?![\s$])(?:[^$\\\n]|\\.)+?(?<!\s)\$(?!\d)|\\(?:\(.{,999}?\\\)|\[.{,999}?\\\])",
    re.DOTALL,
)
# a formula that is open to the end; the group that matched is its opener
_OPEN_FORMULA = re.compile(
    r"(?:(?P<two>\$\$)[^$]{0,999}\$?|(?P<paren>\\[(\[])(?:(?!\\[()[\]]).){0,999}"
    r"|(?<![\w\\$])(?P<one>\$)(?![\s\d])(?:(?!\\[()[\]])[^$\n]){0,80})\Z",
    re.DOTALL,
)
# a dollar before words is a price, unless these characters make it a formula
_WORDS = re.compile(r"[A-Za-z]{3,},? [A-Za-z]{2,}")
_TEX = re.compile(r"[\\^_{}=+<>]")


def complete_source(source: str, *, caret: bool = False) -> str:
    """Return an unfinished source as it will most probably read.

    Half a marker is hidden; open emphasis, code and formulas are closed; a new table is drawn.
    `caret`: running text ends with a `CARET`; code blocks, tables and display formulas do not.
    """
    if in_fence(source):
        return source
    completed = _complete_table(source) or _close_display(source)
    if completed:
        return completed
    line_start = source.rfind("\n") + 1
    line = source[line_start:]
    if _UNDECIDED.match(line):
        return source[:line_start]
    block_start = _last_block(source[:line_start])
    closed = _close_marks(source[block_start:])
    mark = CARET if caret and closed.strip() and "|" not in line else ""
    return source[:block_start] + closed + mark


def _last_block(source: str) -> int:
    """Return where the text after the last empty line begins."""
    empty_line = source.rfind("\n\n")
    return empty_line + 2 if empty_line >= 0 else 0


def _complete_table(source: str) -> str:
    """Return a source that ends in a new table, with the delimiter row completed; else ""."""
    lines = source.rstrip("\n").split("\n")
    last = len(lines) - 1
    if _begins_table(lines, last - 1) and _DELIMITERS.match(lines[last]):
        top = last - 1
    elif _begins_table(lines, last):
        top = last
    else:
        return ""
    header = _BACKSLASH.sub("", _close_formula(lines[top].strip()))
    cells = max(1, header.strip("|").count("|") + 1)
    closed = header if header.endswith("|") and len(header) > 1 else header + " |"
    return "\n".join([*lines[:top], closed, "|" + "---|" * cells])


def _begins_table(lines: list[str], row: int) -> bool:
    """Return whether the line `row` may be the header of a table, with no row above it."""
    if row < 0 or not lines[row].lstrip().startswith("|"):
        return False
    return row == 0 or "|" not in lines[row - 1]


def _close_display(source: str) -> str:
    """Return a source that ends in an open display formula, with the formula closed; else ""."""
    start = _last_block(source)
    opened = _OPEN_DISPLAY.match(source, start)
    if opened is None:
        return ""
    opener, formula = opened[1], opened[2].rstrip().rstrip("\\$")
    if formula.strip():
        return f"{source[:start]}{opener}{formula}{_END_OF_FORMULA[opener.strip()]}"
    return source[:start]


def _close_marks(text: str) -> str:
    """Return text with open code, formulas and `*` emphasis closed, open links as their text."""
    if text.count("`") % 2:
        return text + "`"
    text = _BACKSLASH.sub("", _close_formula(text))
    text = _OPEN_ADDRESS.sub(r"\1", text)
    text = _OPEN_TEXT.sub(r"\1", text)
    bare = _CLOSED.sub("", text)
    stripped = text.rstrip(" ")
    if bare.count("**") % 2:
        if stripped.endswith("**"):
            return stripped.removesuffix("**")
        return stripped.removesuffix("*") + "**"
    if _OPEN_EMPHASIS.search(bare):
        return stripped + "*"
    return text


def _close_formula(text: str) -> str:
    """Return running text with its open formula closed, or hidden if it is still empty.

    A price, and a dollar before words without TeX (`$HOME is set`), are text.
    """
    masked = _CLOSED.sub(lambda closed: " " * len(closed.group()), text)
    opened = _OPEN_FORMULA.search(masked)
    if opened is None or opened.lastgroup is None:
        return text
    opener, start = opened[opened.lastgroup], opened.end(opened.lastgroup)
    before_words = opener == "$" and _WORDS.search(masked, start)
    if before_words and not _TEX.search(masked.rstrip("\\"), start):
        return text
    formula = text[start:].rstrip("\\$ \n")
    if formula.strip():
        return f"{text[: opened.start()]}{opener}{formula}{_END_OF_FORMULA[opener]}"
    return text[: opened.start()]
