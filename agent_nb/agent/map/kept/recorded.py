"""The rows that stand in the log of a map, in its state `map.rows`: `{"shared": …, "rows": …}`.

Rules
- `rows` is `{key: record}`. What the first events of all records have in common (model, limits, the
  schema of the answer) stands once, in `shared`; a record that is read is whole again.
- What is shared is read once for each row, so that a small file could unfold to gigabytes. A map
  records up to `UNFOLDED` bytes of rows, counted as if nothing were shared; where that would be far
  exceeded, the rows are ignored.
- Rows of a run that was followed from elsewhere do not count: the record of that run is the user's,
  its events are a stranger's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, TypeGuard

from ....events import Event, State
from ....record.record import Record
from ....record.size_limit import size
from ....wire.json_text import as_dict, as_list
from ..row import Row, RowResult
from ..row_result import recorded_result

COUNTS = "map"  # of the event that holds the counts
KIND = "map.rows"  # of the event that holds the records
UNFOLDED = 4_000_000  # bytes of JSON
_FAR = 4  # times as much; the length of the home folder's path differs between readers


def folded(records: Mapping[str, Record]) -> dict[str, Any]:
    """Return records as the payload of the state."""
    firsts = {key: events[0] for key, record in records.items() if (events := _events(record))}
    shared = reduce(_common, firsts.values()) if firsts else {}
    rows = {
        key: {**record, "events": [_without(firsts[key], shared), *_events(record)[1:]]}
        if key in firsts
        else record
        for key, record in records.items()
    }
    return {"shared": shared, "rows": rows}


def _events(record: Record) -> list[Any]:
    """Return the events of a record; an empty list if the first is not an object."""
    events = as_list(record.get("events"))
    return events if events and isinstance(events[0], Mapping) else []


def records(log: Sequence[Event]) -> dict[str, Record]:
    """Return the records of the rows in the log of a map, by key."""
    found: dict[str, Record] = {}
    for event in log:
        if _own(event) and isinstance(event.payload, Mapping):
            rows, shared = as_dict(event.payload.get("rows")), event.payload.get("shared")
            for key, record in rows.items() if _unfolds(shared, len(rows)) else ():
                if isinstance(record, Mapping):
                    found[str(key)] = _whole(record, shared)
    return found


def _unfolds(shared: Any, times: int) -> bool:
    """Return whether what is shared is small enough for so many rows."""
    try:
        return size(shared) * times <= _FAR * UNFOLDED
    except (ValueError, RecursionError):  # not JSON, so a map did not write it
        return False


def _own(event: Event) -> TypeGuard[State]:
    """Return whether an event holds rows that a map here asked, not one that was followed."""
    here = isinstance(event, State) and event.kind == KIND and not event.span
    return here and event.origin != "imported"


def _whole(record: Record, shared: Any) -> Record:
    events = _events(record)
    if not (events and isinstance(shared, Mapping)):
        return record
    return {**record, "events": [_merged(shared, events[0]), *events[1:]]}


def _common(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that two objects share, at any depth."""
    found: dict[str, Any] = {}
    for key in one.keys() & other.keys():
        a, b = one[key], other[key]
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            found[key] = _common(a, b)
        elif type(a) is type(b) and a == b:
            found[key] = a
    return found


def _without(whole: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return `whole` without what `shared` has of it."""
    left: dict[str, Any] = {}
    for key, value in whole.items():
        if key not in shared:
            left[key] = value
        elif isinstance(value, Mapping) and (rest := _without(value, shared[key])):
            left[key] = rest
    return left


def _merged(shared: Mapping[str, Any], rest: Mapping[str, Any]) -> dict[str, Any]:
    """Return `rest` with the fields that it shares with others."""
    merged = {**shared, **rest}
    for key in shared.keys() & rest.keys():
        if isinstance(shared[key], Mapping) and isinstance(rest[key], Mapping):
            merged[key] = _merged(shared[key], rest[key])
    return merged


def earlier(logs: Iterable[Sequence[Event]]) -> dict[str, Record]:
    """Return the records of the rows in the logs of several maps, by key; the first log counts."""
    found: dict[str, Record] = {}
    for log in logs:
        found = {**records(log), **found}
    return found


def unanswered(log: Sequence[Event]) -> int:
    """Return how many rows of a recorded map were never over; 0 where its counts do not say."""
    return _difference(log, "total", "done")


def failed(log: Sequence[Event]) -> int:
    """Return how many rows of a recorded map ended without an answer; 0 if it does not say."""
    return _difference(log, "done", "ok")


def _difference(log: Sequence[Event], all_: str, some: str) -> int:
    counts = next(
        (e.payload for e in reversed(log) if isinstance(e, State) and e.kind == COUNTS), None
    )
    said = counts if isinstance(counts, Mapping) else {}
    whole, part = said.get(all_), said.get(some)
    return whole - part if type(whole) is int and type(part) is int else 0


def recorded(log: Sequence[Event], rows: Sequence[Row]) -> Iterator[tuple[int, RowResult]]:
    """Yield index and result of each of the `rows` that the log of a map has a record of."""
    known = records(log)
    for index, row in enumerate(rows):
        if (record := known.get(row.key)) is not None:
            yield index, recorded_result(record, place=row.place, key=row.key, origin="record")
