"""Two texts side by side, line by line: the recorded one and the new one.

Why here: the card of a drift and the line on stderr must show the same rows.

Rules: pure; at most `AROUND` equal lines around a difference and `LONGEST` rows in all; a mark
stands for omitted rows. This file imports nothing of ours.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from itertools import zip_longest

from ..wire.text_limits import fit

AROUND = 2
LONGEST = 40
MOST = 2000  # compared lines of a text
CHANGED, SAME, LEFT_OUT = "≠", "", "⋮"
Line = tuple[str, str, str]  # mark, recorded, now


def lines(recorded: str, now: str) -> list[Line]:
    """Return rows of (mark, recorded line, new line); marks are CHANGED, SAME and LEFT_OUT."""
    before, after = recorded.splitlines()[:MOST], now.splitlines()[:MOST]
    out: list[Line] = []
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(AROUND):
        first, last = group[0], group[-1]
        out += [(LEFT_OUT, "", "")] if first[1] or first[3] else []
        for kind, a, b, c, d in group:
            mark = SAME if kind == "equal" else CHANGED
            out += [
                (mark, old, new) for old, new in zip_longest(before[a:b], after[c:d], fillvalue="")
            ]
        rest = last[2] < len(before) or last[4] < len(after)
    if out and rest:
        out.append((LEFT_OUT, "", ""))
    tidy = [
        row
        for i, row in enumerate(out)
        if row[0] != LEFT_OUT or i == 0 or out[i - 1][0] != LEFT_OUT
    ]
    if not (more := len(tidy[LONGEST:])):
        return tidy
    return [*tidy[:LONGEST], (LEFT_OUT, f"({more} more row{'' if more == 1 else 's'})", "")]


def text(recorded: str, now: str, width: int = 50) -> str:
    """Return the rows as text in two columns of at most `width` characters."""
    rows = [("", "recorded", "now"), *lines(recorded, now)]
    column = min(width, max(len(row[1]) for row in rows))
    return "\n".join(
        f"{mark or ' '} {fit(old, width):<{column}} | {fit(new, width)}".rstrip()
        for mark, old, new in rows
    )
