"""How many columns of a terminal a text takes, and texts cut or padded to a number of columns.

Why: `len` counts characters, but letters of East Asia and emoji take two columns, and marks and
joined emoji none of their own.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left

# our own styles; the drawers have removed all other escape sequences
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
# the first makes one emoji of several, the second makes an emoji of the character before it
_JOINER, _EMOJI = "\u200d", "\ufe0f"


def cell_width(text: str) -> int:
    """Return the columns of a line; styles take none."""
    text = _STYLE.sub("", text)
    if text.isascii():
        return len(text)
    # `last`: columns of the latest character that takes any; `joined`: a joiner comes before
    width, last, joined = 0, 0, False
    for c in text:
        if c == _EMOJI:  # the character before is drawn as an emoji
            width, last = width + (last == 1), 2
            continue
        if joined or c == _JOINER or unicodedata.category(c) in ("Mn", "Me", "Cf") or _is_jamo(c):
            joined = c == _JOINER
            continue
        if "\U0001f3fb" <= c <= "\U0001f3ff" and last:  # a skin colour
            continue
        last = 2 if unicodedata.east_asian_width(c) in "WF" else 1
        width += last
    return width


def _is_jamo(c: str) -> bool:
    """Return whether a letter joins the Hangul letter before it, as in file names of macOS."""
    return "\u1160" <= c <= "\u11ff" or "\ud7b0" <= c <= "\ud7ff"


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Return a text filled with spaces up to a width; `right`: aligned to the right."""
    space = " " * max(0, width - cell_width(text))
    return space + text if right else text + space


def fit(text: str, width: int) -> str:
    """Return `text`, which has no styles, in at most `width` columns (1 or more).

    "…" ends a cut text.
    """
    if cell_width(text) <= width:
        return text
    # the shortest beginning that fills the width; its last character gives way to "…"
    end = bisect_left(range(len(text)), width, key=lambda n: cell_width(text[:n]))
    return f"{text[: max(0, end - 1)]}…"
