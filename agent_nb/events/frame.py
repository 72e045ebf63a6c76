"""Events as a pandas DataFrame, column by column.

    to_frame(events)            one row per event, typed: categories, texts, seconds, counts
    to_frame(events, CALLS)     one row per tool call (also TURNS, RUNS); see `columns`
    to_frame(events, "all")     every column: also UTC datetimes, timedeltas, nested values

`row_groups` finds the values of a column; this file gives them the type that pandas has for them.

Rules
- A missing value is NaN, in times NaT, in nested values None, in a `bool` False, in a `count` 0. It
  is never NA, which some libraries refuse; so an `int` column holds floats.
- An empty log has the same columns and types as a full one.
- Numbers and times of foreign streams do not raise: impossible times are NaT, too large numbers
  NaN, or 0 in a `count`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from .column_type import Column, replace_half_characters
from .columns import CALLS, EVENTS, RUNS, TURNS, choose_columns
from .event_frame import TEXT, EventFrame, as_json, text_array
from .row_groups import NAT, Array, Parts, RowGroups, index_distinct, to_milliseconds
from .rows import NOWHERE, Places, call_rows, run_rows, turn_rows
from .types import Event, Unknown

__all__ = ["CALLS", "EVENTS", "RUNS", "TURNS", "Column", "EventFrame", "to_frame"]

Values = Array | ExtensionArray  # of a whole column
_LARGEST_INTEGER = 2**63 - 1  # of 64 bits
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
    groups = RowGroups(_ROW_MAKERS[table](event_list, places or {}), places or {})
    return EventFrame({c.name: _make_column(groups, c) for c in chosen}, copy=False)


def _make_column(groups: RowGroups, column: Column) -> Values:
    """Return the typed values of a column."""
    if column.derived:
        return _DERIVED_MAKERS[column.name](groups)
    return _MAKERS[column.kind](groups, groups.parts(column))


def _make_categories(codes: Array, values: Iterable[Any]) -> Values:
    """Return a categorical: each row has the value at the index that is its code.

    The code -1, None and empty texts are missing values.
    """
    names = ["" if v is None else replace_half_characters(str(v)) for v in values]
    categories = list(dict.fromkeys(n for n in names if n))
    index_of = {name: i for i, name in enumerate(categories)}
    # numpy takes the index -1 for the last item: the code -1 stays -1
    lookup = np.array([*(index_of.get(n, -1) for n in names), -1], np.int32)
    return pd.Categorical.from_codes(lookup[codes], categories=pd.Index(categories, dtype=TEXT))


def _make_category_column(groups: RowGroups, parts: Parts) -> Values:
    codes = np.full(len(groups.rows), -1, np.int32)
    names: list[Any] = []
    for positions, values in parts:
        indices, distinct = index_distinct(values)
        codes[positions] = indices + len(names)  # the names of this part follow the earlier ones
        names += distinct
    return _make_categories(codes, names)


def _make_text_column(groups: RowGroups, parts: Parts) -> Values:
    texts: Values = text_array(_make_object_column(groups, parts))
    return texts


def _make_json_column(groups: RowGroups, parts: Parts) -> Values:
    return _make_text_column(groups, [(rows, list(map(as_json, values))) for rows, values in parts])


def _make_object_column(groups: RowGroups, parts: Parts) -> Values:
    return groups.fill(parts, lambda values: np.fromiter(values, object, len(values)), None, object)


def _make_count_column(groups: RowGroups, parts: Parts) -> Values:
    values = np.zeros(len(groups.rows), np.int64)
    for positions, numbers in parts:
        try:
            values[positions] = np.fromiter(numbers, np.int64, len(numbers))
        except (TypeError, OverflowError):  # foreign numbers beyond 64 bits
            values[positions] = [
                n if isinstance(n, int) and abs(n) <= _LARGEST_INTEGER else 0 for n in numbers
            ]
    return values


def _make_int_column(groups: RowGroups, parts: Parts) -> Values:
    """Return floats, since an `int` may be missing and is then NaN."""
    try:
        return _make_float_column(groups, parts)
    except OverflowError:  # foreign numbers beyond a float
        return groups.fill(
            parts,
            lambda values: np.array(list(map(_bound, values)), np.float64),
            np.nan,
            np.float64,
        )


def _bound(number: int | None) -> int | None:
    """Return a number, None for one beyond 64 bits."""
    return number if number is not None and abs(number) <= _LARGEST_INTEGER else None


def _make_float_column(groups: RowGroups, parts: Parts) -> Values:
    return groups.fill(parts, partial(np.array, dtype=np.float64), np.nan, np.float64)


def _make_bool_column(groups: RowGroups, parts: Parts) -> Values:
    return groups.fill(parts, partial(np.array, dtype=np.bool_), False, np.bool_)


def _make_time_column(groups: RowGroups, parts: Parts) -> Values:
    array = groups.fill(parts, partial(to_milliseconds, zero=False), NAT, np.int64)
    return _utc(array.view("M8[ms]"))


def _make_duration_column(groups: RowGroups, parts: Parts) -> Values:
    array = groups.fill(parts, partial(to_milliseconds, zero=True), NAT, np.int64)
    values: Values = pd.array(array.view("m8[ms]"))
    return values


def _utc(times: Array) -> ExtensionArray:
    return pd.DatetimeIndex(times).tz_localize("UTC").array


# kind of a column -> the function that makes its typed values from its parts (`RowGroups.parts`)
_MAKERS: dict[str, Callable[[RowGroups, Parts], Values]] = {
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


def _make_type_column(groups: RowGroups) -> Values:
    index_of = {t: i for i, t in enumerate(groups.types)}
    kinds = [getattr(t, "type", t.__name__) for t in index_of]
    if Unknown in index_of:  # each has the name that its source gave it
        codes = groups.codes.astype(np.int32)
        indices, distinct = index_distinct([row.kind for row in groups.group(Unknown)[1]])
        codes[groups.codes == index_of[Unknown]] = indices + len(kinds)
        return _make_categories(codes, [*kinds, *distinct])
    return _make_categories(groups.codes, kinds)


def _make_seconds_column(groups: RowGroups) -> Values:
    return np.where(np.isnat(groups.elapsed), np.nan, groups.elapsed.view(np.int64) / 1000.0)


def _place_maker(field: str) -> Callable[[RowGroups], Values]:
    """Return a function that makes the column of one field of each row's `Place`."""

    def make_column(groups: RowGroups) -> Values:
        codes, runs = groups.runs
        values = [getattr(groups.places.get(run, NOWHERE), field) for run in runs]
        return _make_categories(codes, values)

    return make_column


# derived column -> the function that makes it, from more than the row itself
_DERIVED_MAKERS: dict[str, Callable[[RowGroups], Values]] = {
    "run": lambda groups: _make_categories(*groups.runs),
    "cell": _place_maker("cell"),
    "notebook": _place_maker("notebook"),
    "ts": lambda groups: _utc(groups.times),
    "dt": lambda groups: pd.array(groups.elapsed),
    "seconds": _make_seconds_column,
    "type": _make_type_column,
}
