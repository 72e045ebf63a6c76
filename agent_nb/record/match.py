"""Find the recorded run that has the inputs of a cell.

Why: a cell may have several records, some of them old, changed or with other inputs. The code of
tools is not an input: a run is found even if that code has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

import msgspec

from .fingerprint import INPUTS, Digests
from .record import Record
from .signing import is_intact

Status = Literal[
    "recorded",  # `record` has the wanted inputs
    "stale",  # all records have other inputs, or ended with a status that does not count
    "tampered",  # the newest record, or one with the wanted inputs, does not match its hash
    "unrecorded",  # no record exists
]


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a run is on record.

    `changed`: the inputs that differ from the newest record; `problem`: why a record was skipped.
    """

    TAMPERED: ClassVar = "the record was changed after it was made: its hash does not fit"

    status: Status
    record: Record | None = None
    changed: tuple[str, ...] = ()
    problem: str = ""

    @classmethod
    def find(
        cls, records: Iterable[Record], inputs: Digests, *, statuses: Sequence[str] | None = ("ok",)
    ) -> Match:
        """Find the run with these `inputs` among `records` (whole, in the order to try them).

        The first record counts as the newest. `statuses`: the end statuses that count (None: any).
        `tampered` is returned only if no record matches.
        """
        newest_changes: tuple[str, ...] | None = None
        problem = ""
        tampered = False
        for record in records:
            recorded = Digests.read_record(record)
            # a record without digests counts as changed in every input
            changes = inputs.list_changes(recorded) if recorded is not None else INPUTS
            if newest_changes is None:
                newest_changes = changes
            elif changes:
                continue  # an older record with other inputs decides nothing, and hashing is slow
            if not is_intact(record):
                tampered = True
            elif not changes:
                status = record.get("status")
                if statuses is None or status in statuses:
                    return cls(status="recorded", record=record)
                problem = problem or f"the recorded run ended with status {status}"
        if tampered:
            return cls(status="tampered", problem=cls.TAMPERED)
        if newest_changes is None:
            return cls(status="unrecorded")
        return cls(status="stale", changed=newest_changes, problem=problem)

    def __str__(self) -> str:
        why = f" ({', '.join(self.changed)} changed)" if self.changed else ""
        return f"{self.status}{why}{f': {self.problem}' if self.problem else ''}"
