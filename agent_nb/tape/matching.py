"""Finds the recorded exchange that answers a request.

Rules
- Several records may match. Those of the cell that asks come first, then those of each other cell.
  Of each cell only the newest execution that used such a record counts, in its order. If it is
  unknown what executions used, the newest one that made such a record counts.
- An answer is used once in each execution of a cell: one call more than recorded is a miss. But an
  error after which libraries send the request again (`RETRIED`) answers the repetitions too, once
  the other answers are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ..record import Record, read_start_time
from ..wire import redact_text
from .exchange import Exchange, Request
from .masks import TapeMasks
from .misses import describe_miss
from .packed import digest_body, read_exchange


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded exchange, the record that holds it, and where and when it was made."""

    exchange: Exchange
    key: str  # of the request (`TapeMasks.make_key`)
    record: str  # the id of the record
    cell: str = ""
    execution: str = ""  # of the cell
    started: float = 0.0  # epoch seconds
    ordinal: int = 0  # the place among the exchanges of the execution
    failed: bool = False  # the run of the record: a stream may fail under the status 200

    @property
    def is_error(self) -> bool:
        """Whether the call failed."""
        return self.failed or self.exchange.response.status >= 400

    @classmethod
    def read(cls, record: Record, masks: TapeMasks) -> Recording | None:
        """Return what a checked record holds, None if nothing replays it. Raises UsageError."""
        exchange = read_exchange(record)
        if exchange is None:
            return None
        ordinal = record.get("ordinal")
        return cls(
            exchange=exchange,
            key=masks.make_key(exchange.request),
            record=str(record["id"]),
            cell=str(record.get("cell", "")),
            execution=str(record.get("execution", "")),
            started=read_start_time(record),
            ordinal=ordinal if isinstance(ordinal, int) else 0,
            failed=record.get("status") == "error",
        )


class Miss(msgspec.Struct, frozen=True):
    """No recorded exchange answers a request: `why`, in one line."""

    why: str


class TapeIndex:
    """The recorded exchanges of a notebook.

    `used`: `Recording.cell` -> for each of its executions, the newest first, the ids of the records
    that the execution used, in its order.
    """

    def __init__(
        self,
        recordings: Iterable[Recording],
        masks: TapeMasks,
        used: Mapping[str, Sequence[Sequence[str]]] = {},
    ) -> None:
        self._masks, self._used = masks, used
        every = list(recordings)
        self._recordings = [r for r in every if r.exchange.is_replayable]
        self._not_served = {r.key for r in every if not r.exchange.is_replayable}
        self._by_key: dict[str, list[Recording]] = {}
        for recording in self._recordings:
            self._by_key.setdefault(recording.key, []).append(recording)

    def has_recording(self, request: Request, secrets: Mapping[str, str]) -> bool:
        """Return whether a recorded request is equal to `request`, which holds none of `secrets`.

        `secrets`: values by name. What the masks find counts as equal.
        """
        key = self._masks.make_key(request)
        return key in self._by_key and redact_text(key, secrets) == key

    def take_recording(
        self, request: Request, cell: str, used: set[str], *, errors: bool = True
    ) -> Recording | Miss:
        """Return the recording that answers a redacted request of a cell, and add it to `used`.

        `used`: the records that this execution of the cell has used. `errors`: whether a recorded
        error is an answer.
        """
        key = self._masks.make_key(request)
        candidates = self._by_key.get(key, [])
        in_order = self._in_order(candidates, cell)
        unused = [r for r in in_order if r.record not in used]
        repeated = [r for r in in_order if r.exchange.response.is_retried]
        for recording in (*unused, *repeated):
            if errors or not recording.is_error:
                used.add(recording.record)
                return recording
        if unused:  # each is an error
            status = unused[0].exchange.response.status
            code = f" ({status})" if status >= 400 else ""
            return Miss(f"the recorded answer is an error{code}")
        if candidates:
            count = len({r.record for r in candidates} & used)
            return Miss(f"the request was recorded {count} times, and is sent once more")
        if why := self._explain_unserved(request, key):
            return Miss(why)
        own_first = sorted(self._recordings, key=lambda r: r.cell != cell)
        recorded = [(r.key, r.exchange.request) for r in own_first]
        return Miss(describe_miss(request, key, recorded, self._masks))

    def _explain_unserved(self, request: Request, key: str) -> str:
        """Return why a request is not stored, or why its recorded answer is not served, else ""."""
        if request.body.kind == "digest":
            return "its body is not text, or is too large to be stored"
        if self._not_served:  # a record without bodies has their digests
            digest = msgspec.structs.replace(request, body=digest_body(request.body))
            if self._not_served & {key, self._masks.make_key(digest)}:
                return "the recorded answer broke off, is not text, or is too large to be stored"
        return ""

    def _in_order(self, candidates: Sequence[Recording], cell: str) -> list[Recording]:
        """Return the recordings to try, in the order that the rules of the file give."""
        chosen: dict[str, Recording] = {}
        for name in dict.fromkeys([cell, *(r.cell for r in candidates)]):
            for recording in self._choose_execution(candidates, name):
                chosen.setdefault(recording.record, recording)
        return list(chosen.values())

    def _choose_execution(self, candidates: Sequence[Recording], cell: str) -> list[Recording]:
        """Return the recordings of the newest execution of a cell that used any, in its order."""
        by_id = {r.record: r for r in candidates}
        for ids in self._used.get(cell, ()):
            if in_order := [by_id[name] for name in ids if name in by_id]:
                return in_order
        of_cell = sorted((r for r in candidates if r.cell == cell), key=lambda r: r.ordinal)
        newest = max(of_cell, key=lambda r: r.started).execution if of_cell else ""
        return [r for r in of_cell if r.execution == newest]
