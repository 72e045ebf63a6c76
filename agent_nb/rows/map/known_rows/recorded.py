"""The rows in the log of a map: folded into its state `map.rows`, and what a recorded map says of
them.

Rule: what the first events of all records have in common (model, limits, the schema of the answer)
is written once (`record.inner_records` reads it).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

from ....events import Event, State
from ....record import Record, read_inner_records, stored_events
from ..row import Row, RowResult
from ..row_result import recorded_result

COUNTS = "map"  # of the event that holds the counts


def fold_records(records: Mapping[str, Record]) -> dict[str, Any]:
    """Return records as the payload of the state."""
    firsts = {
        key: events[0] for key, record in records.items() if (events := stored_events(record))
    }
    shared = reduce(_common, firsts.values()) if firsts else {}
    rows = {
        key: {**record, "events": [_without(firsts[key], shared), *stored_events(record)[1:]]}
        if key in firsts
        else record
        for key, record in records.items()
    }
    return {"shared": shared, "rows": rows}


def _common(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that two objects share, at any depth."""
    common: dict[str, Any] = {}
    for key in one.keys() & other.keys():
        a, b = one[key], other[key]
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            common[key] = _common(a, b)
        elif type(a) is type(b) and a == b:
            common[key] = a
    return common


def _without(whole: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return `whole` without what `shared` has of it."""
    left: dict[str, Any] = {}
    for key, value in whole.items():
        if key not in shared:
            left[key] = value
        elif isinstance(value, Mapping) and (rest := _without(value, shared[key])):
            left[key] = rest
    return left


def read_earlier_rows(logs: Iterable[Sequence[Event]]) -> dict[str, Record]:
    """Return the records of the rows in the logs of several maps, by key; the first log counts."""
    rows: dict[str, Record] = {}
    for log in logs:
        rows = {**read_inner_records(log), **rows}
    return rows


def count_unanswered_rows(log: Sequence[Event]) -> int:
    """Return how many rows of a recorded map were never over; 0 where its counts do not say."""
    return _difference(log, "total", "done")


def count_failed_rows(log: Sequence[Event]) -> int:
    """Return how many rows of a recorded map ended without an answer; 0 if it does not say."""
    return _difference(log, "done", "ok")


def _difference(log: Sequence[Event], all_: str, some: str) -> int:
    counts = next(
        (e.payload for e in reversed(log) if isinstance(e, State) and e.kind == COUNTS), None
    )
    figures = counts if isinstance(counts, Mapping) else {}
    whole, part = figures.get(all_), figures.get(some)
    return whole - part if type(whole) is int and type(part) is int else 0


def read_recorded_results(
    log: Sequence[Event], rows: Sequence[Row]
) -> Iterator[tuple[int, RowResult]]:
    """Yield index and result of each of the `rows` that the log of a map has a record of."""
    known = read_inner_records(log)
    for index, row in enumerate(rows):
        if (record := known.get(row.key)) is not None:
            yield (
                index,
                recorded_result(record, position=row.position, key=row.key, origin="record"),
            )
