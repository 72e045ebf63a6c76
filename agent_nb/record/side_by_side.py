"""Compare two texts side by side: the recorded one and the new one.

Why one file: the card of a drift (the first difference between a record and its replay) and the
message on stderr must show the same rows. Different texts always have a row that differs, even if
they differ only in line ends.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from itertools import zip_longest
from typing import ClassVar

import msgspec

from ..wire import fit_text

EQUAL_LINES = 2  # shown before and after a difference
MOST_ROWS = 40  # shown
MOST_DIFF_LINES = 20  # of a unified diff
MOST_LINES = 2000  # of each text that are compared: aligning lines takes quadratic time
NEAR = 20  # characters shown before a difference inside a line, and in literals also after it
SAME, CHANGED, LEFT_OUT = "", "≠", "⋮"  # marks: equal sides, sides that differ, rows not shown
Row = tuple[str, str, str]  # mark, recorded line, new line


class SideBySide(msgspec.Struct, frozen=True):
    """A recorded text and the new one, to be compared line by line."""

    recorded: str
    new: str

    CHANGED: ClassVar = CHANGED

    def rows(self) -> list[Row]:
        """Return rows of (mark, recorded line, new line); marks are CHANGED, SAME and LEFT_OUT."""
        old, new = self.recorded.splitlines(), self.new.splitlines()
        if old == new and self.recorded != self.new:  # only line ends differ
            return [(CHANGED, *self.show_difference())]
        start = _find_start(old, new)
        uncompared = max(len(old), len(new)) - start - MOST_LINES
        old, new = old[start : start + MOST_LINES], new[start : start + MOST_LINES]
        rows = [*([(LEFT_OUT, "", "")] if start else ()), *_align_lines(old, new)]
        notes = []
        if len(rows) > MOST_ROWS:
            notes.append(_count_more(len(rows) - MOST_ROWS, "row"))
        if uncompared > 0:
            notes.append(f"{_count_more(uncompared, 'line')} not compared")
        return [*rows[:MOST_ROWS], *([(LEFT_OUT, f"({', '.join(notes)})", "")] if notes else ())]

    def columns(self, width: int = 50) -> str:
        """Return the rows as text in two columns, each of at most `width` characters."""
        rows = [("", "recorded", "now"), *(_shift_row(row, width) for row in self.rows())]
        column = min(width, max(len(row[1]) for row in rows))
        return "\n".join(
            f"{mark or ' '} {fit_text(old, width):<{column}} | {fit_text(new, width)}".rstrip()
            for mark, old, new in rows
        )

    def unified_diff(self) -> list[str]:
        """Return a unified diff as lines; [] only for equal texts.

        After `MOST_DIFF_LINES` lines a last one gives the number of lines that are left out.
        """
        old, new = self.recorded.splitlines(), self.new.splitlines()
        # not bounded by MOST_LINES: this function ignores lines that are frequent in a long text
        lines = list(difflib.unified_diff(old, new, "recorded", "now", lineterm="", n=1))
        if not lines and self.recorded != self.new:
            pair = zip("-+", self.show_difference(), strict=True)
            lines = [f"{mark}{literal}" for mark, literal in pair]
        if len(lines) <= MOST_DIFF_LINES:
            return lines
        return [*lines[:MOST_DIFF_LINES], f"… {_count_more(len(lines) - MOST_DIFF_LINES, 'line')}"]

    def show_difference(self) -> tuple[str, str]:
        """Return Python literals of both texts from shortly before their first difference."""
        first = common_prefix_length(self.recorded, self.new)
        start = max(0, first - NEAR)
        old, new = (
            f"{'…' if start else ''}{side[start : first + NEAR]!r}"
            for side in (self.recorded, self.new)
        )
        return old, new


def common_prefix_length(one: str, other: str) -> int:
    """Return the length of the common beginning of two texts."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def _count_more(count: int, noun: str) -> str:
    return f"{count} more {noun}{'' if count == 1 else 's'}"


def _find_start(old: list[str], new: list[str]) -> int:
    """Return the index of the first line to compare, shortly before the first difference."""
    pairs = enumerate(zip_longest(old, new))
    first = next((n for n, (a, b) in pairs if a != b), 0)
    return max(0, first - EQUAL_LINES)


def _align_lines(old: list[str], new: list[str]) -> Iterator[Row]:
    """Yield rows for the differences, with a row where equal lines after them are left out."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for group in matcher.get_grouped_opcodes(EQUAL_LINES):
        # an opcode: its kind, from and to in `old`, from and to in `new`
        for kind, a, b, c, d in group:
            mark = SAME if kind == "equal" else CHANGED
            yield from ((mark, *pair) for pair in zip_longest(old[a:b], new[c:d], fillvalue=""))
        if b < len(old) or d < len(new):
            yield LEFT_OUT, "", ""


def _shift_row(row: Row, width: int) -> Row:
    """Return a row with its difference among the first `width` characters."""
    mark, old, new = row
    first = common_prefix_length(old, new)
    if mark != CHANGED or first < width - 1 or not (old and new):
        return row
    start = first - min(NEAR, width // 2)
    return mark, f"…{old[start:]}", f"…{new[start:]}"
