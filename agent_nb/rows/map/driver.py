"""Drives a map: asks its rows, N at a time, and writes the log of the map.

Why in place of `agent.loop`: a map is a run as any other for cards, journal, hub, record and Stop;
only what happens between `run_start` and `end` differs.

Rules
- As many workers as rows may be asked at once; each takes the next row when its last one is over.
- A row has one result. It counts, and readers see it, only when it is stored (`row_queue`).
- `on_error="raise"`: the first row that fails ends the map; the rows that are over stay.
- A limit over the whole map that is used up before the last row is over ends it: rows under way end
  as `limit`, the others stay pending.
- A map whose first rows all fail alike ends with that error (`repeated_failure`).
- The rows of a map that is stopped end as `interrupted`. However it ends, its log holds the counts
  and, if they are few, the records of the rows.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any

import msgspec

from ... import events
from ...errors import AgentError, Cancelled
from ...events import EventLog
from ...record import Record
from ..store.row_store import RowStore
from .asking import Answered, RowAsker
from .budget import Budget
from .finish import Finished
from .known_rows.map_player import PlayRow
from .known_rows.row_queue import Done, PlainRowQueue, RowQueue, StoreRowQueue
from .map_log import MapLog
from .options import MapOptions
from .repeated_failure import RepeatedFailure
from .results import Results
from .row import Row, RowResult
from .row_result import failed_result, recorded_result

Warn = Callable[[str], None]
Say = Callable[[str], None]


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What a map does: `rows` in the order in which they are asked.

    `start` returns the fields of `run_start`, `user` is the template. Of the rows that are to be
    asked, `plan` returns what is known before the first request, and `asker` makes what asks them;
    it says what it waits for, and raises UsageError where nothing may be asked. `whole` returns a
    row with the data of its pictures. `budget` holds over
    all rows. `store` opens where they are kept (None: nowhere) and gets what takes its warnings.
    `trust`: records of others that count (see `find_stored_rows`). `known`: trusted records of rows
    by key. `play` plays the record of a row that touches the kernel, as far as it is trusted, and
    returns in words how it differs now ("": it does not). `unplayable`: see `MapLog`.
    """

    rows: Sequence[Row]
    options: MapOptions
    budget: Budget
    start: Callable[[], Mapping[str, Any]]
    user: events.User
    plan: Callable[[Sequence[Row]], Mapping[str, Any]]
    asker: Callable[[Sequence[Row], Say], Awaitable[RowAsker]]
    whole: Callable[[Row], Row] = lambda row: row
    store: Callable[[Warn], RowStore | None] = lambda warn: None
    trust: bool | frozenset[str] = False
    known: Mapping[str, Record] = {}
    play: PlayRow | None = None
    unplayable: str = ""


class MapDriver:
    """One map in progress; `run` is called once. `results` receives what comes of the rows.

    `clock` returns seconds, `sleep` waits for some. `finish`: what is made of the results.
    """

    def __init__(
        self,
        job: Job,
        log: EventLog,
        results: Results,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
        finish: Callable[[], Awaitable[Finished]] | None = None,
    ) -> None:
        self._finish = finish
        self._job, self._results, self._sleep = job, results, sleep
        self._log = MapLog(
            log, job.rows, clock, sleep, budget=job.budget, unplayable=job.unplayable
        )
        self._tasks: list[asyncio.Task[None]] = []
        self._stop: Cancelled | None = None
        self._halted = False
        self._asking = 0
        self._left = 0  # rows that are to be asked and are not over
        self._repeated = RepeatedFailure()
        self._freed = asyncio.Event()
        self._error: events.Error | None = None
        self._to_play: dict[int, Record] = {}  # of rows that are to be played, by index

    def cancel(self, why: Cancelled) -> None:
        """Stop the map; the first reason counts."""
        if not self._halted:
            self._stop = why
            self._halt()

    async def run(self) -> None:
        """Ask the rows and end the log. Raises nothing but cancellation; errors are in the log."""
        over = False
        try:
            fault = await self._whole()
            self._error = self._error or fault
            over = True
        finally:
            if not over:
                self.cancel(Cancelled("user", "its event loop ended"))
            self._log.close(self._stop, self._error)
            self._results.close()

    async def _whole(self) -> events.Error | None:
        """Do everything between begin and end; return the error that ended it."""
        try:
            self._log.start(self._job.start, self._job.user)
            queue = self._open_queue()
            try:
                await self._rows(queue)
            finally:
                queue.deliver_rows()
            await self._finished()
        except AgentError as fault:
            return events.Error(code="map", message=str(fault))
        except Exception as fault:
            return events.Error(code="internal", message=f"{type(fault).__name__}: {fault}")
        return None

    async def _finished(self) -> None:
        """Write what is made of the results into the log, if all rows are over."""
        finish = self._finish
        if finish is None or self._halted:
            return

        async def finishes() -> None:
            finished = await finish()
            self._log.finish(finished.kind, finished.payload)

        await self._all([finishes()])

    def _open_queue(self) -> RowQueue:
        store = self._job.store(self._log.warn)
        rows = [row for row in self._job.rows if not self._knows(row)]
        if store is None:
            return PlainRowQueue(rows, self._deliver)
        return StoreRowQueue(
            rows,
            self._deliver,
            store,
            trust=self._job.trust,
            say=self._log.say,
            sleep=self._sleep,
        )

    def _knows(self, row: Row) -> bool:
        """Deliver a row that an earlier map answered; return whether one did."""
        record = self._job.known.get(row.key)
        if record is None:
            return False
        result = recorded_result(record, row, origin="record")
        if result.status == "ok":
            self._deliver(row, result, record)
        return result.status == "ok"

    async def _rows(self, queue: RowQueue) -> None:
        ticking = asyncio.ensure_future(self._log.tick())
        try:
            await self._all([queue.deliver_known()])
            if self._to_play:
                await self._all([self._play()])
            left = queue.left
            self._left = len(left)
            self._log.plan(self._job.plan(left))
            if not left or self._halted:
                return
            asker = await self._opened(left)
            if asker is None:
                return
            count = min(self._job.options.concurrency, len(left))
            serving = asyncio.ensure_future(queue.serve())
            serving.add_done_callback(self._served)
            try:
                await self._all([self._work(queue, asker) for _ in range(count)])
            finally:
                serving.cancel()
                await asyncio.wait([serving])
                await asker.aclose()
            if not serving.cancelled() and (fault := serving.exception()) is not None:
                raise fault
        finally:
            ticking.cancel()
            await asyncio.wait([ticking])

    async def _opened(self, left: Sequence[Row]) -> RowAsker | None:
        """Return what asks the rows; None if the map was stopped meanwhile."""
        askers: list[RowAsker] = []

        async def opens() -> None:
            askers.append(await self._job.asker(left, self._log.say))

        await self._all([opens()])
        return askers[0] if askers else None

    async def _play(self) -> None:
        """Play the rows that were found and touch the kernel, in the order of the data."""
        recorded, self._to_play = sorted(self._to_play.items()), {}
        for index, record in recorded:
            assert self._job.play is not None
            result = self._results[index]
            trust = result.origin == "record" or self._job.trust  # `known` is trusted
            if drift := await self._job.play(record, trust):
                self._log.warn(f"Row {result.position} was found, but {drift}", "drift")

    async def _all(self, work: Sequence[Coroutine[Any, Any, None]]) -> None:
        """Do all of it, or stop all of it; raise the first fault."""
        self._tasks = [asyncio.ensure_future(each) for each in work]
        if self._halted:
            self._halt()
        try:
            await asyncio.wait(self._tasks, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            left = [task for task in self._tasks if not task.done()]
            for task in left:
                task.cancel()
            if left:
                await asyncio.wait(left)
        for task in self._tasks:
            if not task.cancelled() and (fault := task.exception()) is not None:
                raise fault

    def _halt(self) -> None:
        self._halted = True
        for task in self._tasks:
            task.cancel()

    def _served(self, serving: asyncio.Future[None]) -> None:
        """Stop asking if what is done cannot be kept."""
        if not serving.cancelled() and serving.exception() is not None:
            self._halt()

    async def _work(self, queue: RowQueue, asker: RowAsker) -> None:
        task = asyncio.current_task()
        assert task is not None
        # an asker may return the row of a task that was cancelled
        while not task.cancelling() and (row := await self._next(queue)) is not None:
            self._log.begin()
            try:
                answered = await asker.ask(self._job.whole(row))
            except asyncio.CancelledError:
                self._over(queue, row, Answered(row.result("interrupted", kind="user")))
                raise
            except Exception as fault:  # of this row: the others are asked
                answered = Answered(failed_result(row, fault))
            self._over(queue, row, answered)

    async def _next(self, queue: RowQueue) -> Row | None:
        """Return the next row, when there is room for it in the budget."""
        while not self._job.budget.fits(self._asking):
            self._freed.clear()
            await self._freed.wait()
        self._asking += 1
        row = None
        try:
            row = await queue.next_row()
        finally:
            if row is None:
                self._leave()
        return row

    def _leave(self) -> None:
        self._asking -= 1
        self._freed.set()

    def _over(self, queue: RowQueue, row: Row, answered: Answered) -> None:
        """Take what came of a row that was asked; end the map if that is a reason to."""
        self._leave()
        self._left -= 1
        result = self._named(answered.result)
        queue.put_result(Done(row, result, answered.record if result.run else None))
        if (limit := self._job.budget.add(result)) and self._left:
            self.cancel(Cancelled("limit", limit))
        if limit := self._repeated.add(result):
            self._fail(result.kind, limit)
        if self._job.options.on_error == "raise" and result.status in ("error", "limit"):
            self._fail(result.kind, f"Row {row.position}: {result.error or result.status}")

    def _fail(self, code: str, message: str) -> None:
        if not self._halted:
            self._error = events.Error(code=code or "map", message=message)
            self._halt()

    def _named(self, result: RowResult) -> RowResult:
        """Return a result; one that was cut is not kept, and the limit of the map is its status."""
        if result.status != "interrupted":
            return result
        stop = self._stop
        limit = stop is not None and stop.reason == "limit"
        why = {"status": "limit", "kind": "limit", "error": str(stop)} if limit else {}
        return msgspec.structs.replace(result, run="", **why)

    def _deliver(self, row: Row, result: RowResult, record: Record | None) -> None:
        """Take a result that is kept."""
        index = row.position * self._job.options.repeats + row.repeat
        if self._results.put(index, result):
            self._log.end(row, result, record)
            self._left -= result.origin != "live"
            if self._job.play is not None and record is not None and result.origin != "live":
                self._to_play[index] = record
