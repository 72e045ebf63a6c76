"""A figure as data (its artists with texts, numbers and styles), and how two figures differ.

Why not pixels alone: a changed digit of a title, or one outlier, changes fewer pixels than another
version of a font does. Data differ only where the figure does, and a difference can be named. Texts
are compared by the caller's function, because the caller knows the masks.

Rule: data of two versions of the drawing library must not be compared, because defaults and
locators change; `pictures` checks that before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import msgspec

from ..wire import cut_end

LARGEST = 100_000  # bytes of JSON of one figure
_LONGEST_QUOTE = 60  # characters of a text in a difference

SameText = Callable[[str, str], bool]  # whether two texts count as equal


class Numbers(msgspec.Struct, frozen=True, omit_defaults=True):
    """An array: its `values` (None: not finite), or of a long one their count, extremes and `hash`.

    The hash covers the rounded numbers (`GRID`). `within`: the tolerated difference, if it is not
    the usual share of the range.
    """

    GRID: ClassVar = 1_000_000  # steps of the range, to which numbers are rounded before hashing

    values: tuple[float | None, ...] = ()
    count: int = 0
    low: float = 0.0
    high: float = 0.0
    hash: str = ""
    within: float = 0.0

    @property
    def scale(self) -> float:
        """The range of the numbers; if all are equal, the absolute value of one (1 for 0)."""
        known = [v for v in self.values if v is not None] or [self.low, self.high]
        # not infinite, since an infinite tolerance would hide every difference
        return min((max(known) - min(known)) or abs(known[0]) or 1.0, sys.float_info.max)


class ArtistData(msgspec.Struct, frozen=True, omit_defaults=True):
    """One artist (a line, an axis, a legend …), or a row of bars.

    `name` and `label` identify it for people. `each` is the word for one of a row ("bar"). `hash`
    covers the numbers and styles that are left out.
    """

    name: str
    label: str = ""
    each: str = ""
    hash: str = ""
    texts: dict[str, str] = {}
    numbers: dict[str, Numbers] = {}
    styles: dict[str, str] = {}


class FigureData(msgspec.Struct, frozen=True, omit_defaults=True):
    """A figure as data. `library`: the name and version of the library that drew the figure.

    `partly`: the data lack some of what the figure shows.
    """

    KEY: ClassVar = "drawing"  # the field of an attachment that holds the data of its figure

    library: str
    artists: tuple[ArtistData, ...] = ()
    partly: bool = False

    def to_json(self) -> dict[str, Any] | None:
        """Return the data as a record keeps them, None if they are too large."""
        text = msgspec.json.encode(self)
        return msgspec.json.decode(text, type=dict[str, Any]) if len(text) <= LARGEST else None

    @classmethod
    def read(cls, value: Any) -> FigureData | None:
        """Return the data from the JSON of a record or a tool; None if malformed or too large."""
        if not isinstance(value, Mapping):
            return None
        try:
            data = msgspec.convert(value, cls)
            return data if len(msgspec.json.encode(data)) <= LARGEST else None
        except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
            return None


# tolerated difference, as a share of the range: the numbers of both figures are rounded to the grid
_TOLERANCE = 2.5 / Numbers.GRID


def compare_figure_data(
    recorded: FigureData, fresh: FigureData, same_text: SameText = str.__eq__
) -> str:
    """Return the first difference of two figures in words, "" if there is none."""
    old_names, new_names = ([a.name for a in side.artists] for side in (recorded, fresh))
    if old_names != new_names:
        return _describe_other_artists(old_names, new_names)
    for old, new in zip(recorded.artists, fresh.artists, strict=True):
        if difference := next(_list_differences(old, new, same_text), ""):
            label = new.label or old.label
            return f"{new.name}{f' {_quote(label)}' if label else ''}: {difference}"
    return ""


def _describe_other_artists(old_names: list[str], new_names: list[str]) -> str:
    """Return in words how the artists of two figures differ by their names."""
    removed = [f"{name} is gone" for name in old_names if name not in new_names]
    added = [f"{name} is new" for name in new_names if name not in old_names]
    return ", ".join([*removed[:1], *added[:1]]) or "its artists are reordered"


def _list_differences(old: ArtistData, new: ArtistData, same_text: SameText) -> Iterator[str]:
    """Yield in words how two artists of one name differ."""
    if old.label != new.label and not same_text(old.label, new.label):
        yield f"its label was {_quote(old.label)}, is {_quote(new.label)}"
    yield from _compare_texts(old.texts, new.texts, same_text)
    for name in {**old.numbers, **new.numbers}:
        yield from _compare_numbers(name, new.each, old.numbers.get(name), new.numbers.get(name))
    yield from _compare_texts(old.styles, new.styles, str.__eq__)
    if old.hash != new.hash:
        yield "its numbers or colours changed"


def _compare_texts(old: dict[str, str], new: dict[str, str], same: SameText) -> Iterator[str]:
    """Yield how texts of the same names differ."""
    for name in {**old, **new}:
        was, now = old.get(name, ""), new.get(name, "")
        if was != now and not same(was, now):
            yield f"{name} was {_quote(was)}, is {_quote(now)}"


def _compare_numbers(
    name: str, each: str, old: Numbers | None, new: Numbers | None
) -> Iterator[str]:
    """Yield how two arrays differ."""
    if old is None or new is None:
        yield f"{name} is {'new' if old is None else 'gone'}"
        return
    count, new_count = (numbers.count or len(numbers.values) for numbers in (old, new))
    if count != new_count or len(old.values) != len(new.values):
        yield f"{name} has {new_count:,} values, not {count:,}"
        return
    tolerance = old.within or _TOLERANCE * max(old.scale, new.scale)
    for position, (a, b) in enumerate(zip(old.values, new.values, strict=True), 1):
        # written with `not <=`: a comparison with nan is false, and nan is a difference
        if a != b and (a is None or b is None or not abs(a - b) <= tolerance):
            where = name
            if count > 1 and each:
                where = f"{each} {position} {name}"
            elif count > 1:
                where = f"{name} value {position} of {count}"
            yield f"{where} was {_format_number(a)}, is {_format_number(b)}"
    if abs(old.low - new.low) > tolerance or abs(old.high - new.high) > tolerance:
        was, now = (f"{_format_number(s.low)} to {_format_number(s.high)}" for s in (old, new))
        yield f"{name} was {was}, is {now}"
    if old.hash != new.hash:
        yield f"some of the {count:,} values of {name} changed"


def _format_number(value: float | None) -> str:
    return "no number" if value is None else f"{value:.7g}"


def _quote(text: str) -> str:
    return repr(cut_end(text, _LONGEST_QUOTE))
