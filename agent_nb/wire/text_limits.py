"""Cuts long text to a limit, with a mark that shows that something is missing, or how much.

Rule: limits count characters, without the mark; only the `width` of `fit_text` includes it. A
`mark` is a format string that may take the number of characters left out.
"""

from __future__ import annotations

LEFT_OUT = "[… {:,} characters left out …]"


def cut_end(text: str, limit: int, mark: str = "…") -> str:
    """Return `text`, cut after `limit` characters and followed by `mark` if it is longer."""
    return text if len(text) <= limit else text[:limit] + mark.format(len(text) - limit)


def cut_middle(text: str, limit: int, mark: str = LEFT_OUT, *, tail: int | None = None) -> str:
    """Return `text`; if it is longer than `limit`, its beginning and end, with `mark` between them.

    `tail` is the length of the end, half of `limit` by default. The mark has a line to itself.
    """
    if len(text) <= limit:
        return text
    tail = limit // 2 if tail is None else tail
    missing = mark.format(len(text) - limit)
    return f"{text[: limit - tail]}\n{missing}\n{text[len(text) - tail :]}"


def fit_text(text: str, width: int) -> str:
    """Return `text` in at most `width` characters; the last one is `…` if the text is cut."""
    return text if len(text) <= width else f"{text[: width - 1]}…"
