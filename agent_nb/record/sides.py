"""Two texts side by side, line by line: the recorded one and the new one.

Why here: the card of a drift and the line on stderr must show the same rows.

Rules: pure; at most `AROUND` equal lines around a difference and `LONGEST` rows in all; a mark
stands for omitted rows. This file imports nothing of ours.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import zip_longest

from ..wire import fit_text

AROUND = 2
LONGEST = 40
MOST = 2000  # compared lines of a text
BEFORE = 20  # characters before a difference inside a line
CHANGED, SAME, LEFT_OUT = "≠", "", "⋮"
Line = tuple[str, str, str]  # mark, recorded, now


def align_lines(recorded: str, now: str) -> list[Line]:
    """Return rows of (mark, recorded line, new line); marks are CHANGED, SAME and LEFT_OUT.

    Texts that differ have a row that differs.
    """
    before, after, skipped = _from_difference(recorded.splitlines(), now.splitlines())
    out: list[Line] = []
    if before == after and recorded != now:
        return [(CHANGED, *show_difference(recorded, now))]
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(AROUND):
        first, last = group[0], group[-1]
        out += [(LEFT_OUT, "", "")] if skipped or first[1] or first[3] else []
        for kind, a, b, c, d in group:
            mark = SAME if kind == "equal" else CHANGED
            out += [
                (mark, old, new) for old, new in zip_longest(before[a:b], after[c:d], fillvalue="")
            ]
        rest = last[2] < len(before) or last[4] < len(after)
    if out and rest:
        out.append((LEFT_OUT, "", ""))
    # two groups may each bring a mark for what is left out between them
    tidy = [
        row
        for i, row in enumerate(out)
        if row[0] != LEFT_OUT or i == 0 or out[i - 1][0] != LEFT_OUT
    ]
    if not (more := len(tidy[LONGEST:])):
        return tidy
    return [*tidy[:LONGEST], (LEFT_OUT, f"({more} more row{'' if more == 1 else 's'})", "")]


def show_difference(recorded: str, now: str) -> tuple[str, str]:
    """Return the literals of two texts from their first difference, for one that no line shows."""
    first = _shared(recorded, now)
    start = max(0, first - BEFORE)
    one, other = (
        f"{'…' if start else ''}{side[start : first + BEFORE]!r}" for side in (recorded, now)
    )
    return one, other


def _shared(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def _from_difference(before: list[str], after: list[str]) -> tuple[list[str], list[str], bool]:
    """Return the lines from just before the first that differs, and whether others stand before."""
    pairs = enumerate(zip_longest(before, after))
    first = next((n for n, (old, new) in pairs if old != new), 0)
    start = max(0, first - AROUND)
    return before[start : start + MOST], after[start : start + MOST], start > 0


def format_sides(recorded: str, now: str, width: int = 50) -> str:
    """Return the rows as text in two columns of at most `width` characters."""
    rows = [("", "recorded", "now"), *(_shifted(row, width) for row in align_lines(recorded, now))]
    column = min(width, max(len(row[1]) for row in rows))
    return "\n".join(
        f"{mark or ' '} {fit_text(old, width):<{column}} | {fit_text(new, width)}".rstrip()
        for mark, old, new in rows
    )


def _shifted(row: Line, width: int) -> Line:
    """Return a row with its difference among the first `width` characters."""
    mark, old, new = row
    first = _shared(old, new)
    if mark != CHANGED or first < width - 1 or not (old and new):
        return row
    start = first - min(BEFORE, width // 2)
    return mark, f"…{old[start:]}", f"…{new[start:]}"
