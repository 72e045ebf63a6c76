"""Reads the log of a recorded map: the records and results of its rows, and how many failed.

A map that is executed again asks only the rows that its record lacks.

Rule: the log may be a stranger's; counts that are missing or not numbers read as 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ....events import Event, State
from ....record import InnerRecords, Record
from ....wire import as_dict
from ..row import Row, RowResult
from ..row_result import recorded_result

COUNTS = "map"  # the kind of the state that holds the counts, and of its deltas


def read_earlier_rows(logs: Iterable[Sequence[Event]]) -> dict[str, Record]:
    """Return key -> record of the rows in the logs of several maps; the first log wins."""
    rows: dict[str, Record] = {}
    for log in logs:
        rows = {**InnerRecords.of_log(log), **rows}
    return rows


def count_unanswered_rows(log: Sequence[Event]) -> int:
    """Return how many rows of a recorded map never finished; 0 if its counts are missing."""
    return _subtract_counts(log, "total", "done")


def count_failed_rows(log: Sequence[Event]) -> int:
    """Return how many rows of a recorded map ended without an answer; 0 if counts are missing."""
    return _subtract_counts(log, "done", "ok")


def _subtract_counts(log: Sequence[Event], all_: str, some: str) -> int:
    """Return the count named `all_` minus that named `some`, in the newest counts of a log."""
    counts = (e.payload for e in reversed(log) if isinstance(e, State) and e.kind == COUNTS)
    figures = as_dict(next(counts, None))
    larger, smaller = figures.get(all_), figures.get(some)
    if type(larger) is not int or type(smaller) is not int:
        return 0
    return max(0, larger - smaller)


def read_recorded_results(
    log: Sequence[Event], rows: Sequence[Row]
) -> Iterator[tuple[int, RowResult]]:
    """Yield index and result of each of the `rows` that the log of a map has a record of."""
    records = InnerRecords.of_log(log)
    for index, row in enumerate(rows):
        if (record := records.get(row.key)) is not None:
            yield index, recorded_result(record, row, origin="record")
