"""The records inside a record: the runs of the rows of a map, in its state `map.rows`:
`{"shared": …, "rows": …}`.

Why here: all code that lists what a record holds must see them, not only the map's replay
(`recorded_calls`).

Rules
- `rows` is `{key: record}`. What the first events of all records have in common stands once, in
  `shared`; a record that is read is whole again.
- What is shared is read once for each row, so that a small file could unfold to gigabytes. A map
  records up to `UNFOLDED` bytes of rows, counted as if nothing were shared; where that would be far
  exceeded, the rows are ignored.
- Rows of a run that was followed from elsewhere do not count: the record of that run is the user's,
  its events are a stranger's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from ..events import Event, State
from ..wire import as_dict, as_list
from .record import Record
from .size_limit import measure_json

ROWS_KIND = "map.rows"  # of the event that holds the records
UNFOLDED = 4_000_000  # bytes of JSON
_FAR = 4  # times as much; the length of the home folder's path differs between readers


def read_inner_records(log: Sequence[Event]) -> dict[str, Record]:
    """Return the records of the rows in the log of a map, by key."""
    records: dict[str, Record] = {}
    for event in log:
        if _own(event) and isinstance(event.payload, Mapping):
            rows, shared = as_dict(event.payload.get("rows")), event.payload.get("shared")
            for key, record in rows.items() if _unfolds(shared, len(rows)) else ():
                if isinstance(record, Mapping):
                    records[str(key)] = _whole(record, shared)
    return records


def _unfolds(shared: Any, times: int) -> bool:
    """Return whether what is shared is small enough for so many rows."""
    try:
        return measure_json(shared) * times <= _FAR * UNFOLDED
    except (ValueError, RecursionError):  # not JSON, so a map did not write it
        return False


def _own(event: Event) -> TypeGuard[State]:
    """Return whether an event holds rows that a map here asked, not one that was followed."""
    here = isinstance(event, State) and event.kind == ROWS_KIND and not event.span
    return here and event.origin != "imported"


def _whole(record: Record, shared: Any) -> Record:
    events = stored_events(record)
    if not (events and isinstance(shared, Mapping)):
        return record
    return {**record, "events": [_merged(shared, events[0]), *events[1:]]}


def stored_events(record: Record) -> list[Any]:
    """Return the events of a record; an empty list if the first is not an object."""
    events = as_list(record.get("events"))
    return events if events and isinstance(events[0], Mapping) else []


def _merged(shared: Mapping[str, Any], rest: Mapping[str, Any]) -> dict[str, Any]:
    """Return `rest` with the fields that it shares with others."""
    merged = {**shared, **rest}
    for key in shared.keys() & rest.keys():
        if isinstance(shared[key], Mapping) and isinstance(rest[key], Mapping):
            merged[key] = _merged(shared[key], rest[key])
    return merged
