"""Two texts side by side: the recorded one and the new one.

Why one file: the card of a drift (the first difference between a record and its replay) and the
message on stderr must show the same rows.

Rule: different texts always have a row that differs, even if they differ only in line ends.
"""

from __future__ import annotations

from difflib import SequenceMatcher, unified_diff
from itertools import zip_longest
from typing import ClassVar

import msgspec

from ..wire import fit_text

EQUAL_LINES = 2  # shown before and after a difference
MOST_ROWS = 40  # shown
MOST_DIFF_LINES = 20  # of a unified diff
MOST_LINES = 2000  # of each text that are compared
NEAR = 20  # characters shown before a difference inside a line, and in literals also after it
SAME, LEFT_OUT = "", "⋮"  # marks of a row whose sides are equal, and of rows that are not shown
Row = tuple[str, str, str]  # mark, recorded line, new line


class SideBySide(msgspec.Struct, frozen=True):
    """A recorded text and the new one, to be compared line by line."""

    recorded: str
    now: str

    CHANGED: ClassVar = "≠"  # the mark of a row whose sides differ

    def rows(self) -> list[Row]:
        """Return rows of (mark, recorded line, new line); marks are CHANGED, SAME and LEFT_OUT."""
        old, new = self.recorded.splitlines(), self.now.splitlines()
        if old == new and self.recorded != self.now:  # only line ends differ
            return [(self.CHANGED, *self.show_difference())]
        start = _find_start(old, new)
        beyond = max(len(old), len(new)) - start - MOST_LINES
        old, new = old[start : start + MOST_LINES], new[start : start + MOST_LINES]
        rows: list[Row] = []
        matcher = SequenceMatcher(None, old, new, autojunk=False)
        for group in matcher.get_grouped_opcodes(EQUAL_LINES):
            # an opcode: its kind, from and to in `old`, from and to in `new`
            first, last = group[0], group[-1]
            if not rows and (start or first[1] or first[3]):
                rows.append((LEFT_OUT, "", ""))
            for kind, a, b, c, d in group:
                mark = SAME if kind == "equal" else self.CHANGED
                rows += [(mark, *pair) for pair in zip_longest(old[a:b], new[c:d], fillvalue="")]
            if last[2] < len(old) or last[4] < len(new):
                rows.append((LEFT_OUT, "", ""))
        omitted = len(rows) - MOST_ROWS
        notes = [
            *([f"{omitted} more row{'' if omitted == 1 else 's'}"] if omitted > 0 else ()),
            *(
                [f"{beyond} more line{'' if beyond == 1 else 's'} not compared"]
                if beyond > 0
                else ()
            ),
        ]
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
        old, new = self.recorded.splitlines(), self.now.splitlines()
        lines = list(unified_diff(old, new, "recorded", "now", lineterm="", n=1))
        if not lines and self.recorded != self.now:
            pair = zip("-+", self.show_difference(), strict=True)
            lines = [f"{mark}{literal}" for mark, literal in pair]
        omitted = len(lines) - MOST_DIFF_LINES
        if omitted <= 0:
            return lines
        return [*lines[:MOST_DIFF_LINES], f"… {omitted} more line{'' if omitted == 1 else 's'}"]

    def show_difference(self) -> tuple[str, str]:
        """Return Python literals of both texts from shortly before their first difference."""
        first = count_shared(self.recorded, self.now)
        start = max(0, first - NEAR)
        old, new = (
            f"{'…' if start else ''}{side[start : first + NEAR]!r}"
            for side in (self.recorded, self.now)
        )
        return old, new


def count_shared(one: str, other: str) -> int:
    """Return the length of the common beginning of two texts."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def _find_start(old: list[str], new: list[str]) -> int:
    """Return the index of the first line to compare, shortly before the first difference.

    Why: aligning lines takes quadratic time.
    """
    pairs = enumerate(zip_longest(old, new))
    first = next((n for n, (a, b) in pairs if a != b), 0)
    return max(0, first - EQUAL_LINES)


def _shift_row(row: Row, width: int) -> Row:
    """Return a row with its difference among the first `width` characters."""
    mark, old, new = row
    first = count_shared(old, new)
    if mark != SideBySide.CHANGED or first < width - 1 or not (old and new):
        return row
    start = first - min(NEAR, width // 2)
    return mark, f"…{old[start:]}", f"…{new[start:]}"
