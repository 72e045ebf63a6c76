"""Writes the log of a map: how it begins, its counts while it goes on, and how it ends.

    run_start, user, state map.plan          the prompt, facts about the map, and its estimate
    delta map, …                             counts, live only (`TICK`, `QUIET`)
    state map.scores                         the final state (`finish`), such as scores
    metric, state map, state map.rows        the counts, and the records of the rows of a small map
    error or interrupt, end

The driver decides which row is asked and when; this file knows only how that is recorded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from ... import events
from ...errors import Cancelled
from ...events import EventLog
from ...record import InnerRecords, Record
from .budget import Budget
from .known_rows.recorded import COUNTS
from .row import Row, RowResult
from .sample import Sample
from .tally import Tally

TICK = 0.2  # s, the least time between two snapshots
QUIET = 1.0  # s without a finished row, after which a snapshot shows that the map still runs
PLAN = "map.plan"  # the kind of the state with facts about the map and its estimate


class MapLog:
    """The log of one map. `clock` returns seconds; `sleep` waits for a number of seconds.

    `budget`: the limits over all rows. `unplayable`: the remark to log if the map is too large for
    the records of its rows ("": none).
    """

    def __init__(
        self,
        log: EventLog,
        rows: Sequence[Row],
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[Any]],
        *,
        budget: Budget,
        unplayable: str = "",
    ) -> None:
        self._log, self._clock, self._sleep = log, clock, sleep
        self._unplayable = unplayable
        self._tally = Tally(len(rows), clock(), budget)
        self._sample = Sample(len(rows))

    def start(self, fields: Callable[[], Mapping[str, Any]], user: events.User) -> None:
        """Write `run_start` and the prompt; if computing `fields` raises, write them without it."""
        start_fields: Mapping[str, Any] = {"agent": "map"}
        try:
            start_fields = fields()
        finally:
            self._log.append(events.RunStart(**start_fields))
            self._log.append(user)

    def plan(self, payload: Mapping[str, Any]) -> None:
        """Write the facts known before the first request, and the number of rows that are over."""
        self._log.append(events.State(kind=PLAN, payload={**payload, "found": self._tally.done}))

    def warn(self, message: str, code: str = "store") -> None:
        """Write a remark that does not end the map."""
        self._log.append(events.Error(code=code, message=message, retryable=True))

    def show_status(self, status: str) -> None:
        """Show what the map waits for ("": nothing); not recorded."""
        self._log.append(events.Delta(of="status", text=status))

    def begin_row(self) -> None:
        """Count a row that is asked now."""
        self._tally.begin_row()

    def end_row(self, row: Row, result: RowResult, record: Record | None) -> None:
        """Count a row that is over; a small map also records its `record` at the end."""
        self._tally.end_row(result, self._sample.add(row, result, record), self._clock())

    async def tick(self) -> None:
        """Write snapshots until cancelled."""
        last, written = 0, self._clock()
        while True:
            await self._sleep(TICK)
            now = self._clock()
            if self._tally.done != last or now - written >= QUIET:
                last, written = self._tally.done, now
                text = msgspec.json.encode(self._tally.snapshot(now)).decode()
                self._log.append(events.Delta(of=COUNTS, text=text))

    def finish(self, kind: str, payload: Mapping[str, Any]) -> None:
        """Write the final state."""
        self._log.append(events.State(kind=kind, payload=dict(payload)))

    def close(self, cause: Cancelled | events.Error | None) -> None:
        """End the log: the counts, the records of a small map, and the `cause` of an early end.

        Does nothing if the log has ended, or has not begun.
        """
        if self._log.ended or not self._log:
            return
        counts = msgspec.json.encode(self._tally.snapshot(self._clock()))
        payload = msgspec.json.decode(counts) | self._sample.lines
        self._log.append(events.Metric(total=self._tally.used))
        self._log.append(events.State(kind=COUNTS, payload=payload))
        if records := self._sample.records:
            self._log.append(events.State(kind=InnerRecords.KIND, payload=records))
        elif self._unplayable and self._sample.has_records and not isinstance(cause, events.Error):
            self.warn(self._unplayable, "unplayable")
        status: events.EndStatus = "ok"
        reason: Any = "stop"
        if isinstance(cause, events.Error):
            self._log.append(cause)
            status, reason = "error", "error"
        elif cause is not None:
            reason = cause.reason if cause.reason in ("user", "timeout", "limit") else "user"
            self._log.append(events.Interrupt(reason=reason, detail=cause.detail))
            status = "interrupted" if reason == "user" else "limit"
        self._log.append(events.End(status=status, finish_reason=reason))
