"""In which order the records of a cell are tried, and which of them stay in the notebook.

Why one place: anyone who can write into a notebook can write any time into a record. A forged
record must neither come before the user's own records nor displace them. But the newest execution
by others always stays too: a colleague may just have recorded it.

Rule: taped model calls (of other code) and the other runs of a cell are counted apart: one kind may
be replayed while the other runs anew.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

from .fingerprint import Digests
from .record import Provenance, Record
from .signing import UserKey, covers_record, is_intact

TOLERANCE = 300.0  # seconds that a start may lie in the future: clocks of machines differ
END_OF_TIME = 253_402_300_799.0  # the last second of the year 9999, in epoch seconds


class CellRecords(list[Record]):
    """The records of one cell; only `select_begun` needs an order. Its methods return new lists."""

    EXECUTIONS = 3  # of each kind and cell, the executions that are kept

    def oldest_first(self) -> list[Record]:
        """Return the records by their start, the oldest first."""
        return sorted(self, key=_sort_key)

    def newest_first(self) -> list[Record]:
        """Return the records by their start, the newest first."""
        return sorted(self, key=_sort_key, reverse=True)

    def rank(self, key: UserKey, signed: Collection[str] = ()) -> list[Record]:
        """Return the records in the order in which they count for the user with this key.

        `signed` holds the hashes of records that signers have signed.
        """
        ordered = self.newest_first()
        if len(ordered) < 2:  # one record has no order, and checking whose it is would cost a hash
            return ordered
        return sorted(
            ordered,
            key=lambda r: key.owns(r) or (covers_record(signed, r) and is_intact(r)),
            reverse=True,
        )

    def select_kept(self, key: UserKey | None, used: Collection[str] = ()) -> list[Record]:
        """Return the records that are kept for the user with this key, newest first.

        `key` None: all of them are the user's own, and none is checked. `used`: the ids of taped
        calls that an execution used, which are kept in any case.
        """
        taped = CellRecords(r for r in self if r.get("tape"))
        untaped = CellRecords(r for r in self if not r.get("tape"))
        kept = CellRecords([*taped._select_executions(key), *untaped._select_executions(key)])
        ids = {record.get("id") for record in kept}
        kept += [r for r in taped if r.get("id") in used and r.get("id") not in ids]
        return kept.newest_first()

    def _select_executions(self, key: UserKey | None) -> list[Record]:
        """Return the records of the newest executions: of the user's own, then of others."""
        if len(self) <= self.EXECUTIONS:  # all are kept, and checking whose they are costs a hash
            return self
        # execution -> its records, the newest first
        own: dict[str, list[Record]] = {}
        foreign: dict[str, list[Record]] = {}
        for record in self.newest_first():
            group = own if key is None or key.owns(record) else foreign
            group.setdefault(_execution_id(record), []).append(record)
        newest_own = list(own.values())[: self.EXECUTIONS]
        newest_foreign = list(foreign.values())[: max(self.EXECUTIONS - len(own), 1)]
        return [record for listed in (*newest_own, *newest_foreign) for record in listed]

    def newest_execution(self, used: Sequence[str] = ()) -> list[Record]:
        """Return the records of the newest execution, in the order in which their runs began.

        `used`: the ids of the taped calls that it used, if that is known: these come last, in the
        order of `used`.
        """
        by_id = {str(r.get("id")): r for r in self if r.get("tape")}
        if taped := [by_id[name] for name in used if name in by_id]:
            rest = CellRecords(r for r in self if not r.get("tape"))
            return [*rest.newest_execution(), *taped]
        newest = _execution_id(self.newest_first()[0]) if self else ""
        chosen = (r for r in self.oldest_first() if _execution_id(r) == newest)
        return sorted(chosen, key=read_ordinal)

    def select_begun(self, call: str = "") -> list[Record]:
        """Return the records of runs that the cell's code began, in the order to replay them.

        `call`: return the runs that this tool call began instead. Of several executions, only that
        of the first such record in `self` counts. Runs of other systems, which have no inputs, are
        left out.
        """
        begun = CellRecords(
            r
            for r in self
            if r.get("conversation") == Provenance.NO_CONVERSATION
            and Digests.read_record(r) is not None
            and r.get("call", "") == call
        )
        execution = begun[0].get("execution") if begun else None
        if not execution:
            return [r for r in begun.oldest_first() if not r.get("execution")]
        chosen = (r for r in begun.oldest_first() if r.get("execution") == execution)
        return sorted(chosen, key=read_ordinal)


def read_start_time(record: Record) -> float:
    """Return the start of a record's run in epoch seconds, 0 if it is missing or in the future."""
    claimed = _read_claimed_start(record)
    return claimed if claimed <= time.time() + TOLERANCE else 0.0


def read_ordinal(record: Record) -> int:
    """Return the number of a record's run within its execution, 0 if it names none."""
    number = record.get("ordinal")
    return number if isinstance(number, int) else 0


def _execution_id(record: Record) -> str:
    """Return the id of the execution that a record belongs to, else one made of its run's id."""
    return str(record.get("execution") or f"run {record.get('id', '')}")


def _sort_key(record: Record) -> tuple[float, float]:
    """Sort by start; starts in the future all count as 0, and are sorted by the time they claim."""
    return read_start_time(record), _read_claimed_start(record)


def _read_claimed_start(record: Record) -> float:
    """Return the start that a record names, 0 if it is not a valid time."""
    value = record.get("started")
    valid = (
        isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= END_OF_TIME
    )
    return float(value) if valid else 0.0  # type: ignore[arg-type]  # it is a number
