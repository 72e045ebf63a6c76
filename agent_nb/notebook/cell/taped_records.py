"""The records of a notebook that answer its model calls, each checked and read once.

Why once: a notebook may hold hundreds, and each cell that calls a model looks through all of them.
If the masks of the project change, all are read again: requests are found by their masked texts.

Rule: only records that this user made or trusts are served; a damaged record counts as none.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from ...agent import RecordedTurns, Rule
from ...errors import UsageError
from ...record import Record, covers_record, is_intact
from ...tape import Recording, TapeIndex, TapeMasks
from ..files.library import Library
from ..identity import Cell
from .rerun import trusted_records


class ServedRecords(msgspec.Struct, frozen=True):
    """The records that are served to one cell execution.

    `index` finds the recorded answer to a request. `records`: the records by their ids. `remark`:
    what an error adds if records of others were left out, else "".
    """

    index: TapeIndex
    records: dict[str, Record]
    remark: str

    @property
    def is_empty(self) -> bool:
        """Whether the notebook holds no recorded call, of this user or another one."""
        return not self.records and not self.remark


class TapedRecords:
    """The records of model calls in the library of one kernel."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._rules: list[Any] = []  # those that the masks were made of
        self._masks = TapeMasks()
        # hash of a record -> what `_read_recording` has returned for it
        self._recordings: dict[str, Recording | None] = {}
        # `id()` of a record in memory -> the record, and whether this user made it; the library
        # returns the same objects for the next cell, unless the file has changed
        self._checked: dict[int, tuple[Record, bool]] = {}

    def read(self, cell: Cell) -> ServedRecords:
        """Return what is served to an execution of a cell that begins now."""
        trust, foreign = trusted_records(cell), 0
        self._choose_masks(cell.runner_options.get("normalize"))
        recordings, records = [], {}
        taped = self._library.list_taped(cell)
        for record, is_own in zip(taped, self._check_owners(taped), strict=True):
            if not is_own and not (covers_record(trust, record) and is_intact(record)):
                foreign += 1
                continue
            with suppress(UsageError):  # a damaged record
                if (recording := self._read_recording(record)) is not None:
                    records[recording.record] = record
                    recordings.append(recording)
        index = TapeIndex(recordings, self._masks, self._library.used_calls(cell))
        remark = f" {RecordedTurns.NOT_TRUSTED}." if foreign else ""
        return ServedRecords(index, records, remark)

    def _check_owners(self, records: Sequence[Record]) -> list[bool]:
        """Return of each record whether this user made it; check only those that are new."""
        known, self._checked = self._checked, {}
        for record in records:
            same, is_own = known.get(id(record), (None, False))
            if same is not record:
                is_own = self._library.is_own(record)
            self._checked[id(record)] = record, is_own
        return [self._checked[id(record)][1] for record in records]

    def _choose_masks(self, rules: Any) -> None:
        rules = rules if isinstance(rules, list) else []
        if rules != self._rules:
            self._rules, self._masks = rules, TapeMasks(msgspec.convert(rules, list[Rule]))
            self._recordings.clear()

    def _read_recording(self, record: Record) -> Recording | None:
        """Return the recording in a record with a checked hash; None: nothing replays it."""
        name = str(record.get("hash"))
        if name not in self._recordings:
            self._recordings[name] = Recording.read(record, self._masks)
        return self._recordings[name]
