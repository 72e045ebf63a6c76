"""Reads and writes the orientation of a picture, the only tag of Exif data that changes its look.

All other Exif data are removed from pictures. Exif data are a TIFF header and a directory of
entries of 12 bytes: tag, type, count, value.
"""

from __future__ import annotations

_ORIENTATION = 0x0112
_UPRIGHT = 1


def read_orientation(tiff: bytes) -> int:
    """Return the orientation in Exif data (2 to 8), 0 for an upright picture or without one."""
    if tiff[:2] not in (b"II", b"MM"):
        return 0
    order = "little" if tiff[:2] == b"II" else "big"

    def number(at: int, size: int) -> int:
        return int.from_bytes(tiff[at : at + size], order)  # type: ignore[arg-type]  # a literal

    first = number(4, 4)
    for entry in range(first + 2, min(first + 2 + 12 * number(first, 2), len(tiff) - 11), 12):
        if number(entry, 2) == _ORIENTATION:
            orientation = number(entry + 8, 2)
            return orientation if _UPRIGHT < orientation <= 8 else 0
    return 0


def encode_orientation(orientation: int) -> bytes:
    """Return Exif data with the orientation alone: one entry of type SHORT (3), count 1."""
    tag = b"".join(
        n.to_bytes(size, "little")
        for n, size in ((_ORIENTATION, 2), (3, 2), (1, 4), (orientation, 4))
    )
    return b"II*\0\x08\0\0\0" + b"\x01\0" + tag + b"\0\0\0\0"
