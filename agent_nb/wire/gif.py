"""A GIF without the text in it: no comment and no data of applications.

Rules
- Frames stay as they are, byte for byte, and so do how often they repeat and the colour profile.
- Data after the end of the picture are dropped; a file that breaks off keeps what can be read.
"""

from __future__ import annotations

from collections.abc import Iterator

_HEAD = 13  # bytes before the colours
_EXTENSION, _FRAME, _END = 0x21, 0x2C, 0x3B
_TIMING, _APPLICATION = 0xF9, 0xFF
_NEEDED = (b"\x0bNETSCAPE2.0", b"\x0bANIMEXTS1.0", b"\x0bICCRGBG1012")


def without_text(data: bytes) -> bytes:
    """Return a GIF without comments, plain text and data of applications."""
    return b"".join(_kept(data))


def _kept(data: bytes) -> Iterator[bytes]:
    at = _HEAD + _colours(data, _HEAD - 3)
    yield data[:at]
    while at < len(data):
        kind, begin = data[at], at
        if kind == _EXTENSION:
            at = _after(data, at + 2)
            if at <= len(data) and _draws(data[begin + 1], data[begin + 2 : begin + 14]):
                yield data[begin:at]
        elif kind == _FRAME:
            at = _after(data, at + 11 + _colours(data, at + 9))
            yield data[begin:at]
        elif kind == 0:  # some programs leave a byte too many
            at += 1
        else:
            yield data[at : at + 1] if kind == _END else b""
            return


def _draws(label: int, content: bytes) -> bool:
    return label == _TIMING or (label == _APPLICATION and content.startswith(_NEEDED))


def _colours(data: bytes, at: int) -> int:
    """Return the bytes of the table of colours that the flags at `at` announce."""
    flags = data[at] if at < len(data) else 0
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _after(data: bytes, at: int) -> int:
    """Return where the blocks that begin at `at` end, beyond the data if they break off."""
    while at < len(data) and data[at]:
        at += data[at] + 1
    return at + 1
