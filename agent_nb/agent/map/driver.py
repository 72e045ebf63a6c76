"""Drives a map: asks its rows, N at a time, and writes the log of the map.

Why in place of `agent.loop`: a map is a run as any other for cards, journal, hub, record and Stop;
only what happens between `run_start` and `end` differs.

Rules
- As many workers as rows may be asked at once; each takes the next row when its last one is over.
- A row has one result. It counts, and readers see it, only when it is kept (`keeping`).
- `on_error="raise"`: the first row that fails ends the map; the rows that are over stay.
- A limit over the whole map that is used up ends it: rows under way end as `limit`, the others stay
  pending.
- The rows of a map that is stopped end as `interrupted`. However it ends, its log holds the counts
  and, if they are few, the records of the rows.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from ... import events
from ...errors import AgentError, Cancelled
from ...events.log import EventLog
from ...record.record import Record
from .asking import Answered, RowAsker
from .budget import Budget
from .options import MapOptions
from .results import Results
from .row import Row, RowResult
from .row_result import failed
from .sample import KIND, Sample
from .tally import Tally

TICK = 0.2  # s between two snapshots
QUIET = 1.0  # s after which a snapshot without news shows that the map goes on
PLAN, END, LIVE = "map.plan", "map", "map"  # kinds of events


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What a map does: `rows` in the order in which they are asked.

    `start` returns the fields of `run_start`, `user` is the template, `plan` what is known before
    the first request, `asker` makes what asks the rows; `budget` holds over all of them.
    """

    rows: Sequence[Row]
    options: MapOptions
    budget: Budget
    start: Callable[[], Mapping[str, Any]]
    user: events.User
    plan: Mapping[str, Any]
    asker: Callable[[], RowAsker]


class MapDriver:
    """One map in progress; `run` is called once. `results` receives what comes of the rows.

    `clock` returns seconds, `sleep` waits for some.
    """

    def __init__(
        self,
        job: Job,
        log: EventLog,
        results: Results,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        self._job, self._log, self._results = job, log, results
        self._clock, self._sleep = clock, sleep
        self._left = deque(job.rows)
        self._tally = Tally(len(job.rows), clock())
        self._sample = Sample(len(job.rows))
        self._workers: list[asyncio.Task[None]] = []
        self._stop: Cancelled | None = None
        self._fault: RowResult | None = None

    def cancel(self, why: Cancelled) -> None:
        """Stop the map; the first reason counts."""
        if self._stop is None and self._fault is None:
            self._stop = why
            self._halt()

    async def run(self) -> None:
        """Ask the rows and end the log. Raises nothing but cancellation; errors are in the log."""
        error: events.Error | None = None
        done = False
        try:
            self._begin()
            await self._ask_all()
            done = True
        except AgentError as fault:
            error = events.Error(code="map", message=str(fault))
            done = True
        except Exception as fault:
            error = events.Error(code="internal", message=f"{type(fault).__name__}: {fault}")
            done = True
        finally:
            if not done:
                self.cancel(Cancelled("user", "its event loop ended"))
            self._end(error)
            self._results.close()

    def _begin(self) -> None:
        fields: Mapping[str, Any] = {"agent": "map"}
        try:
            fields = self._job.start()
        finally:
            self._log.append(events.RunStart(**fields))
            self._log.append(self._job.user)
        self._log.append(events.State(kind=PLAN, payload=dict(self._job.plan)))

    async def _ask_all(self) -> None:
        if self._stop is not None or not self._left:
            return
        asker = self._job.asker()
        create = asyncio.get_running_loop().create_task
        ticker = create(self._tick())
        count = min(self._job.options.concurrency, len(self._left))
        self._workers = [create(self._work(asker)) for _ in range(count)]
        try:
            await asyncio.wait(self._workers, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            self._halt()
            ticker.cancel()
            await asyncio.wait([ticker, *self._workers])
            await asker.aclose()
        for worker in self._workers:
            if not worker.cancelled() and (fault := worker.exception()) is not None:
                raise fault

    def _halt(self) -> None:
        for worker in self._workers:
            worker.cancel()

    async def _work(self, asker: RowAsker) -> None:
        task = asyncio.current_task()
        assert task is not None
        # an asker may return the row of a task that was cancelled
        while self._left and not task.cancelling():
            row = self._left.popleft()
            self._tally.begin()
            try:
                answered = await asker.ask(row)
            except asyncio.CancelledError:
                self._over(row, Answered(_unfinished(row)))
                raise
            except Exception as fault:  # of a foreign asker: the other rows are asked
                answered = Answered(failed(fault, place=row.place, key=row.key))
            self._over(row, answered)

    def _over(self, row: Row, answered: Answered) -> None:
        """Take what came of a row that was asked."""
        result = self._named(answered.result)
        self._keep(row, result, answered.record)
        words = self._job.budget.add(result)
        if words:
            self.cancel(Cancelled("limit", words))
        raising = self._job.options.on_error == "raise" and result.status in ("error", "limit")
        if raising and self._stop is None and self._fault is None:
            self._fault = result
            self._halt()

    def _named(self, result: RowResult) -> RowResult:
        """Return a result; the limit of the map that stopped a row is its status."""
        stop = self._stop
        if result.status != "interrupted" or stop is None or stop.reason != "limit":
            return result
        return msgspec.structs.replace(result, status="limit", kind="limit", error=stop.detail)

    def _keep(self, row: Row, result: RowResult, record: Record | None) -> None:
        index = row.place * self._job.options.repeats + row.repeat
        if self._results.put(index, result):
            self._tally.end(result, self._sample.add(row, result, record), self._clock())

    async def _tick(self) -> None:
        last, told = -1, self._clock()
        while True:
            await self._sleep(TICK)
            now = self._clock()
            if self._tally.done != last or now - told >= QUIET:
                last, told = self._tally.done, now
                text = msgspec.json.encode(self._tally.snapshot(now)).decode()
                self._log.append(events.Delta(of=LIVE, text=text))

    def _end(self, error: events.Error | None) -> None:
        """End the log: the counts, the records of the rows if they are few, and why it ended."""
        if self._log.ended or not self._log:
            return
        counts = msgspec.json.encode(self._tally.snapshot(self._clock()))
        payload = msgspec.json.decode(counts) | self._sample.lines
        self._log.append(events.Metric(total=self._tally.used))
        self._log.append(events.State(kind=END, payload=payload))
        if self._sample.records:
            self._log.append(events.State(kind=KIND, payload=self._sample.records))
        status: events.EndStatus = "ok"
        if self._fault is not None:
            said = f"Row {self._fault.place}: {self._fault.error or self._fault.status}"
            error = error or events.Error(code=self._fault.kind or "map", message=said)
        if error is not None:
            self._log.append(error)
            status = "error"
        elif self._stop is not None:
            reason: Any = self._stop.reason
            reason = reason if reason in ("user", "timeout", "limit") else "user"
            self._log.append(events.Interrupt(reason=reason, detail=self._stop.detail))
            status = "interrupted" if reason == "user" else "limit"
        self._log.append(events.End(status=status, finish_reason="" if status == "ok" else status))


def _unfinished(row: Row) -> RowResult:
    return RowResult(place=row.place, key=row.key, status="interrupted", kind="user")
