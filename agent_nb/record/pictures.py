"""Whether two pictures look the same.

Why: a figure that is drawn again is rarely the same file.

Rules
- Equal files are the same. Figures with data of what they show compare by these (`figure_data`), if
  the same version of the library drew both.
- Figures without such data are the same with equal size, and at most one pixel in a hundred whose
  red, green, blue or opacity differs by more than 16 of 255. Other pictures must be the same in
  each tile, too; there a pixel may have any value between its neighbours, as edges are smoothed.
- Pictures come from strangers: only the `FORMATS` are opened, and only up to `LARGEST` pixels;
  others compare by their bytes.
- Pillow is optional; without it, pictures are not compared, and the result says so.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ..wire import measure_picture
from .figure_data import FIGURE_KEY, SameText, compare_figure_data, read_figure_data

PICTURE_TYPES = ("image/png", "image/jpeg")
FORMATS = ("PNG", "JPEG", "GIF", "WEBP")  # Pillow reads others with programs such as Ghostscript
LARGEST = 40_000_000  # pixels
OFF = 16  # tolerated difference of a channel, of 255
SHARE = 0.01  # of the pixels may differ more
TILE = 16  # pixels of a tile's side
# of a tile's pixels this share may lie so far (of 255) outside the values around them
TILES = ((64, 0.01), (OFF, 0.25))
PIXELS = "{}: its pixels are compared, and one in a hundred may differ"

Picture = str | Mapping[str, Any]  # in base64, or an attachment


class Comparison(msgspec.Struct, frozen=True):
    """The difference in words ("" if none), and why it could not be seen ("" if it could).

    `note`: why only the pixels of a figure were compared.
    """

    difference: str = ""
    unseen: str = ""
    note: str = ""


def compare_all_pictures(
    recorded: Sequence[Picture], fresh: Sequence[Picture], same_text: SameText = str.__eq__
) -> Comparison:
    """Compare pictures in their order; a difference names the first that differs."""
    if len(recorded) != len(fresh):
        now, before = len(fresh), len(recorded)
        return Comparison(
            f"it shows {now} picture{'' if now == 1 else 's'}, and the recording {before}"
        )
    unseen = note = ""
    for number, pair in enumerate(zip(recorded, fresh, strict=True), 1):
        comparison = compare_pictures(*pair, same_text)
        if comparison.difference:
            return Comparison(f"figure {number}: {comparison.difference}", unseen, note)
        unseen, note = unseen or comparison.unseen, note or comparison.note
    return Comparison(unseen=unseen, note=note)


def compare_pictures(
    recorded: Picture | None,
    fresh: Picture | None,
    same_text: SameText = str.__eq__,
    *,
    figure: bool = False,
) -> Comparison:
    """Compare two pictures; None stands for a missing one.

    `same_text` compares the texts of figures. `figure`: it is known to be one, without data.
    """
    old, new = _data(recorded), _data(fresh)
    if old == new:
        return Comparison()
    if not isinstance(old, str) or not isinstance(new, str):
        return Comparison("a picture is missing" if old else "there is a picture")
    before, now = (read_figure_data(_drawing(side)) for side in (recorded, fresh))
    if before is None or now is None:
        note = "a figure without data of what it shows"
        figure = figure or before is not None or now is not None
    elif before.library != now.library:
        note, figure = f"a figure of {before.library}, now {now.library}", True
    else:
        difference = compare_figure_data(before, now, same_text)
        if difference or not (before.partly or now.partly):
            return Comparison(difference)
        note, figure = "a figure with artists that are not read", True
    comparison = _compare_pixels(old, new, tiles=not figure)
    return msgspec.structs.replace(comparison, note=PIXELS.format(note)) if figure else comparison


def _data(picture: Picture | None) -> Any:
    return picture.get("data") if isinstance(picture, Mapping) else picture


def _drawing(picture: Picture | None) -> Any:
    return picture.get(FIGURE_KEY) if isinstance(picture, Mapping) else None


def _compare_pixels(recorded: str, fresh: str, *, tiles: bool) -> Comparison:
    try:
        from PIL import Image
    except ImportError:
        return Comparison(unseen="pictures are compared with Pillow: pip install pillow")
    try:
        files = [base64.b64decode(one) for one in (recorded, fresh)]
        sizes = [width * height for width, height in filter(None, map(measure_picture, files))]
        if max(sizes, default=0) > LARGEST:
            return _too_large(max(sizes))
        old, new = (Image.open(io.BytesIO(file), formats=FORMATS) for file in files)
        with old, new:
            return _compared(old, new, tiles=tiles)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return Comparison("it cannot be opened and is not the same file")


def _compared(old: Any, new: Any, *, tiles: bool) -> Comparison:
    from PIL import ImageChops

    if old.size != new.size:
        return Comparison(
            f"it is {new.size[0]} × {new.size[1]} pixels, not {old.size[0]} × {old.size[1]}"
        )
    size = old.size[0] * old.size[1]
    if size > LARGEST:
        return _too_large(size)
    old, new = old.convert("RGBA"), new.convert("RGBA")
    off = sum(_strongest(ImageChops.difference(old, new)).histogram()[OFF + 1 :])
    if off > SHARE * size:
        return Comparison(f"{off / size:.1%} of its pixels differ")
    return Comparison(_tile(old, new) if tiles and off else "")


def _strongest(picture: Any) -> Any:
    """Return the largest channel of each pixel."""
    from PIL import ImageChops

    first, *others = picture.split()
    for band in others:
        first = ImageChops.lighter(first, band)
    return first


def _tile(old: Any, new: Any) -> str:
    """Return where two pictures differ, "" if no tile does.

    A pixel that lies between its neighbours of the other picture is the same.
    """
    from PIL import ImageChops

    far = _strongest(ImageChops.lighter(_outside(old, new), _outside(new, old)))
    for least, share in TILES:
        shares = far.point([255 * (level > least) for level in range(256)]).reduce(TILE)
        worst = shares.getextrema()[1]
        if worst > share * 255:
            at = shares.tobytes().index(worst)
            x, y = (n * TILE for n in (at % shares.width, at // shares.width))
            return f"{worst / 255:.0%} of its pixels near ({x}, {y}) differ"
    return ""


def _outside(picture: Any, other: Any) -> Any:
    """Return how far each pixel lies outside the values around it in the other picture."""
    from PIL import ImageChops, ImageFilter

    low, high = (other.filter(kind(3)) for kind in (ImageFilter.MinFilter, ImageFilter.MaxFilter))
    return ImageChops.lighter(ImageChops.subtract(picture, high), ImageChops.subtract(low, picture))


def _too_large(size: int) -> Comparison:
    return Comparison(unseen=f"a picture of {size:,} pixels is too large to be compared")
