"""The order in which records of a cell are tried, and which of them are kept.

Why one place: anyone who can write into a notebook can write any time into a record. A forged
record must neither come before the user's own nor displace them.

Rules
- The user's own records (`signing.is_own_record`), and under `test` those of signers, come before
  others, whatever times they name; among equals the newest start comes first.
- A start that is not a time, or lies in the future, counts as the oldest; `TOLERANCE` allows for
  clocks that differ.
- Of a cell the newest `EXECUTIONS_OF_CELL` executions stay, each with all its runs; a record that
  names no execution is its own. Records of others never displace the user's, but their newest
  execution always finds room: a colleague may just have recorded it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable

from .record import Record
from .signing import covers_record, is_intact, is_own_record

EXECUTIONS_OF_CELL = 3
TOLERANCE = 300.0  # s
END_OF_TIME = 253_402_300_799.0  # the last second of the year 9999, in epoch seconds


def read_start_time(record: Record) -> float:
    """Return the start of a record's run in epoch seconds, 0 if it is missing or in the future."""
    claimed = _claimed(record)
    return claimed if claimed <= time.time() + TOLERANCE else 0.0


def sort_oldest_first(records: Iterable[Record]) -> list[Record]:
    """Return records by their start, the oldest first."""
    return sorted(records, key=lambda record: (read_start_time(record), _claimed(record)))


def sort_newest_first(records: Iterable[Record]) -> list[Record]:
    """Return records by their start, the newest first."""
    return sorted(
        records, key=lambda record: (read_start_time(record), _claimed(record)), reverse=True
    )


def rank_records(
    records: Iterable[Record], key: bytes, signed: Collection[str] = ()
) -> list[Record]:
    """Return records in the order in which they count for the user with this key.

    `signed` holds the hashes of records that signers have signed.
    """
    listed = sort_newest_first(records)
    if len(listed) < 2:  # whose it is decides nothing, and costs a hash over the record
        return listed
    return sorted(
        listed,
        key=lambda r: is_own_record(r, key) or (covers_record(signed, r) and is_intact(r)),
        reverse=True,
    )


def select_records(records: Iterable[Record], key: bytes) -> list[Record]:
    """Return the records of one cell that are kept, newest first."""
    ordered = sort_newest_first(records)
    if len(ordered) <= EXECUTIONS_OF_CELL:
        return ordered
    own: dict[str, list[Record]] = {}
    others: dict[str, list[Record]] = {}
    for record in ordered:
        (own if is_own_record(record, key) else others).setdefault(
            read_execution_id(record), []
        ).append(record)
    rest = list(others.values())[: max(EXECUTIONS_OF_CELL - len(own), 1)]
    return sort_newest_first(
        record for listed in (*list(own.values())[:EXECUTIONS_OF_CELL], *rest) for record in listed
    )


def select_newest_execution(records: Iterable[Record]) -> list[Record]:
    """Return the records of the newest execution, in the order in which their runs began."""
    listed = list(records)
    newest = read_execution_id(sort_newest_first(listed)[0]) if listed else ""
    chosen = (r for r in sort_oldest_first(listed) if read_execution_id(r) == newest)
    return sorted(chosen, key=read_ordinal)


def read_execution_id(record: Record) -> str:
    """Return the id of the execution that a record belongs to, else one made of its run's id."""
    return str(record.get("execution") or f"run {record.get('id', '')}")


def read_ordinal(record: Record) -> int:
    """Return the number of a record's run within its execution, 0 if it names none."""
    number = record.get("ordinal")
    return number if isinstance(number, int) else 0


def _claimed(record: Record) -> float:
    """Return the start that a record names, 0 if it is not a valid time."""
    value = record.get("started")
    sound = (
        isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= END_OF_TIME
    )
    return float(value) if sound else 0.0  # type: ignore[arg-type]  # it is a number
