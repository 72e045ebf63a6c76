"""Find the recorded run of a cell by what the user put in.

Rules
- A run is found by the digests of its inputs (`fingerprint`).
- A record whose content does not match its hash never counts.
- The code of tools plays no part: a run is found even if a tool changed since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from ..wire import as_list
from .fingerprint import INPUTS, find_changed_inputs, recorded_inputs
from .record import Record, events_of
from .signing import is_intact

Status = Literal["recorded", "stale", "tampered", "unrecorded"]
TAMPERED = "the record was changed after it was made: its hash does not fit"


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a run is on record.

    `changed`: the inputs that differ from the newest record; `problem`: why a record was skipped.
    """

    status: Status
    record: Record | None = None
    changed: tuple[str, ...] = ()
    problem: str = ""

    def __str__(self) -> str:
        why = f" ({', '.join(self.changed)} changed)" if self.changed else ""
        return f"{self.status}{why}{f': {self.problem}' if self.problem else ''}"


def match_record(
    records: Iterable[Record],
    inputs: Mapping[str, str],
    *,
    statuses: Sequence[str] | None = ("ok",),
) -> Match:
    """Find the run with these `inputs` among `records` (whole, newest first).

    `inputs`: digests by name (`fingerprint.inputs_of`). `statuses`: the end statuses that count
    (None: any). The result is `tampered` if a record that would match, or the newest record, does
    not match its hash.
    """
    newest: tuple[str, ...] | None = None
    problem = ""
    tampered = False
    for record in records:
        known = recorded_inputs(events_of({**record, "events": as_list(record.get("events"))[:1]}))
        differs = find_changed_inputs(known, inputs) if known is not None else INPUTS
        whole = bool(differs and newest is not None) or is_intact(record)
        tampered = tampered or not whole
        newest = differs if newest is None else newest
        if differs or not whole:
            continue
        if statuses is not None and record.get("status") not in statuses:
            problem = problem or f"the recorded run ended with status {record.get('status')}"
        else:
            return Match(status="recorded", record=record)
    if tampered:
        return Match(status="tampered", problem=TAMPERED)
    if newest is None:
        return Match(status="unrecorded")
    return Match(status="stale", changed=newest, problem=problem)


def select_cell_records(
    runs: Mapping[str, Sequence[Record]],
    *,
    cell: str = "",
    source: str = "",
    occurrence: int = 1,
    order: Sequence[str] = (),
) -> list[Record]:
    """Return the records of one cell, newest first.

    A cell is found by its id, else by the hash `source` of its text: the `occurrence`-th cell with
    that text counts. `runs`: whole records by cell id. `order`: cell ids in notebook order.
    """
    if runs.get(cell):
        return list(runs[cell])
    index = {name: n for n, name in enumerate(order)}
    ordered = sorted(runs, key=lambda name: index.get(name, len(index)))
    same = [
        listed
        for listed in (
            [r for r in runs[name] if source and r.get("source") == source] for name in ordered
        )
        if listed
    ]
    return same[occurrence - 1] if 0 < occurrence <= len(same) else []
