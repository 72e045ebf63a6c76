"""Drives a map: asks its rows, several at a time, and writes the log of the map.

`MapDriver` is a `Driver` (`agent.stream`) as the loop of a run is, so that cards, journal, hub,
record and Stop treat a map like a run; only the events between `run_start` and `end` differ.

Rule: readers see a result, and the log counts it, only in `_deliver`. A queue with a store calls
that after the row is stored, or at the end of a map whose store failed (`row_queue`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from ... import events
from ...errors import AgentError, Cancelled
from ...events import EventLog
from ...record import Record
from ..store.row_store import RowStore
from .asking import RowAnswer, RowAsker
from .budget import Budget
from .finish import FinalState
from .halting import HaltableTasks
from .known_rows.map_player import PlayRow
from .known_rows.row_queue import RowOutcome, RowQueue, StoreRowQueue
from .map_log import MapLog
from .options import MapOptions
from .repeated_failure import RepeatedFailure, describe_whole_failure
from .results import Results
from .row import Row, RowResult
from .row_result import failed_result, recorded_result

Warn = Callable[[str], None]  # writes a remark into the log
ShowStatus = Callable[[str], None]  # shows what the map waits for ("": nothing)


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """The work of one map: its values, then its functions in the order in which they are called."""

    rows: Sequence[Row]  # in the order in which they are asked
    options: MapOptions
    budget: Budget  # over all rows
    user: events.User  # with the template
    trust: bool | frozenset[str] = False  # which records of others count (`find_stored_rows`)
    known: Mapping[str, Record] = {}  # trusted records of rows by key
    unplayable: str = ""  # see `MapLog`
    start: Callable[[], Mapping[str, Any]]  # the fields of `run_start`
    # opens the store of the rows (None: no store) and passes warnings to its argument
    store: Callable[[Warn], RowStore | None] = lambda warn: None
    play: PlayRow | None = None  # replays a row whose tools touch the kernel
    # the facts to log before the first request, for the rows that are left
    plan: Callable[[Sequence[Row]], Mapping[str, Any]]
    # makes the asker of these rows, which shows what it waits for; may raise UsageError
    open_asker: Callable[[Sequence[Row], ShowStatus], Awaitable[RowAsker]]
    read_pictures: Callable[[Row], Row] = lambda row: row  # the row with the data of its pictures


_LOOP_ENDED = Cancelled("user", "its event loop ended")


class MapDriver:
    """One map in progress; `run` is called once. `results` receives the results of the rows.

    `clock` returns, `sleep` takes seconds. `finish` computes the `FinalState`.
    """

    def __init__(
        self,
        job: Job,
        log: EventLog,
        results: Results,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
        finish: Callable[[], Awaitable[FinalState]] | None = None,
    ) -> None:
        self._finish = finish
        self._job, self._results, self._sleep = job, results, sleep
        self._log = MapLog(
            log, job.rows, clock, sleep, budget=job.budget, unplayable=job.unplayable
        )
        self._tasks = HaltableTasks()  # halted: the map was stopped, or ended by an error
        self._cause: Cancelled | events.Error | None = None  # why it ended early
        self._asking = 0  # rows under way
        self._slot_freed = asyncio.Event()  # set when `_asking` became smaller
        self._unfinished: set[str] = set()  # keys of the rows to ask that are not over
        self._repeated = RepeatedFailure()
        self._to_play: dict[int, Record] = {}  # records of rows to replay, by index

    def cancel(self, cause: Cancelled | events.Error | None) -> None:
        """Begin no further row and stop those under way; only the first call counts.

        `cause`: why the map ends; None: `_run_to_end` returns the cause.
        """
        if not self._tasks.halted:
            self._cause = cause
            self._tasks.halt()

    async def run(self) -> None:
        """Ask the rows and end the log. Raises nothing but cancellation; errors are in the log."""
        try:
            fault = await self._run_to_end()
            if fault is not None and not isinstance(self._cause, events.Error):
                self._cause = fault
        except BaseException:
            self.cancel(_LOOP_ENDED)
            raise
        finally:
            self._log.close(self._cause)
            self._results.close()

    def end_unbegun(self) -> None:
        """Write the whole log of a map that is cancelled before `run` begins."""
        try:
            self._log.start(self._job.start, self._job.user)
        finally:
            self._log.close(_LOOP_ENDED)

    async def _run_to_end(self) -> events.Error | None:
        """Run the map from `run_start` to its final state; return the error that ended it."""
        try:
            self._log.start(self._job.start, self._job.user)
            queue = self._open_queue()
            try:
                await self._ask_rows(queue)
            finally:
                queue.deliver_rows()
            if not self._tasks.halted and (failure := describe_whole_failure(self._results)):
                return events.Error(code=self._results[0].kind or "map", message=failure)
            await self._write_final_state()
        except AgentError as fault:
            return events.Error(code="map", message=str(fault))
        except Exception as fault:
            return events.Error(code="internal", message=f"{type(fault).__name__}: {fault}")
        return None

    async def _write_final_state(self) -> None:
        """Compute the final state from the results and log it, unless the map was stopped."""
        if self._finish is None or self._tasks.halted:
            return
        if states := await self._tasks.run_together([self._finish()]):  # empty if stopped meanwhile
            self._log.finish(states[0].kind, states[0].payload)

    def _open_queue(self) -> RowQueue:
        """Deliver the rows that an earlier map answered; return the queue of the others."""
        store = self._job.store(self._log.warn)
        rows = [row for row in self._job.rows if not self._deliver_recorded(row)]
        if store is None:
            return RowQueue(rows, self._deliver)
        trust, show, sleep = self._job.trust, self._log.show_status, self._sleep
        return StoreRowQueue(rows, self._deliver, store, trust=trust, show_status=show, sleep=sleep)

    def _deliver_recorded(self, row: Row) -> bool:
        """Deliver a row that an earlier map answered; return whether one did."""
        if (record := self._job.known.get(row.key)) is None:
            return False
        result = recorded_result(record, row, origin="record")
        if result.status != "ok":
            return False
        self._deliver(row, result, record)
        return True

    async def _ask_rows(self, queue: RowQueue) -> None:
        """Deliver the known rows, then ask the others, several at a time, until none are left."""
        ticking = asyncio.ensure_future(self._log.tick())
        try:
            await self._tasks.run_together([queue.deliver_known()])
            if self._to_play:
                await self._tasks.run_together([self._play_known()])
            rows_left = queue.left
            self._unfinished = {row.key for row in rows_left}
            self._log.plan(self._job.plan(rows_left))
            if not rows_left or self._tasks.halted:
                return
            opening = self._job.open_asker(rows_left, self._log.show_status)
            if opened := await self._tasks.run_together([opening]):  # empty if stopped meanwhile
                await self._serve_workers(queue, opened[0])
        finally:
            ticking.cancel()
            await asyncio.wait([ticking])

    async def _serve_workers(self, queue: RowQueue, asker: RowAsker) -> None:
        """Ask the rows of the queue, several at a time; close the asker."""
        count = min(self._job.options.concurrency, len(self._unfinished))
        serving = asyncio.ensure_future(queue.serve())
        serving.add_done_callback(self._halt_on_fault)
        try:
            asking = [self._ask_one_by_one(queue, asker) for _ in range(count)]
            await self._tasks.run_together(asking)
        finally:
            serving.cancel()
            await asyncio.wait([serving])
            await asker.aclose()
        if not serving.cancelled():
            serving.result()  # raises what ended it

    async def _play_known(self) -> None:
        """Replay the known rows whose tools touch the kernel, in the order of the data."""
        recorded, self._to_play = sorted(self._to_play.items()), {}
        for index, record in recorded:
            assert self._job.play is not None
            result = self._results[index]
            trust = result.origin == "record" or self._job.trust  # `known` is trusted
            if drift := await self._job.play(record, trust):
                self._log.warn(f"Row {result.position} was found, but {drift}", "drift")

    def _halt_on_fault(self, serving: asyncio.Future[None]) -> None:
        """Stop asking if the queue can no longer store results."""
        if not serving.cancelled() and serving.exception() is not None:
            self.cancel(None)

    async def _ask_one_by_one(self, queue: RowQueue, asker: RowAsker) -> None:
        """Ask one row after the other until the queue has no more, or the task is cancelled."""
        task = asyncio.current_task()
        assert task is not None
        # an asker may turn a cancellation into an interrupted result: then ask no further row
        while not task.cancelling() and (row := await self._next(queue)) is not None:
            self._log.begin_row()
            try:
                answered = await asker.ask(self._job.read_pictures(row))
            except asyncio.CancelledError:
                self._finish_row(queue, row, RowAnswer(row.result("interrupted", kind="user")))
                raise
            except Exception as fault:  # this row fails; the others are still asked
                answered = RowAnswer(failed_result(row, fault))
            self._finish_row(queue, row, answered)

    async def _next(self, queue: RowQueue) -> Row | None:
        """Return the next row, once the budget has room for it; None if there are no more."""
        while not self._job.budget.fits(self._asking):
            self._slot_freed.clear()
            await self._slot_freed.wait()
        self._asking += 1
        row = None
        try:
            row = await queue.next_row()
        finally:
            if row is None:
                self._free_slot()
        return row

    def _free_slot(self) -> None:
        self._asking -= 1
        self._slot_freed.set()

    def _finish_row(self, queue: RowQueue, row: Row, answered: RowAnswer) -> None:
        """Put the result of a row into the queue; halt the map at a limit or a fatal failure."""
        self._free_slot()
        self._unfinished.discard(row.key)
        result = self._explain_cut(answered.result)
        queue.put_result(RowOutcome(row, result, answered.record if result.run else None))
        if (limit := self._job.budget.add(result)) and self._unfinished:
            self.cancel(Cancelled("limit", limit))
        code = result.kind or "map"
        if failure := self._repeated.add(result):
            self.cancel(events.Error(code=code, message=failure))
        if self._job.options.on_error == "raise" and result.status in ("error", "limit"):
            message = f"Row {row.position}: {result.error or result.status}"
            self.cancel(events.Error(code=code, message=message))

    def _explain_cut(self, result: RowResult) -> RowResult:
        """Return a result; an interrupted one without the id of its run, which is not stored.

        If a limit over all rows ended the map, its status becomes `limit`, and its error names it.
        """
        if result.status != "interrupted":
            return result
        result = msgspec.structs.replace(result, run="")
        if not isinstance(self._cause, Cancelled) or self._cause.reason != "limit":
            return result
        limit = str(self._cause)
        return msgspec.structs.replace(result, status="limit", kind="limit", error=limit)

    def _deliver(self, row: Row, result: RowResult, record: Record | None) -> None:
        """Count a result and give it to the readers; a queue with a store has stored it before."""
        index = row.position * self._job.options.repeats + row.repeat
        if self._results.put(index, result):
            self._log.end_row(row, result, record)
            self._unfinished.discard(row.key)  # without `_finish_row` if another kernel asked it
            if self._job.play is not None and record is not None and result.origin != "live":
                self._to_play[index] = record
