"""Characters that a server cut in two: JSON escapes text as UTF-16, and a chunk may end between the
halves of a pair.

Why: the first half alone is no character; shown or saved it becomes U+FFFD, and so would the
second.

Rules: a first half is held back until the next piece of the same kind; `close` gives up what never
got its second.
"""

from __future__ import annotations

import re

_LONE = re.compile("[\ud800-\udfff]")


class Halves:
    """Joins pairs over the pieces of several streams of text, each named by its kind."""

    def __init__(self) -> None:
        self._held: dict[str, str] = {}

    def __bool__(self) -> bool:
        """Whether anything is held back."""
        return bool(self._held)

    def feed(self, kind: str, text: str) -> str:
        """Return the text that may pass now."""
        if self._held and kind in self._held:
            text = _joined(self._held.pop(kind) + text)
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._held[kind] = text[-1]
            return text[:-1]
        return text

    def end(self, kind: str) -> str:
        """Return what is held of one kind, which is over."""
        return self._held.pop(kind, "")

    def close(self) -> list[tuple[str, str]]:
        """Return what is still held, as (kind, text)."""
        rest, self._held = list(self._held.items()), {}
        return rest


def _joined(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def encodable(text: str) -> str:
    """Return `text` with lone surrogates replaced by U+FFFD."""
    return text if text.isascii() else _LONE.sub("\ufffd", text)
