"""The one tag of Exif data that a picture needs: how it is turned."""

from __future__ import annotations

_TURNED = 0x0112  # the tag of the orientation
_UPRIGHT = 1


def read_orientation(tiff: bytes) -> int:
    """Return how Exif data turn a picture (2 to 8), 0 if they do not."""
    if tiff[:2] not in (b"II", b"MM"):
        return 0
    order = "little" if tiff[:2] == b"II" else "big"

    def number(at: int, size: int) -> int:
        return int.from_bytes(tiff[at : at + size], order)  # type: ignore[arg-type]  # a literal

    first = number(4, 4)
    for entry in range(first + 2, min(first + 2 + 12 * number(first, 2), len(tiff) - 11), 12):
        if number(entry, 2) == _TURNED:
            turned = number(entry + 8, 2)
            return turned if _UPRIGHT < turned <= 8 else 0
    return 0


def encode_orientation(turned: int) -> bytes:
    """Return Exif data that say nothing but the orientation."""
    tag = b"".join(
        n.to_bytes(size, "little") for n, size in ((_TURNED, 2), (3, 2), (1, 4), (turned, 4))
    )
    return b"II*\0\x08\0\0\0" + b"\x01\0" + tag + b"\0\0\0\0"
