"""Drives a map: asks its rows, several at a time, and writes the log of the map.

Why in the place of `agent.loop`: cards, journal, hub, record and Stop treat a map like a run; only
the events between `run_start` and `end` differ.

Rules
- A row has one result. It counts, and readers see it, once the queue delivers it: if there is a
  store, after it is stored (`row_queue`).
- `on_error="raise"`: the first row that fails ends the map; finished rows keep their results.
- When a limit over all rows is used up, rows under way get the status `limit`; the others stay
  `pending`.
- A map whose first rows all fail alike ends with that error (`repeated_failure`).
- When a map is stopped, the rows under way get the status `interrupted`. However it ends, its log
  holds the counts and, for a small map, the records of the rows.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from ... import events
from ...errors import AgentError, Cancelled
from ...events import EventLog
from ...record import Record
from ..store.row_store import RowStore
from .asking import Answered, RowAsker
from .budget import Budget
from .finish import FinalState
from .known_rows.map_player import PlayRow
from .known_rows.row_queue import RowOutcome, RowQueue, StoreRowQueue
from .map_log import MapLog
from .options import MapOptions
from .repeated_failure import RepeatedFailure
from .results import Results
from .row import Row, RowResult
from .row_result import failed_result, recorded_result

T = TypeVar("T")
Warn = Callable[[str], None]  # writes a remark into the log
Say = Callable[[str], None]  # shows what the map waits for ("": nothing)


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """The work of one map: its `rows` in the order in which they are asked, and its functions."""

    rows: Sequence[Row]
    options: MapOptions
    budget: Budget  # over all rows
    start: Callable[[], Mapping[str, Any]]  # the fields of `run_start`
    user: events.User  # with the template
    # the facts to log before the first request, for the rows that are left
    plan: Callable[[Sequence[Row]], Mapping[str, Any]]
    # makes the asker of these rows, which passes to `Say` what it waits for; may raise UsageError
    open_asker: Callable[[Sequence[Row], Say], Awaitable[RowAsker]]
    read_pictures: Callable[[Row], Row] = lambda row: row  # the row with the data of its pictures
    # opens the store of the rows (None: no store) and passes warnings to its argument
    store: Callable[[Warn], RowStore | None] = lambda warn: None
    trust: bool | frozenset[str] = False  # which records of others count (`find_stored_rows`)
    known: Mapping[str, Record] = {}  # trusted records of rows by key
    play: PlayRow | None = None  # replays a row whose tools touch the kernel
    unplayable: str = ""  # see `MapLog`


class MapDriver:
    """One map in progress; `run` is called once. `results` receives the results of the rows.

    `clock` returns seconds; `sleep` waits for seconds. `finish` computes the log's final state.
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
        self._tasks: Sequence[asyncio.Future[Any]] = ()  # of `_run_together`
        self._halted = False  # stopped, or ended by an error: no further row begins
        self._cause: Cancelled | events.Error | None = None  # why it ended early
        self._asking = 0  # rows under way
        self._left = 0  # rows to ask that are not over
        self._repeated = RepeatedFailure()
        self._slot_freed = asyncio.Event()
        self._to_play: dict[int, Record] = {}  # records of rows to replay, by index

    def cancel(self, why: Cancelled) -> None:
        """Stop the map; the first reason counts."""
        self._halt(why)

    async def run(self) -> None:
        """Ask the rows and end the log. Raises nothing but cancellation; errors are in the log."""
        try:
            fault = await self._run_to_end()
            if fault is not None and not isinstance(self._cause, events.Error):
                self._cause = fault
        except BaseException:
            self.cancel(Cancelled("user", "its event loop ended"))
            raise
        finally:
            self._log.close(self._cause)
            self._results.close()

    async def _run_to_end(self) -> events.Error | None:
        """Run the map from `run_start` to its final state; return the error that ended it."""
        try:
            self._log.start(self._job.start, self._job.user)
            queue = self._open_queue()
            try:
                await self._ask_rows(queue)
            finally:
                queue.deliver_rows()
            await self._write_final_state()
        except AgentError as fault:
            return events.Error(code="map", message=str(fault))
        except Exception as fault:
            return events.Error(code="internal", message=f"{type(fault).__name__}: {fault}")
        return None

    async def _write_final_state(self) -> None:
        """Compute the final state from the results and log it, unless the map was stopped."""
        if self._finish is None or self._halted:
            return
        if states := await self._run_together([self._finish()]):  # empty if stopped meanwhile
            self._log.finish(states[0].kind, states[0].payload)

    def _open_queue(self) -> RowQueue:
        """Deliver the rows that an earlier map answered; return the queue of the others."""
        store = self._job.store(self._log.warn)
        rows = [row for row in self._job.rows if not self._deliver_recorded(row)]
        if store is None:
            return RowQueue(rows, self._deliver)
        trust, say, sleep = self._job.trust, self._log.say, self._sleep
        return StoreRowQueue(rows, self._deliver, store, trust=trust, say=say, sleep=sleep)

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
            await self._run_together([queue.deliver_known()])
            if self._to_play:
                await self._run_together([self._play_known()])
            rows_left = queue.left
            self._left = len(rows_left)
            self._log.plan(self._job.plan(rows_left))
            if not rows_left or self._halted:
                return
            opening = self._job.open_asker(rows_left, self._log.say)
            if opened := await self._run_together([opening]):  # empty if stopped meanwhile
                await self._serve_workers(queue, opened[0])
        finally:
            ticking.cancel()
            await asyncio.wait([ticking])

    async def _serve_workers(self, queue: RowQueue, asker: RowAsker) -> None:
        """Ask the rows of the queue, several at a time; close the asker."""
        count = min(self._job.options.concurrency, self._left)
        serving = asyncio.ensure_future(queue.serve())
        serving.add_done_callback(self._halt_on_fault)
        try:
            await self._run_together([self._ask_one_by_one(queue, asker) for _ in range(count)])
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

    async def _run_together(self, work: Sequence[Awaitable[T]]) -> list[T]:
        """Run coroutines until all are over, or one fails: then cancel the others and raise.

        Return the results of those that no halt of the map cancelled.
        """
        tasks = [asyncio.ensure_future(each) for each in work]
        self._tasks = tasks
        if self._halted:
            self._cancel_tasks()
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        finally:
            self._cancel_tasks()
            if unfinished := [task for task in tasks if not task.done()]:
                await asyncio.wait(unfinished)
        return [task.result() for task in tasks if not task.cancelled()]

    def _halt(self, cause: Cancelled | events.Error | None) -> None:
        """Begin no further row and cancel those under way; the first cause counts.

        None: `_run_to_end` returns the cause.
        """
        if not self._halted:
            self._halted, self._cause = True, cause
            self._cancel_tasks()

    def _cancel_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _halt_on_fault(self, serving: asyncio.Future[None]) -> None:
        """Stop asking if the queue can no longer store results."""
        if not serving.cancelled() and serving.exception() is not None:
            self._halt(None)

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
                self._finish_row(queue, row, Answered(row.result("interrupted", kind="user")))
                raise
            except Exception as fault:  # this row fails; the others are still asked
                answered = Answered(failed_result(row, fault))
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

    def _finish_row(self, queue: RowQueue, row: Row, answered: Answered) -> None:
        """Put the result of a row into the queue; halt the map at a limit or a fatal failure."""
        self._free_slot()
        self._left -= 1
        result = self._explain_cut(answered.result)
        queue.put_result(RowOutcome(row, result, answered.record if result.run else None))
        if (limit := self._job.budget.add(result)) and self._left:
            self.cancel(Cancelled("limit", limit))
        code = result.kind or "map"
        if failure := self._repeated.add(result):
            self._halt(events.Error(code=code, message=failure))
        if self._job.options.on_error == "raise" and result.status in ("error", "limit"):
            message = f"Row {row.position}: {result.error or result.status}"
            self._halt(events.Error(code=code, message=message))

    def _explain_cut(self, result: RowResult) -> RowResult:
        """Return a result; an interrupted one loses its run, which is not stored.

        If a limit ended the map, that result gets the status `limit` and names the limit.
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
            self._left -= result.origin != "live"  # live ones are subtracted in `_finish_row`
            if self._job.play is not None and record is not None and result.origin != "live":
                self._to_play[index] = record
