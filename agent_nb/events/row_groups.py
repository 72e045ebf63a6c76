"""The rows of a DataFrame by type, and the values that its columns read from them.

Rows are grouped by type once, and each column then reads one attribute of all rows of a type. This
is several times faster than a dictionary per event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .column_type import Column, Getter
from .rows import Places
from .types import Event

Array = NDArray[Any]
Positions = Array | slice  # of some rows
# of a column, for each type of rows: their positions and their values. A frame of three rows whose
# second is a call may have [([1], ["search"]), ([0, 2], ["Hello", "Bye"])]
Parts = list[tuple[Positions, list[Any]]]
NAT = np.iinfo(np.int64).min  # what numpy stores for NaT
_ALL = slice(None)  # the positions of all rows
_LATEST_TIME = 2.0**50  # milliseconds (the year 37,648); a larger number is not a time


class RowGroups:
    """The rows of one frame, grouped by type.

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

    def fill(
        self, parts: Parts, convert: Callable[[list[Any]], Array], empty: Any, dtype: Any
    ) -> Array:
        """Return an array with the converted values of the parts, `empty` at other positions."""
        array = np.full(len(self.rows), empty, dtype)
        for positions, values in parts:
            array[positions] = convert(values)
        return array

    @cached_property
    def runs(self) -> tuple[Array, list[Any]]:
        """The index of each row's run in the list of run ids, and that list."""
        return index_distinct([row.run for row in self.rows])

    @cached_property
    def times(self) -> Array:
        """The time of each row as datetime64[ms]."""
        return to_milliseconds([row.ts for row in self.rows], zero=False).view("M8[ms]")

    @cached_property
    def elapsed(self) -> Array:
        """The time since the first event of the same run as timedelta64[ms]."""
        codes, runs = self.runs
        timed_rows = np.flatnonzero(~np.isnat(self.times))[::-1]
        first = np.full(len(runs), NAT, np.int64).view("M8[ms]")
        # the rows come in reverse: the last assignment to a run is its first time
        first[codes[timed_rows]] = self.times[timed_rows]
        elapsed: Array = self.times - first[codes]
        return elapsed


def _read_values(getter: Getter, rows: list[Any]) -> list[Any]:
    """Return what an attribute name or a function gives for each row."""
    return list(map(attrgetter(getter) if isinstance(getter, str) else getter, rows))


def index_distinct(values: list[Any]) -> tuple[Array, list[Any]]:
    """Return the index of each value in the list of distinct values, and that list."""
    distinct = list(dict.fromkeys(values))
    if len(distinct) == 1:
        return np.zeros(len(values), np.int32), distinct
    index_of = {v: i for i, v in enumerate(distinct)}
    return np.fromiter(map(index_of.__getitem__, values), np.int32, len(values)), distinct


def to_milliseconds(seconds: Array | list[Any], *, zero: bool) -> Array:
    """Return seconds as whole ms; NaT for None, values out of range and, unless `zero`, for 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        ms = np.array(seconds, np.float64) * 1000.0
        sound = np.abs(ms) < _LATEST_TIME
        sound &= (ms != 0.0) | zero
        # 0 in place of NaN, whose cast to an integer is undefined
        return np.where(sound, np.rint(ms), 0).astype(np.int64) + np.where(sound, 0, NAT)
