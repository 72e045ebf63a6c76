"""Whether two pictures look the same.

Why: a figure that is drawn again is rarely the same file.

Rules
- The same means: equal size, and at most one pixel in a hundred whose red, green, blue or opacity
  differs by more than 16 of 255.
- Pictures come from strangers: only the `FORMATS` are opened, and only up to `LARGEST` pixels;
  others compare by their bytes.
- Pillow is optional; without it, pictures are not compared, and the result says so.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from typing import Any

import msgspec

from ..wire.picture_size import pixels

TYPES = ("image/png", "image/jpeg")
FORMATS = ("PNG", "JPEG", "GIF", "WEBP")  # Pillow reads others with programs such as Ghostscript
LARGEST = 40_000_000  # pixels
OFF = 16  # tolerated difference of a channel, of 255
SHARE = 0.01  # of the pixels may differ more


class Comparison(msgspec.Struct, frozen=True):
    """The difference in words ("" if none), and why it could not be seen ("" if it could)."""

    difference: str = ""
    unseen: str = ""


def compare_all(recorded: Sequence[str], fresh: Sequence[str]) -> Comparison:
    """Compare pictures in base64, in their order; a difference names the first that differs."""
    if len(recorded) != len(fresh):
        now, before = len(fresh), len(recorded)
        return Comparison(
            f"it shows {now} picture{'' if now == 1 else 's'}, and the recording {before}"
        )
    unseen = ""
    for number, pair in enumerate(zip(recorded, fresh, strict=True), 1):
        found = compare(*pair)
        if found.difference:
            return Comparison(f"figure {number}: {found.difference}", unseen)
        unseen = unseen or found.unseen
    return Comparison(unseen=unseen)


def compare(recorded: Any, fresh: Any) -> Comparison:
    """Compare two pictures in base64; None stands for a missing picture."""
    if recorded == fresh:
        return Comparison()
    if not isinstance(recorded, str) or not isinstance(fresh, str):
        return Comparison("a picture is missing" if recorded else "there is a picture")
    try:
        from PIL import Image
    except ImportError:
        return Comparison(unseen="pictures are compared with Pillow: pip install pillow")
    try:
        files = [base64.b64decode(one) for one in (recorded, fresh)]
        sizes = [width * height for width, height in filter(None, map(pixels, files))]
        if max(sizes, default=0) > LARGEST:
            return _too_large(max(sizes))
        old, new = (Image.open(io.BytesIO(file), formats=FORMATS) for file in files)
        with old, new:
            return _compared(old, new)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return Comparison("it cannot be opened and is not the same file")


def _compared(old: Any, new: Any) -> Comparison:
    from PIL import ImageChops

    if old.size != new.size:
        return Comparison(
            f"it is {new.size[0]} × {new.size[1]} pixels, not {old.size[0]} × {old.size[1]}"
        )
    size = old.size[0] * old.size[1]
    if size > LARGEST:
        return _too_large(size)
    bands = ImageChops.difference(old.convert("RGBA"), new.convert("RGBA")).split()
    most = bands[0]
    for band in bands[1:]:
        most = ImageChops.lighter(most, band)
    off = sum(most.histogram()[OFF + 1 :])
    return Comparison(f"{off / size:.1%} of its pixels differ" if off > SHARE * size else "")


def _too_large(size: int) -> Comparison:
    return Comparison(unseen=f"a picture of {size:,} pixels is too large to be compared")
