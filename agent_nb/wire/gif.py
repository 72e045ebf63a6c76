"""Removes the text from a GIF: comments and data of applications (why: `media`).

Rule: frames stay byte for byte, and so do the number of repetitions and the colour profile. Data
after the end of the picture are dropped; of a file that breaks off, all that can be read stays.
"""

from __future__ import annotations

from collections.abc import Iterator

_HEAD = 13  # bytes before the global table of colours; the flags are the third from the end
_EXTENSION, _FRAME, _END = 0x21, 0x2C, 0x3B  # first bytes of blocks
_TIMING, _APPLICATION = 0xF9, 0xFF  # labels of extensions
# applications whose data are kept: repetition, and the colour profile
_NEEDED = (b"\x0bNETSCAPE2.0", b"\x0bANIMEXTS1.0", b"\x0bICCRGBG1012")


def without_text(data: bytes) -> bytes:
    """Return a GIF without comments, plain text and data of applications but `_NEEDED`."""
    return b"".join(_select_blocks(data))


def _select_blocks(data: bytes) -> Iterator[bytes]:
    """Yield the head, and each frame or needed extension as it is."""
    at = _HEAD + _colour_bytes(data, _HEAD - 3)
    yield data[:at]
    while at < len(data):
        kind, begin = data[at], at
        if kind == _EXTENSION:
            # first byte and label, then sub-blocks; of an application, the first one has the name
            at = _end_of_blocks(data, at + 2)
            if at <= len(data) and _is_needed(data[begin + 1], data[begin + 2 : begin + 14]):
                yield data[begin:at]
        elif kind == _FRAME:
            # the first byte, 8 bytes of place and size, flags, colours, 1 byte of code size
            at = _end_of_blocks(data, at + 11 + _colour_bytes(data, at + 9))
            yield data[begin:at]
        elif kind == 0:  # some programs leave a byte too many
            at += 1
        else:
            yield data[at : at + 1] if kind == _END else b""
            return


def _is_needed(label: int, content: bytes) -> bool:
    """Return whether an extension changes how the picture looks."""
    return label == _TIMING or (label == _APPLICATION and content.startswith(_NEEDED))


def _colour_bytes(data: bytes, at: int) -> int:
    """Return the size in bytes of the colour table that the flags at `at` announce."""
    flags = data[at] if at < len(data) else 0
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _end_of_blocks(data: bytes, at: int) -> int:
    """Return where the sub-blocks that begin at `at` end; beyond the data if they break off.

    Each begins with its size; one of size 0 ends them.
    """
    while at < len(data) and data[at]:
        at += data[at] + 1
    return at + 1
