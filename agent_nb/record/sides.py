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

AROUND = 2  # equal lines shown before and after a difference
LONGEST = 40  # rows shown
LONGEST_DIFF = 20  # lines of a unified diff
MOST = 2000  # lines of each text that are compared
BEFORE = 20  # characters shown before a difference inside a line, and in literals also after it
SAME, LEFT_OUT = "", "⋮"  # marks of a row whose sides are equal, and of rows that are not shown
Row = tuple[str, str, str]  # mark, recorded line, new line


class SideBySide(msgspec.Struct, frozen=True):
    """A recorded text and the new one, to be compared line by line."""

    recorded: str
    now: str

    CHANGED: ClassVar = "≠"  # the mark of a row whose sides differ

    def rows(self) -> list[Row]:
        """Return rows of (mark, recorded line, new line); marks are CHANGED, SAME and LEFT_OUT."""
        before, after, skipped = _skip_equal_start(
            self.recorded.splitlines(), self.now.splitlines()
        )
        rows: list[Row] = []
        if before == after and self.recorded != self.now:
            return [(self.CHANGED, *self.show_difference())]
        matcher = SequenceMatcher(None, before, after, autojunk=False)
        for group in matcher.get_grouped_opcodes(AROUND):
            # an opcode: its kind, from and to in `before`, from and to in `after`
            first, last = group[0], group[-1]
            rows += [(LEFT_OUT, "", "")] if skipped or first[1] or first[3] else []
            for kind, a, b, c, d in group:
                mark = SAME if kind == "equal" else self.CHANGED
                lines = zip_longest(before[a:b], after[c:d], fillvalue="")
                rows += [(mark, old, new) for old, new in lines]
            more_follow = last[2] < len(before) or last[4] < len(after)
        if rows and more_follow:
            rows.append((LEFT_OUT, "", ""))
        # two groups may each add a mark for the rows between them; one is enough
        shown = [
            row
            for i, row in enumerate(rows)
            if row[0] != LEFT_OUT or i == 0 or rows[i - 1][0] != LEFT_OUT
        ]
        if not (more := len(shown[LONGEST:])):
            return shown
        return [*shown[:LONGEST], (LEFT_OUT, f"({more} more row{'' if more == 1 else 's'})", "")]

    def columns(self, width: int = 50) -> str:
        """Return the rows as text in two columns of at most `width` characters."""
        rows = [("", "recorded", "now"), *(_shift_row(row, width) for row in self.rows())]
        column = min(width, max(len(row[1]) for row in rows))
        return "\n".join(
            f"{mark or ' '} {fit_text(old, width):<{column}} | {fit_text(new, width)}".rstrip()
            for mark, old, new in rows
        )

    def unified_diff(self) -> list[str]:
        """Return a unified diff as lines; [] only for equal texts.

        After `LONGEST_DIFF` lines a last one gives the number of lines that are left out.
        """
        lines = list(
            unified_diff(
                self.recorded.splitlines(),
                self.now.splitlines(),
                "recorded",
                "now",
                lineterm="",
                n=1,
            )
        )
        if not lines and self.recorded != self.now:
            pair = zip("-+", self.show_difference(), strict=True)
            lines = [f"{mark}{literal}" for mark, literal in pair]
        omitted = len(lines) - LONGEST_DIFF
        if omitted <= 0:
            return lines
        return [*lines[:LONGEST_DIFF], f"… {omitted} more line{'' if omitted == 1 else 's'}"]

    def show_difference(self) -> tuple[str, str]:
        """Return Python literals of both texts from shortly before their first difference."""
        first = count_shared(self.recorded, self.now)
        start = max(0, first - BEFORE)
        recorded, now = (
            f"{'…' if start else ''}{side[start : first + BEFORE]!r}"
            for side in (self.recorded, self.now)
        )
        return recorded, now


def count_shared(one: str, other: str) -> int:
    """Return the length of the common beginning of two texts."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def _skip_equal_start(before: list[str], after: list[str]) -> tuple[list[str], list[str], bool]:
    """Return the lines from shortly before the first difference, and whether lines were skipped.

    Aligning takes quadratic time: the equal beginning is skipped, and at most `MOST` lines of each
    text are compared.
    """
    pairs = enumerate(zip_longest(before, after))
    first = next((n for n, (old, new) in pairs if old != new), 0)
    start = max(0, first - AROUND)
    return before[start : start + MOST], after[start : start + MOST], start > 0


def _shift_row(row: Row, width: int) -> Row:
    """Return a row with its difference among the first `width` characters."""
    mark, old, new = row
    first = count_shared(old, new)
    if mark != SideBySide.CHANGED or first < width - 1 or not (old and new):
        return row
    start = first - min(BEFORE, width // 2)
    return mark, f"…{old[start:]}", f"…{new[start:]}"
