"""Finds the media type of a picture from its bytes, and removes the text inside it.

Programs write comments and paths into pictures, cameras the place and the time; readers of the
notebook and providers would get them unseen. Pixels are not compressed again: the parts that are
needed to draw the picture stay byte for byte.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any

from . import exif, gif, jpeg, webp

PNG = b"\x89PNG\r\n\x1a\n"
# (first bytes, media type); a WebP is checked apart, by its bytes 8 to 11
_SIGNATURES = ((PNG, "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))
_IN_BASE64 = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR")  # how pictures begin in base64
# chunks of a PNG that change how it looks; the last three are those of an animation
_DRAWN_CHUNKS = frozenset(
    b"IHDR PLTE IDAT IEND tRNS bKGD cHRM gAMA iCCP sRGB sBIT cICP mDCV cLLI pHYs hIST sPLT acTL fcTL fdAT".split()
)


def media_type(data: bytes) -> str:
    """Return the media type of a PNG, JPEG, GIF or WebP, else ""."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for signature, kind in _SIGNATURES if data.startswith(signature)), "")


def clean_attachment(value: Any) -> dict[str, str] | None:
    """Return the picture in `value` as an attachment without text: `media_type`, base64 `data`.

    `value` may be anything; None unless its `data` (bytes or base64) are a PNG, JPEG, GIF or WebP.
    """
    data = value.get("data") if isinstance(value, Mapping) else None
    try:
        if isinstance(data, str):
            data = base64.b64decode("".join(data.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
    if not isinstance(data, bytes) or not media_type(data):
        return None
    clean = base64.b64encode(without_text(data)).decode("ascii")
    return {"media_type": media_type(data), "data": clean}


def without_text(data: bytes) -> bytes:
    """Return a picture without text, Exif and unknown chunks; other bytes unchanged.

    Its orientation stays. Returns `data` itself if nothing was removed, so that callers can compare
    by `is`.
    """
    clean = _CLEANERS.get(media_type(data), bytes)(data)  # `bytes` returns its argument
    return data if clean == data else clean


def _clean_png(data: bytes) -> bytes:
    chunks, at = [PNG], len(PNG)
    while at + 12 <= len(data):
        size, name = int.from_bytes(data[at : at + 4]), data[at + 4 : at + 8]
        end = at + 12 + size  # 12 bytes: the size, the name, and the checksum after the data
        if name in _DRAWN_CHUNKS:
            chunks.append(data[at:end])
        elif name == b"eXIf" and (orientation := exif.read_orientation(data[at + 8 : end - 4])):
            content = name + exif.encode_orientation(orientation)
            chunks += [(len(content) - 4).to_bytes(4), content, binascii.crc32(content).to_bytes(4)]
        if name == b"IEND":
            break
        at = end
    return b"".join(chunks)


_CLEANERS: dict[str, Callable[[bytes], bytes]] = {
    "image/png": _clean_png,
    "image/jpeg": jpeg.without_text,
    "image/gif": gif.without_text,
    "image/webp": webp.without_text,
}


def base64_without_text(text: str) -> str:
    """Return the base64 of a picture without its text; any other text unchanged."""
    try:
        data = base64.b64decode(text) if text.lstrip().startswith(_IN_BASE64) else b""
    except (binascii.Error, ValueError):
        return text
    clean = without_text(data)
    return text if clean is data else base64.b64encode(clean).decode()
