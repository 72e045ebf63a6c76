"""Events as a pandas DataFrame, column by column.

    to_frame(events)            one row per event, typed: categories, texts, seconds, counts
    to_frame(events, CALLS)     one row per tool call (also TURNS, RUNS); see `columns`
    to_frame(events, "all")     every column: also UTC datetimes, timedeltas, nested values

Why: rows are grouped by type once, and each column reads one attribute of all of them. This is
several times faster than a dictionary per event.

Rules
- A missing value is NaN, in times NaT, in nested values None, in a `bool` False, in a `count` 0. It
  is never an empty text, nor NA, which some libraries refuse. So an `int` column holds floats.
- An empty log has the same columns and types as a full one.
- Nested values stay objects, except in a `json` column; `event_frame` decides how a file gets them.
- No foreign value raises: impossible times are NaT, too large numbers NaN, or 0 in a `count`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.extensions import ExtensionArray

from .column_type import Column, Getter, replace_half_characters
from .columns import CALLS, EVENTS, RUNS, TURNS, choose_columns
from .event_frame import TEXT, EventFrame, as_json, text_array
from .rows import NOWHERE, Places, call_rows, run_rows, turn_rows
from .types import Event, Unknown

__all__ = ["CALLS", "EVENTS", "RUNS", "TURNS", "Column", "EventFrame", "to_frame"]

Array = NDArray[Any]
Values = Array | ExtensionArray  # of a whole column
Positions = Array | slice  # of some rows
# of a column, for each type of rows: their positions and their values. A frame of three rows whose
# second is a call may have [([1], ["search"]), ([0, 2], ["Hello", "Bye"])]
Parts = list[tuple[Positions, list[Any]]]
_ALL = slice(None)  # the positions of all rows
_LATEST_TIME = 2.0**50  # milliseconds (the year 37,648); a larger number is not a time
_LARGEST_INTEGER = 2**63 - 1  # of 64 bits
_NAT = np.iinfo(np.int64).min  # what numpy stores for NaT
# name of a table -> the function that makes its rows from events
_ROW_MAKERS: dict[str, Callable[[Sequence[Event], Places], Sequence[Any]]] = {
    "events": lambda events, _: events,
    "calls": call_rows,
    "turns": turn_rows,
    "runs": run_rows,
}


def to_frame(
    events: Iterable[Event],
    columns: Iterable[str | Column] | str | None = None,
    *,
    places: Places | None = None,
) -> EventFrame:
    """Return a typed frame of the events of one run or many.

    `columns`: see `columns.choose_columns`. `places` maps a run id to the cell and notebook in
    which the run was recorded. Raises UsageError for unknown columns.
    """
    chosen = choose_columns(columns)
    event_list = events if isinstance(events, list) else list(events)
    table = chosen[0].table if chosen else "events"
    builder = _Builder(_ROW_MAKERS[table](event_list, places or {}), places or {})
    return EventFrame({c.name: builder.column(c) for c in chosen}, copy=False)


class _Builder:
    """Makes the columns of one frame from its rows, grouped by type.

    `types`: the distinct types of the rows. `codes`: for each row, the index of its type in
    `types`.
    """

    def __init__(self, rows: Sequence[Any], places: Places) -> None:
        self.rows = rows if isinstance(rows, list) else list(rows)
        self.places = places
        types = list(map(type, self.rows))
        self.types = list(dict.fromkeys(types))
        index_of = {t: i for i, t in enumerate(self.types)}
        # `group` sorts the codes: in linear time if they have 8 bits
        code_type = np.int8 if len(index_of) < 128 else np.int32
        self.codes = np.fromiter(map(index_of.__getitem__, types), code_type, len(types))
        self._groups: dict[type, tuple[Array, list[Any]]] = {}

    def column(self, column: Column) -> Values:
        """Return the typed values of a column."""
        if column.derived:
            return _DERIVED_MAKERS[column.name](self)
        return _MAKERS[column.kind](self, self.parts(column))

    def parts(self, column: Column) -> Parts:
        """Return (positions, values) of a column for each row type; `_ALL` means every row."""
        if Event in column.of:  # a getter for Event applies to every row
            return [(_ALL, _read_values(column.of[Event], self.rows))]
        if len(self.types) == 1 and self.types[0] in column.of:
            return [(_ALL, _read_values(column.of[self.types[0]], self.rows))]
        groups = [(self.group(t), column.of[t]) for t in self.types if t in column.of]
        return [(positions, _read_values(getter, rows)) for (positions, rows), getter in groups]

    def group(self, row_type: type) -> tuple[Array, list[Any]]:
        """Return the positions and the rows of one type."""
        if not self._groups:
            # positions by type: a stable sort keeps the rows of a type in their order
            order = np.argsort(self.codes, kind="stable")
            by_type = np.fromiter(self.rows, object, len(self.rows))[order]
            ends = np.cumsum(np.bincount(self.codes, minlength=len(self.types)))
            starts = [0, *ends[:-1].tolist()]
            for each_type, start, end in zip(self.types, starts, ends.tolist(), strict=True):
                self._groups[each_type] = (order[start:end], by_type[start:end].tolist())
        return self._groups[row_type]

    def fill(self, parts: Iterable[tuple[Positions, Array]], empty: Any, dtype: Any) -> Array:
        """Return an array with the values of the parts, and `empty` at all other positions."""
        array = np.full(len(self.rows), empty, dtype)
        for positions, values in parts:
            array[positions] = values
        return array

    @cached_property
    def seconds(self) -> Array:
        """The time of each row in epoch seconds."""
        return np.array([row.ts for row in self.rows], np.float64)

    @cached_property
    def runs(self) -> tuple[Array, list[Any]]:
        """The index of each row's run in the list of run ids, and that list."""
        return _index_distinct([row.run for row in self.rows])

    @cached_property
    def times(self) -> Array:
        """The time of each row as datetime64[ms]."""
        return _milliseconds(self.seconds, zero=False).view("M8[ms]")

    @cached_property
    def elapsed(self) -> Array:
        """The time since the first event of the same run as timedelta64[ms]."""
        codes, runs = self.runs
        timed_rows = np.flatnonzero(~np.isnat(self.times))[::-1]
        first = np.full(len(runs), _NAT, np.int64).view("M8[ms]")
        # the rows come in reverse: the last assignment to a run is its first time
        first[codes[timed_rows]] = self.times[timed_rows]
        elapsed: Array = self.times - first[codes]
        return elapsed

    def categories(self, codes: Array, values: Iterable[Any]) -> Values:
        """Return a categorical: each row has the value at the index that is its code.

        The code -1, None and empty texts are missing values.
        """
        names = ["" if v is None else replace_half_characters(str(v)) for v in values]
        categories = list(dict.fromkeys(n for n in names if n))
        index_of = {name: i for i, name in enumerate(categories)}
        # the code -1 finds the last item, which is -1
        lookup = np.array([*(index_of.get(n, -1) for n in names), -1], np.int32)
        return pd.Categorical.from_codes(lookup[codes], categories=pd.Index(categories, dtype=TEXT))


def _read_values(getter: Getter, rows: list[Any]) -> list[Any]:
    """Return what an attribute name or a function gives for each row."""
    return list(map(attrgetter(getter) if isinstance(getter, str) else getter, rows))


def _index_distinct(values: list[Any]) -> tuple[Array, list[Any]]:
    """Return the index of each value in the list of distinct values, and that list."""
    distinct = list(dict.fromkeys(values))
    if len(distinct) == 1:
        return np.zeros(len(values), np.int32), distinct
    index_of = {v: i for i, v in enumerate(distinct)}
    return np.fromiter(map(index_of.__getitem__, values), np.int32, len(values)), distinct


def _make_category_column(builder: _Builder, parts: Parts) -> Values:
    codes = np.full(len(builder.rows), -1, np.int32)
    names: list[Any] = []
    for positions, values in parts:
        indices, distinct = _index_distinct(values)
        codes[positions] = indices + len(names)  # the names of this part follow the earlier ones
        names += distinct
    return builder.categories(codes, names)


def _make_text_column(builder: _Builder, parts: Parts) -> Values:
    texts: Values = text_array(_make_object_column(builder, parts))
    return texts


def _make_json_column(builder: _Builder, parts: Parts) -> Values:
    return _make_text_column(builder, [(at, list(map(as_json, values))) for at, values in parts])


def _make_object_column(builder: _Builder, parts: Parts) -> Values:
    return builder.fill(((at, np.fromiter(v, object, len(v))) for at, v in parts), None, object)


def _make_count_column(builder: _Builder, parts: Parts) -> Values:
    values = np.zeros(len(builder.rows), np.int64)
    for positions, numbers in parts:
        try:
            values[positions] = np.fromiter(numbers, np.int64, len(numbers))
        except (TypeError, OverflowError):  # foreign numbers beyond 64 bits
            values[positions] = [
                n if isinstance(n, int) and abs(n) <= _LARGEST_INTEGER else 0 for n in numbers
            ]
    return values


def _make_int_column(builder: _Builder, parts: Parts) -> Values:
    """Return floats, since an `int` may be missing and is then NaN."""
    try:
        return _make_float_column(builder, parts)
    except OverflowError:  # foreign numbers beyond a float
        return _make_float_column(builder, [(at, [_bound(n) for n in v]) for at, v in parts])


def _bound(number: int | None) -> int | None:
    """Return a number, None for one beyond 64 bits."""
    return number if number is not None and abs(number) <= _LARGEST_INTEGER else None


def _make_float_column(builder: _Builder, parts: Parts) -> Values:
    return builder.fill(((at, np.array(v, np.float64)) for at, v in parts), np.nan, np.float64)


def _make_bool_column(builder: _Builder, parts: Parts) -> Values:
    return builder.fill(((at, np.array(v, np.bool_)) for at, v in parts), False, np.bool_)


def _make_time_column(builder: _Builder, parts: Parts) -> Values:
    array = builder.fill(((at, _milliseconds(v, zero=False)) for at, v in parts), _NAT, np.int64)
    return _utc(array.view("M8[ms]"))


def _make_duration_column(builder: _Builder, parts: Parts) -> Values:
    array = builder.fill(((at, _milliseconds(v, zero=True)) for at, v in parts), _NAT, np.int64)
    values: Values = pd.array(array.view("m8[ms]"))
    return values


def _milliseconds(seconds: Array | list[Any], *, zero: bool) -> Array:
    """Return seconds as whole ms; NaT for None, values out of range and, unless `zero`, for 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        ms = np.array(seconds, np.float64) * 1000.0
        sound = np.abs(ms) < _LATEST_TIME
        sound &= (ms != 0.0) | zero
        # 0 in place of NaN, whose cast to an integer is undefined
        return np.where(sound, np.rint(ms), 0).astype(np.int64) + np.where(sound, 0, _NAT)


def _utc(times: Array) -> ExtensionArray:
    return pd.DatetimeIndex(times).tz_localize("UTC").array


# kind of a column -> the function that makes its typed values from its parts (`_Builder.parts`)
_MAKERS: dict[str, Callable[[_Builder, Parts], Values]] = {
    "category": _make_category_column,
    "text": _make_text_column,
    "json": _make_json_column,
    "count": _make_count_column,
    "int": _make_int_column,
    "float": _make_float_column,
    "bool": _make_bool_column,
    "time": _make_time_column,
    "duration": _make_duration_column,
    "object": _make_object_column,
}


def _make_type_column(builder: _Builder) -> Values:
    index_of = {t: i for i, t in enumerate(builder.types)}
    kinds = [getattr(t, "type", t.__name__) for t in index_of]
    if Unknown in index_of:  # each has the name that its source gave it
        codes = builder.codes.astype(np.int32)
        indices, distinct = _index_distinct([row.kind for row in builder.group(Unknown)[1]])
        codes[builder.codes == index_of[Unknown]] = indices + len(kinds)
        return builder.categories(codes, [*kinds, *distinct])
    return builder.categories(builder.codes, kinds)


def _make_seconds_column(builder: _Builder) -> Values:
    return np.where(np.isnat(builder.elapsed), np.nan, builder.elapsed.view(np.int64) / 1000.0)


def _place_maker(field: str) -> Callable[[_Builder], Values]:
    """Return a function that makes the column of one field of each row's `Place`."""

    def make_column(builder: _Builder) -> Values:
        codes, runs = builder.runs
        values = [getattr(builder.places.get(run, NOWHERE), field) for run in runs]
        return builder.categories(codes, values)

    return make_column


# derived column -> the function that makes it, from more than the row itself
_DERIVED_MAKERS: dict[str, Callable[[_Builder], Values]] = {
    "run": lambda builder: builder.categories(*builder.runs),
    "cell": _place_maker("cell"),
    "notebook": _place_maker("notebook"),
    "ts": lambda builder: _utc(builder.times),
    "dt": lambda builder: pd.array(builder.elapsed),
    "seconds": _make_seconds_column,
    "type": _make_type_column,
}
