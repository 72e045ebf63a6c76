"""The records that a kernel knows: its own, those that the runner sent, those in the file.

Why three sources: the file lags behind the front end until it is saved, a kernel forgets at a
restart, and a runner's kernel should need no file. The kernel's own records of a cell come first.

Rules
- A conversation is rebuilt from intact records only; each turn says whether another user made it.
- Without an id a cell is found by the hash of its text and its number among equal texts.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ...record import CellRecords, Payloads, Record, UsedCalls, UserKey, events_of, is_intact
from ..conversations import Turn, is_turn
from ..identity import Cell
from ..runner_options import NO_OPTIONS, RunnerOptions
from .notebook_file import NO_FILE, NotebookFile, read_notebook_file
from .notebook_finder import NotebookFinder


class Library:
    """The records of one kernel's notebook; `namespace`: the user's variables, for `finder`.

    A replay reads `rank_records`, the tape `list_taped`, a rebuilt conversation `recorded_turns`.
    """

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.finder = NotebookFinder(namespace)
        self._lock = threading.Lock()  # runs on several threads may end at one time
        self._records: dict[str, list[Record]] = {}  # made by this kernel, by cell key
        # key -> (run id, hash) of each record in `_records`. `is_from_kernel` trusts these pairs;
        # a pair goes with its record, for a forged record in the file could copy it.
        self._identities: dict[str, set[tuple[str, str]]] = {}
        self._used = UsedCalls()  # taped calls that executions in this kernel used, by cell key
        self._forgotten: set[str] = set()  # run ids
        self._file = NO_FILE  # as it was read last
        self._file_stamp: tuple[str, int, int] | None = None  # its path, time in ns and size then

    def keep_record(self, key: str, record: Record) -> None:
        """Remember a record that this kernel made for the cell `key`; from any thread."""
        with self._lock:
            earlier = [r for r in self._records.get(key, []) if r.get("id") != record.get("id")]
            records = CellRecords([record, *earlier])
            # None: this kernel made them, so no signature is checked (a cell may make hundreds)
            self._records[key] = records.select_kept(None, self._used.list_ids())
            self._identities[key] = set(map(_identify, self._records[key]))

    def rank_records(self, cell: Cell) -> list[Record]:
        """Return the records of a cell in the order in which a replay tries them."""
        stored = self._find_stored(cell)
        if len(stored) > 1:
            stored = CellRecords(stored).rank(
                UserKey.read(), countersigned_hashes(cell.runner_options)
            )
        made_here = CellRecords(self._records.get(cell.key, [])).newest_first()
        return [r for r in self._drop_repeats([*made_here, *stored]) if not r.get("tape")]

    def list_taped(self, cell: Cell) -> list[Record]:
        """Return the records of model calls of other code, of all cells, while `cell` runs."""
        made_here = (r for records in list(self._records.values()) for r in records)
        file = self.read_file(cell.runner_options)
        saved = (r for records in file.runs.values() for r in records)
        known = self._drop_repeats([*made_here, *self._find_stored(cell), *saved])
        # 1: the version that `PackedExchange` reads
        return [record for record in known if record.get("tape") == 1]

    def keep_used_calls(self, key: str, ids: Sequence[str]) -> None:
        """Remember the taped calls that an execution of the cell `key` used."""
        self._used = UsedCalls.merge({key: [ids]}, self._used)

    def used_calls(self, cell: Cell) -> UsedCalls:
        """Return the taped calls that executions of all cells used, while `cell` runs."""
        return UsedCalls.merge(self._used, self.read_file(cell.runner_options).used_calls)

    def is_from_kernel(self, record: Record) -> bool:
        """Return whether this kernel made a record."""
        identity = _identify(record)
        return any(identity in identities for identities in list(self._identities.values()))

    def is_own(self, record: Record) -> bool:
        """Return whether this kernel or this user made a record."""
        return self.is_from_kernel(record) or UserKey.read().owns(record)

    def list_records(self, keys: Iterable[str] | None = None) -> list[Record]:
        """Return the records of cells by their keys (None: all): this kernel's and the file's."""
        file = self.read_file()
        chosen = dict.fromkeys([*self._records, *file.runs] if keys is None else keys)
        return [r for k in chosen for r in (*self._records.get(k, ()), *file.runs.get(k, ()))]

    def forget_records(self, keys: Collection[str] | None = None) -> list[str]:
        """Forget the records of cells by keys (None: all); return the ids of their runs."""
        ids = {str(r.get("id", "")) for r in self.list_records(keys)}
        for key in list(self._records) if keys is None else keys:
            self._records.pop(key, None)
            self._identities.pop(key, None)
        self._forgotten |= ids
        return sorted(ids)

    def read_file(self, options: RunnerOptions = NO_OPTIONS, *, ask: bool = True) -> NotebookFile:
        """Return what the notebook's file holds; `options`, `ask`: see `NotebookFinder.path`."""
        path = self.finder.path(options, ask=ask)
        if path is None:
            return NO_FILE
        try:
            status = path.stat()
            stamp = (str(path), status.st_mtime_ns, status.st_size)
        except OSError:
            return NO_FILE
        if self._file_stamp != stamp:
            self._file_stamp, self._file = stamp, read_notebook_file(path)
        return self._file

    def recorded_turns(self, cell: Cell, conversation: str) -> list[Turn]:
        """Return the recorded turns of `conversation` in the cells above, in notebook order.

        Empty if the cell has no id or the file does not hold it. Also empty if a runner sent the
        records of the cell, since the runner executes the cells above anyway.
        """
        file = self.read_file(cell.runner_options)
        cell_id = file.id_of(cell) if cell.id else ""
        if "runs" in cell.runner_options or cell_id not in file.cell_ids:
            return []
        key = UserKey.read()
        turns: list[Turn] = []
        for above in file.cell_ids[: list(file.cell_ids).index(cell_id)]:
            # without hashes of signers: a runner that sends them sends `runs` too
            records = self._drop_repeats(CellRecords(file.runs.get(above, ())).rank(key))
            of_conversation = (r for r in records if r.get("conversation", "main") == conversation)
            record = next(filter(is_intact, of_conversation), None)
            if record is None or not file.is_turn_of(above, record):
                continue
            events = events_of(record)
            if is_turn(events):
                is_foreign = not self.is_own(record)
                turns.append(Turn(above, events, bool(record.get("fresh")), is_foreign))
        return turns

    def _find_stored(self, cell: Cell) -> Sequence[Record]:
        """Return the records of a cell that the runner sent, else those of the file."""
        sent = cell.runner_options.get("runs")
        if isinstance(sent, list):
            return [Payloads.attach(r) for r in sent if isinstance(r, dict)]
        if cell.kernel and not cell.id:  # front ends that send ids also name the file
            self.finder.search(cell)
        return self.read_file(cell.runner_options).find_records(cell)

    def _drop_repeats(self, records: Iterable[Record]) -> list[Record]:
        """Return the first record of each run that is not forgotten."""
        by_id: dict[str, Record] = {}
        for record in records:
            by_id.setdefault(str(record.get("id", "")), record)
        return [record for run, record in by_id.items() if run not in self._forgotten]


def countersigned_hashes(options: RunnerOptions) -> frozenset[str]:
    """Return the hashes of records that a signer has signed, as the runner sent them."""
    signed = options.get("signed")
    return frozenset(map(str, signed)) if isinstance(signed, list) else frozenset()


def _identify(record: Record) -> tuple[str, str]:
    return str(record.get("id")), str(record.get("hash"))
