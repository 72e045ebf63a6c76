"""Which of several records counts: the order in which they are tried, and which of them are kept.

Why one place: whoever can write into a notebook can write any time into a record; a forged one must
neither come before the user's own nor push them out.

Rules
- The user's own records (`signing.mine`), and under `test` those of signers, come before those of
  others, whatever times they name; among equals the newest start comes first.
- A start that is no time, or lies in the future, counts as the oldest; `TOLERANCE` is for clocks
  that differ.
- Of a cell the newest `KEPT` executions stay, each with all its runs; a record that names none is
  one of its own. Records of others never push out the user's own, but the newest execution of them
  always finds room: it may be what a colleague has just recorded.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable

from .record import Record
from .signing import intact, mine

KEPT = 3
TOLERANCE = 300.0  # s
END_OF_TIME = 253_402_300_799.0  # epoch s of the last second that a calendar of four digits has


def started(record: Record) -> float:
    """Return when the run of a record began, in epoch seconds; 0 when the record names no such
    time.
    """
    claimed = _claimed(record)
    return claimed if claimed <= time.time() + TOLERANCE else 0.0


def oldest(records: Iterable[Record]) -> list[Record]:
    """Return records by their start, the oldest first; those of the future in the order
    they claim.
    """
    return sorted(records, key=lambda record: (started(record), _claimed(record)))


def newest(records: Iterable[Record]) -> list[Record]:
    """Return records by their start, the newest first."""
    return sorted(records, key=lambda record: (started(record), _claimed(record)), reverse=True)


def ranked(records: Iterable[Record], key: bytes, signed: Collection[str] = ()) -> list[Record]:
    """Return records in the order in which they count for the user whose key this is; `signed`: the
    hashes of those of signers.
    """
    return sorted(
        newest(records),
        key=lambda r: mine(r, key) or (bool(signed) and r.get("hash") in signed and intact(r)),
        reverse=True,
    )


def kept(records: Iterable[Record], key: bytes) -> list[Record]:
    """Return the records of one cell that stay, newest first."""
    found = newest(records)
    if len(found) <= KEPT:
        return found
    own: dict[str, list[Record]] = {}
    others: dict[str, list[Record]] = {}
    for record in found:
        (own if mine(record, key) else others).setdefault(execution(record), []).append(record)
    rest = list(others.values())[: max(KEPT - len(own), 1)]
    return newest(record for listed in (*list(own.values())[:KEPT], *rest) for record in listed)


def execution(record: Record) -> str:
    """Return what the records of one execution of a cell have in common: its id, else that of the
    one run.
    """
    return str(record.get("execution") or f"run {record.get('id', '')}")


def ordinal(record: Record) -> int:
    """Return the number of a record's run among those of its execution, 0 when it names none."""
    number = record.get("ordinal")
    return number if isinstance(number, int) else 0


def _claimed(record: Record) -> float:
    """Return the time a record names, 0 for what is none."""
    value = record.get("started")
    sound = (
        isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= END_OF_TIME
    )
    return float(value) if sound else 0.0  # type: ignore[arg-type]  # it is a number
