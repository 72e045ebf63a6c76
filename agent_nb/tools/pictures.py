"""The pictures of a result: figures, PIL images and files in memory, as attachments.

Why: a model that can see reads a plot better than the words `<Figure size 700x300>`.

Rules
- No library is imported: an object is drawn by the methods of its type (see `display`).
- Only PNG, JPEG, GIF and WebP count, by their first bytes; a PNG loses the text in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..wire.media import attachment, clean_attachment
from . import display

KINDS = ("image/png", "image/jpeg", "image/gif", "image/webp")
NO_PICTURE = "[a value that is no PNG, JPEG, GIF or WebP was left out]"


def picture(source: Any) -> dict[str, str] | None:
    """Return bytes, an attachment, a figure or an image as an attachment; None if it is neither."""
    if isinstance(source, Mapping):
        return clean_attachment(source)
    if isinstance(source, bytes | bytearray | memoryview):
        return attachment(bytes(source))
    shown = display.rich(source) or {}
    found = (clean_attachment({"data": shown[kind]}) for kind in KINDS if kind in shown)
    return next(filter(None, found), None)


def pictures(sources: Iterable[Any]) -> tuple[tuple[dict[str, str], ...], int]:
    """Return the sources that are pictures as attachments, and how many are not."""
    found = [picture(source) for source in sources]
    kept = tuple(filter(None, found))
    return kept, len(found) - len(kept)
