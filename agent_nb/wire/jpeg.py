"""Removes the text from a JPEG: the place, the camera, comments (why: `media`).

Rule: the pixels, the colour profile and the orientation stay. Data after the end of the picture are
dropped; of a file that breaks off, all that can be read stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from . import exif

START = b"\xff\xd8"
END, SCAN = 0xD9, 0xDA  # markers
_EXIF = b"Exif\0\0"
_ICC = b"ICC_PROFILE\0"
# fill bytes, then a marker; 0xFF00 is data and 0xFFD0 to 0xFFD7 stand within a scan
_MARKER = re.compile(rb"\xff++([^\x00\xd0-\xd7])", re.DOTALL)
_SCAN_END = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]", re.DOTALL)  # the end of a scan's data


def without_text(data: bytes) -> bytes:
    """Return a JPEG without comments and needless data of applications; its orientation stays."""
    return b"".join((START, *_select_segments(data)))


def _select_segments(data: bytes) -> Iterator[bytes]:
    """Yield the needed segments as they are, and Exif reduced to the orientation."""
    at = len(START)
    while marker := _MARKER.match(data, at):
        kind, begin = marker[1][0], marker.end()
        if kind == END:
            yield b"\xff\xd9"
            return
        end = begin + int.from_bytes(data[begin : begin + 2])
        if end < begin + 2 or end > len(data):  # a size counts its own two bytes
            return
        content = data[begin + 2 : end]
        if kind == SCAN:
            next_marker = _SCAN_END.search(data, end)
            end = next_marker.start() if next_marker else len(data)
        if _is_needed(kind, content):
            yield data[marker.start() : end]
        elif orientation := _read_orientation(kind, content):
            yield _make_exif(orientation)
        at = end


def _is_needed(kind: int, content: bytes) -> bool:
    """Return whether a segment is needed to draw the picture.

    The only needed data of applications are APP0 (JFIF), APP14 (Adobe) and a colour profile;
    comments are not needed.
    """
    if kind in (0xE0, 0xEE):
        return True
    if kind == 0xE2:
        return content.startswith(_ICC)
    # 0xE0 to 0xEF are APP0 to APP15, the data of applications; 0xFE is a comment
    return not 0xE0 <= kind <= 0xEF and kind != 0xFE


def _read_orientation(kind: int, content: bytes) -> int:
    """Return the orientation in an Exif segment (2 to 8), 0 for none or another segment."""
    is_exif = kind == 0xE1 and content.startswith(_EXIF)
    return exif.read_orientation(content[len(_EXIF) :]) if is_exif else 0


def _make_exif(orientation: int) -> bytes:
    """Return an Exif segment with the orientation alone."""
    content = _EXIF + exif.encode_orientation(orientation)
    return b"\xff\xe1" + (len(content) + 2).to_bytes(2) + content
