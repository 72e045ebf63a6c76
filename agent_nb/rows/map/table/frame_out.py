"""Makes the frame of a map's results: the data, with the answers in further columns.

    text                label     _run    _status  _error  _tokens  _cost   _seconds
    It works.           good      a1b2…   ok               120      0.0002  0.8
    It broke at once.             c3d4…   error    429 …   90               0.3

Rule: columns and types depend only on the data and the type of the answer, so that code which reads
the frame does not break because a row failed. The exception is a value that does not fit: it
changes the type of its column (`pandas_out`, `polars_out`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from operator import attrgetter
from types import ModuleType
from typing import Any

import msgspec

from ....agent import OutputType
from ..row import RowResult
from . import pandas_out, polars_out
from .answer_fields import Column, Kind, Shape, answer_columns
from .rows import Rows

PREFIX = "out_"
REPEAT = "_repeat"
#: name of a column -> the kind of its values, and the function that reads the value from an item
Columns = Mapping[str, tuple[Kind, Callable[[Any], Any]]]
COLUMNS: Columns = {  # after the answer, read from a RowResult
    "_run": ("text", lambda r: r.run or None),
    "_status": ("text", lambda r: r.status),
    "_error": ("text", lambda r: None if r.status == "ok" else r.error or r.kind or None),
    "_tokens": ("count", lambda r: r.input + r.written),
    "_cost": ("float", lambda r: r.cost),
    "_seconds": ("float", lambda r: r.seconds if r.run else None),
}
_FRAMES: Mapping[str, ModuleType] = {"pandas": pandas_out, "polars": polars_out}


def frame_out(
    rows: Rows,
    results: Iterable[RowResult],
    output: OutputType | None = None,
    more: Iterable[tuple[str, Column]] = (),
    why: str = "",
) -> Any:
    """Return the frame of the results of all rows and repeats, which are in the order of the rows.

    The original columns come first, then those of the answer, `_repeat` if rows were asked several
    times, `COLUMNS`, and `more`: (name, column) pairs with a value for each result. A row that did
    not end `ok` has no answer. `output`: the type of the answers. `why`: the reason why rows were
    not asked, for their `_error`.
    """
    listed = list(results)
    if why:
        error = f"not asked: {why}"
        for n, each in enumerate(listed):
            if each.status == "pending":
                listed[n] = msgspec.structs.replace(each, error=error)
    # with more results than rows, each row was asked several times
    repeats = None if len(listed) == len(rows) else [result.position for result in listed]
    return add_columns(rows, repeats, [*_make_columns(listed, repeats, output), *more])


def add_columns(
    rows: Rows, positions: Sequence[int] | None, columns: Sequence[tuple[str, Column]]
) -> Any:
    """Return the rows at `positions` (None: all), as the kind of the data, with further columns.

    A name that the data has already gets the prefix `out_`.
    """
    if (module := _FRAMES.get(rows.kind)) is not None:
        names = _resolve_names(columns, module.column_names(rows.data))
        return module.append_columns(rows.data, positions, names)
    named = _resolve_names(columns, set(rows.names))
    if positions is None:
        positions = range(len(rows))
    rows_of_values = zip(*(column.values for column in named.values()), strict=True)
    return [
        {**_original_values(rows, position), **dict(zip(named, values, strict=True))}
        for position, values in zip(positions, rows_of_values, strict=True)
    ]


def _make_columns(
    results: Sequence[RowResult], repeats: Sequence[int] | None, output: OutputType | None
) -> list[tuple[str, Column]]:
    """Return the columns of the results, with the names that they get if these are free.

    `repeats`: the position of each result if rows were asked several times, else None.
    """
    fields = answer_columns(output)
    value_of = attrgetter("answer" if output is None else "output")
    answers = [value_of(result) if result.status == "ok" else None for result in results]
    columns = [
        (name, Column(fields.shapes[name], values))
        for name, values in fields.columns(answers).items()
    ]
    if repeats is not None:
        numbers: defaultdict[int, Iterator[int]] = defaultdict(count)  # of each row, from 0
        repeat_numbers = [next(numbers[row]) for row in repeats]
        columns.append((REPEAT, Column(Shape("count"), repeat_numbers)))
    return [*columns, *read_columns(COLUMNS, results)]


def read_columns(columns: Columns, items: Sequence[Any]) -> list[tuple[str, Column]]:
    """Return columns with their names; each item gives one value of each column."""
    return [
        (name, Column(Shape(kind), [value(item) for item in items]))
        for name, (kind, value) in columns.items()
    ]


def _resolve_names(columns: Sequence[tuple[str, Column]], existing: set[str]) -> dict[str, Column]:
    """Return the columns by name; a name that is `existing`, or used before, gets the prefix."""
    named: dict[str, Column] = {}
    for wanted, column in columns:
        name = wanted
        while name in existing or name in named:
            name = PREFIX + name
        named[name] = column
    return named


def _original_values(rows: Rows, position: int) -> dict[Any, Any]:
    """Return the original values of a row of dicts or texts."""
    item = rows.data[position]
    if rows.kind == "texts":
        return {rows.names[0]: item}
    return {label: item.get(label) for label in rows.labels}
