"""Removes the text from a WebP: XMP, unknown chunks, Exif except the orientation (why: `media`).

Rule: the chunks that draw the picture or a frame stay byte for byte. Data after the end of the file
are dropped; of a file that breaks off, the whole chunks stay.
"""

from __future__ import annotations

from collections.abc import Iterator

from . import exif

_HEAD = 12  # bytes of `RIFF`, the size and `WEBP`
_PIXELS = frozenset({b"VP8 ", b"VP8L", b"ALPH"})
_DRAWN = _PIXELS | {b"ANIM", b"ICCP"}
_FRAME = 16  # bytes of a frame before its chunks, which hold no further frames
_EXIF, _XMP = 0x08, 0x04  # flags in VP8X


def without_text(data: bytes) -> bytes:
    """Return a WebP without XMP, unknown chunks, and Exif data except the orientation."""
    end = min(len(data), 8 + int.from_bytes(data[4:8], "little"))
    body = b"".join(_select_chunks(data[_HEAD:end]))
    return b"RIFF" + (len(body) + 4).to_bytes(4, "little") + b"WEBP" + body


def _select_chunks(data: bytes) -> Iterator[bytes]:
    """Yield the needed chunks; the flags in VP8X name only the metadata that is left."""
    chunks = list(_split_chunks(data))
    # some programs copy the prefix `Exif` from JPEG
    blocks = (content.removeprefix(b"Exif\0\0") for name, content in chunks if name == b"EXIF")
    orientation = next(map(exif.read_orientation, blocks), 0)
    for name, content in chunks:
        if name == b"VP8X":
            flags = content[0] & ~(_EXIF | _XMP) | (_EXIF if orientation else 0) if content else 0
            yield _make_chunk(name, bytes([flags]) + content[1:])
        elif name == b"ANMF":
            drawn_chunks = (
                _make_chunk(*c) for c in _split_chunks(content[_FRAME:]) if c[0] in _PIXELS
            )
            yield _make_chunk(name, content[:_FRAME] + b"".join(drawn_chunks))
        elif name in _DRAWN:
            yield _make_chunk(name, content)
    if orientation:
        yield _make_chunk(b"EXIF", exif.encode_orientation(orientation))


def _split_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield (name, content) of each whole chunk; odd sizes are padded to even ones."""
    at = 0
    while at + 8 <= len(data):
        begin, size = at + 8, int.from_bytes(data[at + 4 : at + 8], "little")
        if begin + size > len(data):
            return
        yield data[at : at + 4], data[begin : begin + size]
        at = begin + size + size % 2


def _make_chunk(name: bytes, content: bytes) -> bytes:
    return name + len(content).to_bytes(4, "little") + content + b"\0" * (len(content) % 2)
