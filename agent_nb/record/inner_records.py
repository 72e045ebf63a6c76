"""The records inside a record: the record of a map holds the records of its rows.

The state event `map.rows` holds them, as `{"shared": …, "rows": {key: record}}`; `shared` are the
fields that the first events of all rows have in common.

Rules
- Reading copies `shared` into each row, so a small file could grow to gigabytes: the size of all
  copies is limited (`_READ_FACTOR`), and further rows are ignored.
- Rows in an imported run do not count: the user signs its record, but its events come from others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, TypeGuard

from ..events import Event, State
from ..wire import as_dict, as_list
from .record import Record
from .size_limit import measure_json

# reading allows so many times `LIMIT`: the reader's home folder may be longer than the writer's
_READ_FACTOR = 4


class InnerRecords(dict[str, Record]):
    """The records of the rows of a map, by the keys of the rows."""

    KIND = "map.rows"  # the kind of the event that holds the records
    LIMIT = 4_000_000  # bytes of JSON of all rows, with what they share counted in each

    @classmethod
    def of_log(cls, log: Sequence[Event]) -> InnerRecords:
        """Return the whole records of the rows in the log of a map; none in another log."""
        records = cls()
        size = 0.0  # bytes of all copies of shared fields
        for event in log:
            if not _is_own(event) or not isinstance(event.payload, Mapping):
                continue
            rows, shared = as_dict(event.payload.get("rows")), event.payload.get("shared")
            size += _measure_copies(shared, len(rows))
            if size <= _READ_FACTOR * cls.LIMIT:
                for key, record in rows.items():
                    if isinstance(record, Mapping):
                        records[str(key)] = _restore_shared(record, shared)
        return records

    def to_payload(self) -> dict[str, Any]:
        """Return the payload of the event that holds these records; shared fields are separate."""
        first_events = {key: events[0] for key in self if (events := _read_events(self[key]))}
        shared = reduce(_find_common, first_events.values()) if first_events else {}
        rows = dict(self)
        for key, first in first_events.items():
            events = [_remove_shared(first, shared), *_read_events(self[key])[1:]]
            rows[key] = {**self[key], "events": events}
        return {"shared": shared, "rows": rows}


def _measure_copies(shared: Any, count: int) -> float:
    """Return the bytes of `count` copies of the shared fields; infinite if they are not JSON."""
    try:
        return measure_json(shared) * count
    except (ValueError, RecursionError):  # a map did not write them
        return math.inf


def _is_own(event: Event) -> TypeGuard[State]:
    """Return whether an event holds the rows of a map that ran here, not of an imported run."""
    is_rows = isinstance(event, State) and event.kind == InnerRecords.KIND and not event.span
    return is_rows and event.origin != "imported"


def _restore_shared(record: Record, shared: Any) -> Record:
    """Return a record whose first event contains the shared fields again."""
    events = _read_events(record)
    if not (events and isinstance(shared, Mapping)):
        return record
    return {**record, "events": [_merge_fields(shared, events[0]), *events[1:]]}


def _read_events(record: Record) -> list[Any]:
    """Return the events of a record; an empty list if the first is not an object."""
    events = as_list(record.get("events"))
    return events if events and isinstance(events[0], Mapping) else []


def _merge_fields(shared: Mapping[str, Any], own_fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return `own_fields` with the fields that are shared, at any depth."""
    merged = {**shared, **own_fields}
    for key in shared.keys() & own_fields.keys():
        if isinstance(shared[key], Mapping) and isinstance(own_fields[key], Mapping):
            merged[key] = _merge_fields(shared[key], own_fields[key])
    return merged


def _find_common(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that two objects share, at any depth."""
    common: dict[str, Any] = {}
    for key in first.keys() & second.keys():
        a, b = first[key], second[key]
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            common[key] = _find_common(a, b)
        elif type(a) is type(b) and a == b:  # in Python 1, 1.0 and True are equal
            common[key] = a
    return common


def _remove_shared(whole: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return `whole` without the fields that `shared` has, at any depth."""
    remaining: dict[str, Any] = {}
    for key, value in whole.items():
        if key not in shared:
            remaining[key] = value
        elif isinstance(value, Mapping) and (own_fields := _remove_shared(value, shared[key])):
            remaining[key] = own_fields
    return remaining
