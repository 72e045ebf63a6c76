"""Joins surrogate pairs that a server cut in two, and replaces halves that have no other half.

JSON escapes text as UTF-16, and a chunk may end inside a pair. Shown or saved, each half would
become U+FFFD. So a first half is held back until the next piece of the same kind of text.
"""

from __future__ import annotations

import re

_SURROGATES = re.compile("[\ud800-\udfff]+")


class SurrogatePairs:
    """Joins surrogate pairs across the pieces of several streams of text, named by their `kind`."""

    def __init__(self) -> None:
        self._held: dict[str, str] = {}

    def __bool__(self) -> bool:
        """Whether anything is held back."""
        return bool(self._held)

    def feed(self, kind: str, text: str) -> str:
        """Return the text that may pass now; a first half at its end waits for the next piece."""
        if self._held and kind in self._held:
            # lone halves pass
            text = _join_pairs(self._held.pop(kind) + text, "surrogatepass")
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._held[kind] = text[-1]
            return text[:-1]
        return text

    def end(self, kind: str) -> str:
        """End one kind and return what it held back."""
        return self._held.pop(kind, "")

    def close(self) -> list[tuple[str, str]]:
        """Return what is still held back, as (kind, text)."""
        held, self._held = list(self._held.items()), {}
        return held


def replace_surrogates(text: str) -> str:
    """Return `text` as a built-in `str`: pairs are joined, lone surrogates become U+FFFD."""
    # a subclass may come from the user's code: its own `__str__` must not run
    text = text if type(text) is str else str.__str__(text)
    return text if text.isascii() else _SURROGATES.sub(lambda m: _join_pairs(m[0], "replace"), text)


def _join_pairs(text: str, lone: str) -> str:
    """Join pairs into characters, as UTF-16 does; `lone`: what decoding does with lone halves."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", lone)
