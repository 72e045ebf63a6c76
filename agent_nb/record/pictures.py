"""Whether two pictures look the same.

Why: a figure that is drawn again is rarely the same file, byte for byte. Figures with data of the
same library version are compared by these data (`figure_data`), charts and tables by their JSON or
HTML (`displays`), all other pictures by pixels, of two animations the first ones.

Rules
- The pixels of a figure are compared as a whole, those of other pictures in tiles too: a figure
  drawn by another version of a library differs in many small ways.
- Pictures come from strangers: Pillow may open only `FORMATS`, and only up to `MOST_PIXELS`.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, ClassVar

import msgspec

from ..wire import Attachment, measure_picture
from .displays import DisplayPair
from .figure_data import FigureData, SameText, compare_figure_data

FORMATS = ("PNG", "JPEG", "GIF", "WEBP")  # Pillow reads others with programs such as Ghostscript
MOST_PIXELS = 40_000_000
MOST_LEVELS = 16  # of 255: a channel that differs by more makes its pixel count as different
MOST_DIFFERENT = 0.01  # the share of all pixels that may differ
TILE = 16  # pixels of a tile's side
# (levels, share): at most this share of a tile's pixels may lie more than so many levels (of 255)
# outside the values around them in the other picture
TILES = ((64, 0.01), (MOST_LEVELS, 0.25))
# the note of a comparison by pixels; {} says why
PIXELS_NOTE = "{}: its pixels are compared, and one in a hundred may differ"

Picture = str | Mapping[str, Any]  # base64, or an attachment with `data` in base64


class PictureComparison(msgspec.Struct, frozen=True):
    """How two pictures differ, in words.

    `difference`: what differs. `unseen`: why they could not be compared. Both are "" if the
    pictures look the same. `note`: why only the pixels of a figure were compared.
    """

    # the MIME types of a display that are compared
    TYPES: ClassVar = tuple(f"image/{name.lower()}" for name in FORMATS)

    difference: str = ""
    unseen: str = ""
    note: str = ""

    @classmethod
    def of_all(
        cls, recorded: Sequence[Picture], fresh: Sequence[Picture], same_text: SameText = str.__eq__
    ) -> PictureComparison:
        """Compare two lists pair by pair; a difference names the first pair that differs."""
        if len(recorded) != len(fresh):
            noun = "picture" if len(fresh) == 1 else "pictures"
            return cls(f"it shows {len(fresh)} {noun}, and the recording {len(recorded)}")
        unseen = note = ""
        for number, pair in enumerate(zip(recorded, fresh, strict=True), 1):
            comparison = cls.of_pair(*pair, same_text)
            if comparison.difference:
                is_display = any(isinstance(p, Mapping) and Attachment(p).display for p in pair)
                noun = "display" if is_display else "figure"
                return cls(f"{noun} {number}: {comparison.difference}", unseen, note)
            unseen, note = unseen or comparison.unseen, note or comparison.note
        return cls(unseen=unseen, note=note)

    @classmethod
    def of_pair(
        cls,
        recorded: Picture | None,
        fresh: Picture | None,
        same_text: SameText = str.__eq__,
        *,
        figure: bool = False,
    ) -> PictureComparison:
        """Compare two pictures; None stands for a missing one.

        `same_text` compares the texts of figures. `figure`: compare both as figures, even without
        data.
        """
        displays = [Attachment(p).display for p in (recorded, fresh) if isinstance(p, Mapping)]
        # a chart or a table is compared by its JSON or HTML, not by the picture beside it
        if any(displays):
            if not all(displays) or len(displays) == 1:
                return cls(f"it was {_name_kind(recorded)}, and is {_name_kind(fresh)}")
            return cls(DisplayPair(*displays).difference(same_text))
        # the base64 of each; an attachment may hold anything there
        old, new = (p.get("data") if isinstance(p, Mapping) else p for p in (recorded, fresh))
        if old == new:
            return cls()
        if not isinstance(old, str) or not isinstance(new, str):
            return cls("a picture is missing" if old else "there is a picture")
        old_data, new_data = (
            FigureData.read(p.get(FigureData.KEY) if isinstance(p, Mapping) else None)
            for p in (recorded, fresh)
        )
        if figure or old_data is not None or new_data is not None:
            return _compare_figures(old, new, old_data, new_data, same_text)
        return _compare_pixels(old, new, tiles=True)


def _compare_figures(
    old: str, new: str, old_data: FigureData | None, new_data: FigureData | None, same: SameText
) -> PictureComparison:
    """Compare two figures, given in base64, by their data, or by their pixels as a whole."""
    if old_data is None or new_data is None:
        why = "a figure without data of what it shows"
    elif old_data.library != new_data.library:
        why = f"a figure of {old_data.library}, now {new_data.library}"
    else:
        difference = compare_figure_data(old_data, new_data, same)
        if difference or not (old_data.partly or new_data.partly):
            return PictureComparison(difference)
        why = "a figure with artists that are not read"
    comparison = _compare_pixels(old, new, tiles=False)
    return msgspec.structs.replace(comparison, note=PIXELS_NOTE.format(why))


def _name_kind(picture: Picture | None) -> str:
    """Return in a word or two what an attachment shows."""
    mime_bundle = Attachment(picture).display if isinstance(picture, Mapping) else {}
    return next(
        filter(None, map(DisplayPair.kind_name, mime_bundle)),
        "text" if mime_bundle else "a picture",
    )


def _compare_pixels(old: str, new: str, *, tiles: bool) -> PictureComparison:
    """Open two pictures in base64 and compare their pixels; with `tiles`, each tile too."""
    try:
        from PIL import Image
    except ImportError:
        return PictureComparison(unseen="pictures are compared with Pillow: pip install pillow")
    try:
        files = [base64.b64decode(picture) for picture in (old, new)]
        # checked before anything is opened; a format that cannot be measured is checked afterwards
        sizes = [width * height for width, height in filter(None, map(measure_picture, files))]
        if max(sizes, default=0) > MOST_PIXELS:
            return _refuse_large(max(sizes))
        old_picture, new_picture = (Image.open(io.BytesIO(f), formats=FORMATS) for f in files)
        with old_picture, new_picture:
            return _compare_opened(old_picture, new_picture, tiles=tiles)
    # Pillow raises SyntaxError for a damaged PNG
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return PictureComparison("it cannot be opened and is not the same file")


def _compare_opened(old: Any, new: Any, *, tiles: bool) -> PictureComparison:
    """Compare two pictures that Pillow has opened."""
    from PIL import ImageChops

    if old.size != new.size:
        return PictureComparison(
            f"it is {new.size[0]} × {new.size[1]} pixels, not {old.size[0]} × {old.size[1]}"
        )
    size = old.size[0] * old.size[1]
    if size > MOST_PIXELS:
        return _refuse_large(size)
    moves = any(getattr(picture, "is_animated", False) for picture in (old, new))
    # multiplied by alpha: the colour of a transparent pixel is not seen
    old, new = (picture.convert("RGBA").convert("RGBa") for picture in (old, new))
    differing = sum(
        _largest_channel(ImageChops.difference(old, new)).histogram()[MOST_LEVELS + 1 :]
    )
    if differing > MOST_DIFFERENT * size:
        return PictureComparison(f"{differing / size:.1%} of its pixels differ")
    unseen = "an animation after its first picture" if moves else ""
    return PictureComparison(_describe_tile(old, new) if tiles and differing else "", unseen)


def _largest_channel(picture: Any) -> Any:
    """Return the largest channel of each pixel."""
    from PIL import ImageChops

    return reduce(ImageChops.lighter, picture.split())


def _describe_tile(old: Any, new: Any) -> str:
    """Return where two pictures differ, "" if no tile does (`TILES`).

    A pixel whose value lies between those around it in the other picture counts as the same.
    """
    from PIL import ImageChops

    distance = _largest_channel(
        ImageChops.lighter(_measure_excess(old, new), _measure_excess(new, old))
    )
    for limit, share in TILES:
        # 255 where a pixel is farther outside, else 0; `reduce` takes the mean of each tile, which
        # is 255 times the share of such pixels
        shares = distance.point([255 * (level > limit) for level in range(256)]).reduce(TILE)
        worst = shares.getextrema()[1]
        if worst > share * 255:
            index = shares.tobytes().index(worst)
            x, y = (n * TILE for n in (index % shares.width, index // shares.width))
            return f"{worst / 255:.0%} of its pixels near ({x}, {y}) differ"
    return ""


def _measure_excess(picture: Any, other: Any) -> Any:
    """Return how far each pixel lies outside the values around it in the other picture."""
    from PIL import ImageChops, ImageFilter

    # the least and the largest value among 3 × 3 pixels; `subtract` is never below 0
    low, high = (other.filter(kind(3)) for kind in (ImageFilter.MinFilter, ImageFilter.MaxFilter))
    return ImageChops.lighter(ImageChops.subtract(picture, high), ImageChops.subtract(low, picture))


def _refuse_large(size: int) -> PictureComparison:
    return PictureComparison(unseen=f"a picture of {size:,} pixels is too large to be compared")
