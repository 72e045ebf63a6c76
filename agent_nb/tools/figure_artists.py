"""Read the data of a Matplotlib figure: its artists with their texts, numbers and styles.

Why: a replay draws the figure again and compares it with the recorded one (`record.figure_data`).
Pixels also change with the version of a font; the data change only with what the figure shows.

Rules
- A figure is read after it was drawn, because drawing sets limits and ticks.
- What the layout or a font decides is left out (positions of titles, sizes of boxes); the place of
  axes has a tolerance (`_LAYOUT_TOLERANCE`).
- An artist of an unknown kind is listed by name only, and the data are marked `partly`.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec

from ..record import ArtistData, FigureData, Numbers
from ..wire import cut_end, replace_surrogates

MOST_ARTISTS = 1_000  # artists of one figure that are read; groups of bars may exceed it
# the most numbers of an array that are listed (a longer array is hashed), and whether each artist
# is hashed; a figure whose data would be too large is read again with the next pair
_DETAILS = ((256, False), (8, False), (8, True))
_DIGITS = 7  # digits of a listed number that are kept below the first digit of the array's range
_LONGEST_TEXT = 1_000  # characters of a text
_MOST_SHAPES = 20_000  # shapes of a collection whose corners are read
_LAYOUT_TOLERANCE = 0.03  # tolerance of places, as a part of the figure: layouts depend on fonts
# properties of an artist that are its styles
_COLOUR_STYLES = ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor")
_PLAIN_STYLES = ("linestyle", "linewidth", "marker", "markersize", "drawstyle", "hatch", "alpha")


def is_figure(value: Any) -> bool:
    """Return whether a value is a figure of Matplotlib."""
    return "Figure" in _class_names(value)


def read_figure_data(figure: Any) -> dict[str, Any] | None:
    """Return the data of a drawn figure as JSON; None if too large, unreadable or no figure."""
    if not is_figure(figure):
        return None
    try:
        version = getattr(sys.modules.get("matplotlib"), "__version__", "")
        for most_listed, is_hashed in _DETAILS:
            reader = _Reader(most_listed)
            reader.read(figure, "")
            artists = map(_hash_artist, reader.artists) if is_hashed else reader.artists
            data = FigureData(f"matplotlib {version}", tuple(artists), partly=reader.partly)
            if (encoded := data.to_json()) is not None:
                return encoded
    except Exception:  # foreign code, such as the artists of other libraries
        return None
    return None


def _hash_artist(artist: ArtistData) -> ArtistData:
    """Return an artist with one hash in place of its numbers and styles."""
    data = msgspec.json.encode([artist.numbers, artist.styles], order="sorted")
    return ArtistData(
        artist.name, artist.label, artist.each, hashlib.sha256(data).hexdigest()[:16], artist.texts
    )


def _class_names(value: Any) -> list[str]:
    """Return the names of a value's classes that Matplotlib defines, the most derived first."""
    return [c.__name__ for c in type(value).__mro__ if c.__module__.startswith("matplotlib.")]


class _Reader:
    """Reads one figure into `artists`; `partly`: a part of the figure could not be read.

    `most_listed`: the most numbers of an array that are listed; a longer array is hashed. The
    methods in `_READERS` each read one kind of artist; `prefix` is the beginning of its name,
    such as `axes 2, `.
    """

    def __init__(self, most_listed: int) -> None:
        self.artists: list[ArtistData] = []
        self.partly = False
        self._most_listed = most_listed
        self._counts: dict[str, int] = {}  # name without its number -> artists that have it

    def read(self, artist: Any, prefix: str) -> None:
        """Read an artist and those inside it; `prefix` names their axes."""
        if not artist.get_visible():
            return
        if len(self.artists) >= MOST_ARTISTS:
            self.partly = True
            return
        getattr(self, _READERS.get(_find_kind(artist), "_read_unknown"))(artist, prefix)

    def _add(
        self,
        name: str,
        artist: Any,
        *,
        texts: Mapping[str, Any] = {},
        numbers: Mapping[str, Any] = {},
        styles: Mapping[str, Any] = {},
        counted: bool = True,
        each: str = "",
    ) -> None:
        """Add an artist. `counted`: number its name. `each`: the noun for one of its items."""
        if counted:
            self._counts[name] = self._counts.get(name, 0) + 1
            name = f"{name} {self._counts[name]}"
        label = _read_property(artist, "label")
        # None: the artist has no such property, or it is not numeric
        known = {k: v for k, v in numbers.items() if v is not None}
        arrays = {k: _read_numbers(v, self._most_listed) for k, v in known.items()}
        # a label that begins with `_` is Matplotlib's own
        self.artists.append(
            ArtistData(
                name=name,
                label=_cut_text(label) if isinstance(label, str) and label[:1] != "_" else "",
                each=each,
                texts={k: _cut_text(v) for k, v in texts.items() if v},
                numbers={k: v for k, v in arrays.items() if v is not None},
                styles={k: _cut_text(v) for k, v in styles.items() if v not in (None, "")},
            )
        )

    def _read_figure(self, figure: Any, prefix: str) -> None:
        top = "SubFigure" not in _class_names(figure)
        self._add(
            "figure" if top else "part of the figure",
            figure,
            numbers={"size": figure.get_size_inches()} if top else {},
            styles={"dpi": figure.dpi if top else "", "colour": _colour(figure.get_facecolor())},
            counted=not top,
        )
        names = ("suptitle", "supxlabel", "supylabel")
        titles = {name: getattr(figure, f"_{name}", None) for name in names}
        self._read_titles(titles, "figure's ")
        self._read_children(figure, "", [figure.patch, *titles.values()])

    def _read_axes(self, axes: Any, prefix: str) -> None:
        count = self._counts["axes"] = self._counts.get("axes", 0) + 1
        prefix = f"axes {count}, " if count > 1 else ""
        hidden = [axes.patch, *axes.spines.values()]
        if axes.axison:
            styles = {
                f"{n} spine": f"{_colour(s.get_edgecolor())} {s.get_linewidth():g}"
                for n, s in axes.spines.items()
                if s.get_visible()
            }
            styles["colour"] = _colour(axes.get_facecolor())
        else:
            styles = {"axis": "off"}
            hidden += [axes.xaxis, axes.yaxis]
        self._add(
            f"axes {count}",
            axes,
            numbers={
                # the viewing angles of axes with three dimensions
                **{n: [getattr(axes, n)] for n in ("elev", "azim", "roll") if hasattr(axes, n)},
                "place": Numbers(
                    tuple(round(float(v), 4) for v in axes.get_position().bounds),
                    within=_LAYOUT_TOLERANCE,
                ),
            },
            styles={"projection": getattr(axes, "name", ""), "aspect": axes.get_aspect(), **styles},
            counted=False,
        )
        titles = {
            "title": axes.title,
            "left title": axes._left_title,  # noqa: SLF001  (it has no public name)
            "right title": axes._right_title,  # noqa: SLF001
        }
        self._read_titles(titles, prefix)
        self._read_children(axes, prefix, [*hidden, *titles.values()])

    def _read_titles(self, titles: Mapping[str, Any], prefix: str) -> None:
        for name, title in titles.items():
            if title is not None and title.get_visible() and (text := title.get_text()):
                texts, styles = {"its text": text}, _text_styles(title)
                self._add(f"{prefix}{name}", title, texts=texts, styles=styles, counted=False)

    def _read_children(self, artist: Any, prefix: str, hidden: Sequence[Any]) -> None:
        """Read the artists inside one, except `hidden`; adjacent bars are read together."""
        children = (c for c in artist.get_children() if all(c is not h for h in hidden))
        for is_bar, group in groupby(children, lambda c: _find_kind(c) == "Rectangle"):
            if is_bar:
                self._read_bars([bar for bar in group if bar.get_visible()], prefix)
            else:
                for child in group:
                    self.read(child, prefix)

    def _read_axis(self, axis: Any, prefix: str) -> None:
        name = f"{prefix}{axis.axis_name} axis"
        labels = [label.get_text() for label in axis.get_ticklabels() if label.get_visible()]
        label, lines = axis.get_label(), axis.get_gridlines()
        self._add(
            name,
            axis,
            texts={
                "its label": label.get_text() if label.get_visible() else "",
                "its ticks": " | ".join(labels),
                "its factor": axis.get_offset_text().get_text(),
            },
            numbers={
                "its limits": list(axis.get_view_interval()),
                "its ticks": axis.get_ticklocs(),
            },
            styles={
                "its scale": axis.get_scale(),
                "its grid": "shown" if any(line.get_visible() for line in lines) else "",
                "its label's colour": _colour(label.get_color()),
            },
            counted=False,
        )

    def _read_line(self, line: Any, prefix: str) -> None:
        x, y = line.get_xdata(orig=False), line.get_ydata(orig=False)
        self._add(f"{prefix}line", line, numbers={"y": y, "x": x}, styles=_styles(line))

    def _read_text(self, text: Any, prefix: str) -> None:
        if not text.get_text():
            return
        numbers = {"place": text.get_position(), "target": getattr(text, "xy", None)}
        arrow = getattr(text, "arrow_patch", None)
        self._add(
            f"{prefix}text",
            text,
            texts={"its text": text.get_text()},
            numbers=numbers,
            styles={
                **_text_styles(text),
                "arrow": _styles(arrow).get("edgecolor", "") if arrow is not None else "",
            },
        )

    def _read_bars(self, bars: Sequence[Any], prefix: str) -> None:
        if not bars:
            return
        names = ("height", "width", "x", "y", "angle")
        of_bars = [_styles(bar) for bar in bars]
        listed = {n: [style[n] for style in of_bars] for n in of_bars[0]}
        # for each property its value, or those of all bars if they differ
        styles = {n: v[0] if len(set(v)) == 1 else " ".join(v) for n, v in listed.items()}
        labels = [str(bar.get_label()) for bar in bars]
        self._add(
            f"{prefix}bars",
            bars[0],
            each="bar",
            texts={"its labels": " | ".join(label for label in labels if label[:1] != "_")},
            numbers={n: [_read_property(bar, n) or 0 for bar in bars] for n in names},
            styles=styles,
        )

    def _read_patch(self, patch: Any, prefix: str) -> None:
        corners = patch.get_patch_transform().transform(patch.get_path().vertices)
        self._add(f"{prefix}shape", patch, numbers={"corners": corners}, styles=_styles(patch))

    def _read_collection(self, collection: Any, prefix: str) -> None:
        points = "PathCollection" in _class_names(collection)
        paths = collection.get_paths() or []
        values, colour_map = _read_mapping(collection)
        self.partly |= len(paths) > _MOST_SHAPES
        numpy = sys.modules["numpy"]
        corners = [path.vertices for path in paths[:_MOST_SHAPES]]
        offsets = numpy.ma.asarray(collection.get_offsets())
        self._add(
            f"{prefix}{'points' if points else 'collection'}",
            collection,
            numbers={
                "x": offsets[:, 0] if offsets.ndim == 2 else None,
                "y": offsets[:, 1] if offsets.ndim == 2 else None,
                **values,
                "sizes": _read_property(collection, "sizes"),
                "levels": getattr(collection, "levels", None),
                "coordinates": _read_property(collection, "coordinates"),
                "corners": numpy.concatenate(corners) if corners else None,
                **{n: getattr(collection, n, None) for n in ("U", "V")},
                "colours": None if values else collection.get_facecolor(),
                "edge colours": None if values else collection.get_edgecolor(),
                "line widths": collection.get_linewidth(),
            },
            styles={
                **colour_map,
                "linestyle": collection.get_linestyle(),
                "hatch": collection.get_hatch(),
                "alpha": _alpha(collection),
            },
        )

    def _read_image(self, image: Any, prefix: str) -> None:
        values, colour_map = _read_mapping(image)
        self._add(
            f"{prefix}image",
            image,
            numbers={**values, "extent": _read_property(image, "extent")},
            styles={
                **colour_map,
                "shape": "×".join(map(str, image.get_array().shape)),
                "interpolation": image.get_interpolation(),
                "origin": getattr(image, "origin", ""),
                "alpha": _alpha(image),
            },
        )

    def _read_legend(self, legend: Any, prefix: str) -> None:
        texts = [text.get_text() for text in legend.get_texts()]
        handles = getattr(legend, "legend_handles", None) or []
        styles: dict[str, Any] = {}
        for n, handle in enumerate(handles, 1):
            styles |= {f"entry {n}'s {name}": style for name, style in _styles(handle).items()}
        self._add(
            f"{prefix}legend",
            legend,
            texts={
                "its title": legend.get_title().get_text(),
                **{f"entry {n}": text for n, text in enumerate(texts, 1)},
            },
            styles={**styles, "place": getattr(legend, "_loc", "")},
        )

    def _read_table(self, table: Any, prefix: str) -> None:
        cells = sorted(table.get_celld().items())
        named = {f"cell {row + 1}, {column + 1}": cell for (row, column), cell in cells}
        self._add(
            f"{prefix}table",
            table,
            texts={name: cell.get_text().get_text() for name, cell in named.items()},
            styles={name: _styles(cell).get("facecolor", "") for name, cell in named.items()},
        )

    def _read_unknown(self, artist: Any, prefix: str) -> None:
        self._add(f"{prefix}{type(artist).__name__}", artist)
        self.partly = True


# Class name -> the method that reads such artists; the most derived class in it decides.
_READERS = {
    "FigureBase": "_read_figure",
    "_AxesBase": "_read_axes",
    "Axis": "_read_axis",
    "Line2D": "_read_line",
    "Text": "_read_text",
    "FancyArrowPatch": "_read_unknown",  # its corners are pixels
    "Patch": "_read_patch",
    "Collection": "_read_collection",
    "_ImageBase": "_read_image",
    "Legend": "_read_legend",
    "Table": "_read_table",
    "Artist": "_read_unknown",
}


def _read_property(artist: Any, name: str) -> Any:
    """Return a property of an artist, None if it has none of this name."""
    method = getattr(artist, f"get_{name}", None)
    return None if method is None else method()


def _read_numbers(value: Any, most_listed: int) -> Numbers | None:
    """Return `value` as Numbers, None if it is empty or not numeric."""
    if isinstance(value, Numbers):
        return value
    numpy = sys.modules["numpy"]
    array = numpy.ma.asarray(value)
    if array.dtype.kind not in "fiub" or not array.size:
        return None
    numbers = numpy.ma.filled(array.astype(float), numpy.nan).ravel()
    finite = numbers[numpy.isfinite(numbers)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    scale = min((high - low) or abs(high) or 1.0, sys.float_info.max)
    if numbers.size <= most_listed:
        return Numbers(_round_numbers(numbers, scale))
    return Numbers(
        count=int(numbers.size), low=low, high=high, hash=_hash_numbers(numbers, low, scale)
    )


def _round_numbers(numbers: Any, scale: float) -> tuple[float | None, ...]:
    # digits are counted from `scale`, so that large offsets do not hide small changes
    decimals = min(_DIGITS - math.floor(math.log10(scale)), 300)
    # `+ 0.0` turns -0.0 into 0.0
    return tuple(round(float(v), decimals) + 0.0 if math.isfinite(v) else None for v in numbers)


def _hash_numbers(numbers: Any, low: float, scale: float) -> str:
    """Hash numbers after rounding them to a grid, which removes the noise of rounding errors."""
    numpy = sys.modules["numpy"]
    # a quarter of each is exact, and a difference of two is never infinite
    steps = numpy.rint((numbers / 4 - low / 4) / (scale / 4) * Numbers.GRID)
    steps[~numpy.isfinite(numbers)] = -1  # no finite value has this step
    return hashlib.sha256(steps.astype("<i4").tobytes()).hexdigest()[:16]


def _cut_text(value: Any) -> str:
    return cut_end(replace_surrogates(str(value)), _LONGEST_TEXT)


def _find_kind(artist: Any) -> str:
    """Return the name of the class that decides how an artist is read, "" if it is no `Artist`."""
    # "Rectangle" is not in `_READERS`: `_read_children` reads rectangles together, as bars
    return next((n for n in _class_names(artist) if n in _READERS or n == "Rectangle"), "")


def _styles(artist: Any) -> dict[str, Any]:
    colours = {name: _colour(_read_property(artist, name)) for name in _COLOUR_STYLES}
    others = {name: _write_style(_read_property(artist, name)) for name in _PLAIN_STYLES}
    return {**colours, **others}


def _text_styles(text: Any) -> dict[str, Any]:
    names = ("rotation", "fontsize", "fontweight", "ha", "va", "alpha")
    styles = {name: _write_style(_read_property(text, name)) for name in names}
    return {"colour": _colour(text.get_color()), **styles}


def _write_style(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _colour(value: Any) -> str:
    """Return a colour as `#rrggbbaa`, however it is given; of an array, the first 20 colours."""
    if value is None:
        return ""
    if hasattr(value, "shape") and len(value.shape) > 1:
        return " ".join(map(_colour, value[:20]))
    try:
        return str(sys.modules["matplotlib.colors"].to_hex(value, keep_alpha=True))
    except (ValueError, KeyError):
        return str(value)


def _alpha(artist: Any) -> str:
    alpha = artist.get_alpha()
    return _write_style(alpha) if alpha is None or isinstance(alpha, int | float) else "by value"


def _read_mapping(artist: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Return numbers and styles: the values that an artist maps to colours, and how it maps them.

    Both are {} if it maps none.
    """
    array = artist.get_array()
    if array is None:
        return {}, {}
    limits: Sequence[Any] = artist.get_clim()
    numbers = {"values": array, "colour limits": limits if None not in limits else None}
    return numbers, {"colour map": artist.get_cmap().name, "scale": type(artist.norm).__name__}
