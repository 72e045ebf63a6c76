"""The rows that stand in the log of a map: `{key: record}` in the state `map.rows`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...events import Event, State
from ...record.record import Record, events_of
from .row import Row, RowResult
from .row_result import result_of
from .sample import COUNTS, KIND


def records(log: Sequence[Event]) -> dict[str, Record]:
    """Return the records of the rows in the log of a map, by key."""
    found: dict[str, Record] = {}
    for event in log:
        if isinstance(event, State) and event.kind == KIND and isinstance(event.payload, Mapping):
            found |= {
                str(key): record
                for key, record in event.payload.items()
                if isinstance(record, Mapping)
            }
    return found


def earlier(logs: Iterable[Sequence[Event]]) -> dict[str, Record]:
    """Return the records of the rows in the logs of several maps, by key; the first log counts."""
    found: dict[str, Record] = {}
    for log in logs:
        found = {**records(log), **found}
    return found


def unanswered(log: Sequence[Event]) -> int:
    """Return how many rows of a recorded map were never over; 0 where its counts do not say."""
    counts = next(
        (e.payload for e in reversed(log) if isinstance(e, State) and e.kind == COUNTS), None
    )
    said = counts if isinstance(counts, Mapping) else {}
    total, done = said.get("total"), said.get("done")
    return total - done if type(total) is int and type(done) is int else 0


def recorded(log: Sequence[Event], rows: Sequence[Row]) -> Iterator[tuple[int, RowResult]]:
    """Yield index and result of each of the `rows` that the log of a map has a record of."""
    known = records(log)
    for index, row in enumerate(rows):
        if (record := known.get(row.key)) is not None:
            events = events_of(record)
            yield index, result_of(events, place=row.place, key=row.key, origin="record")
