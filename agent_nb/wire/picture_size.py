"""Reads the size of a picture from its first bytes, and writes the caption in its place.

A model that cannot see, a terminal and a text file need a text in place of a picture. The captions
of numbered figures have one form everywhere, so that `without_captions` finds them.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any

Size = tuple[int, int]
_CAPTIONS = re.compile(
    r"^\[figure \d+(?:: (?:\d+×\d+ pixels|an? \w+ chart))?\](?:\n|\Z)", re.MULTILINE
)
_JPEG_START = b"\xff\xd8\xff"
_HEAD_LENGTH = 88  # base64 characters in which all kinds but JPEG have their size
# JPEG markers in the range of the frame headers that are something else
_NO_SIZE = frozenset({0xC4, 0xC8, 0xCC})
_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD9)})  # JPEG markers without a length


def measure_picture(data: bytes) -> Size | None:
    """Return width and height of a PNG, JPEG, GIF or WebP; None if they cannot be read."""
    for signature, read in _READERS.items():
        if data.startswith(signature):
            try:
                return read(data)
            except (struct.error, IndexError):
                return None
    return None


def _read_webp(data: bytes) -> Size | None:
    """Read the size in the first chunk, whose kind decides how it is written."""
    kind = data[12:16]
    if kind == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if kind == b"VP8L":
        bits = struct.unpack_from("<I", data, 21)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


def _read_jpeg(data: bytes) -> Size | None:
    """Skip the segments before the frame header, and read the size there."""
    at = 2
    while at + 4 <= len(data):
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == 0xFF or marker in _WITHOUT_LENGTH:
            at += 1 if marker == 0xFF else 2
            continue
        if 0xC0 <= marker <= 0xCF and marker not in _NO_SIZE:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        at += 2 + struct.unpack_from(">H", data, at + 2)[0]
    return None


# first bytes -> function that reads the size
_READERS: dict[bytes, Callable[[bytes], Size | None]] = {
    b"\x89PNG\r\n\x1a\n": lambda data: struct.unpack_from(">II", data, 16),
    _JPEG_START: _read_jpeg,
    b"GIF8": lambda data: struct.unpack_from("<HH", data, 6),
    b"RIFF": _read_webp,
}


def size_of(attachment: Mapping[str, Any]) -> Size | None:
    """Return width and height of an attachment with base64 `data`, None if it has no such size."""
    data = attachment.get("data")
    if not isinstance(data, str):
        return None
    try:
        head = base64.b64decode(data[:_HEAD_LENGTH])
        return measure_picture(base64.b64decode(data) if head.startswith(_JPEG_START) else head)
    except (binascii.Error, ValueError):
        return None


def describe_size(attachment: Mapping[str, Any]) -> str:
    """Return the size of an attachment as text, such as `700×300`; "" if it is unknown."""
    size = size_of(attachment)
    return f"{size[0]}×{size[1]}" if size else ""


def describe_picture(name: str | int, attachment: Mapping[str, Any], unsent: str = "") -> str:
    """Return the caption in place of a picture, such as `[figure 1: 700×300 pixels]`.

    `name` is a picture's name, or its number among the figures of a result. `unsent` says why it is
    not sent: `[a picture the model cannot see: figure 1, 700×300]`.
    """
    if isinstance(name, int):
        name = f"figure {name}"
    size = describe_size(attachment)
    if unsent:
        return f"[{unsent}: {name}{f', {size}' if size else ''}]"
    return f"[{name}: {size} pixels]" if size else f"[{name}]"


def without_captions(text: str) -> str:
    """Return the text of a result without the lines that only name a figure."""
    return _CAPTIONS.sub("", text)
