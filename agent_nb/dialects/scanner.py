"""Markers in a stream of text: finds the first one, and holds back what may be the start of one.

Rules
- A marker begins with a sigil, a character that occurs nowhere else in it; so only the last sigil
  of a text can begin an incomplete marker.
- Searching uses `str.find` and compiled patterns, never a loop over characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable


class Markers:
    """The markers `texts`, of which `pattern` finds a whole one; `fold` ignores letter case."""

    def __init__(self, pattern: str, texts: Iterable[str], *, fold: bool = False) -> None:
        folded = [text.lower() if fold else text for text in texts]
        self.search = re.compile(pattern).search
        self.match = re.compile(pattern).match
        self.sigils = "".join(sorted({text[0] for text in folded}))
        self._fold = fold
        self._longest = max(map(len, folded), default=0)
        self._beginnings = frozenset(t[:n] for t in folded for n in range(1, len(t) + 1))

    def find_start(self, text: str, start: int) -> int:
        """Return where, from `start`, the end of `text` may begin a marker; else its length.

        In `3 < 4 <th` that is the second `<`. A whole marker counts too, since the pattern may need
        the next character.
        """
        first = max(start, len(text) - self._longest)
        sigil_at = max((text.rfind(sigil, first) for sigil in self.sigils), default=-1)
        if sigil_at < 0:
            return len(text)
        tail = text[sigil_at:].lower() if self._fold else text[sigil_at:]
        return sigil_at if tail in self._beginnings else len(text)


def find_marker_start(text: str, start: int, marker: str) -> int:
    """Return where, from `start`, the end of `text` may begin `marker`; else its length.

    Cheaper than `Markers.find_start`, for a text that has no whole `marker`.
    """
    position = text.rfind(marker[0], max(start, len(text) - len(marker) + 1))
    return position if position >= 0 and marker.startswith(text[position:]) else len(text)
