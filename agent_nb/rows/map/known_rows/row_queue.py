"""Hands out the rows of a map and receives their results; `StoreRowQueue` stores them too.

Other kernels may ask rows of the same store, so which rows are left changes while the map runs, and
a result counts only once it is stored. A row is claimed before it is handed out.

Rules of `StoreRowQueue`
- `put_result` never waits. One thread uses the store, in batches; the slower the disk, the larger
  they are.
- `deliver_rows` needs no event loop, so that a map whose loop was shut down keeps its results. If
  the store fails, it delivers the rows all the same, and raises the fault.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from ....record import Record
from ....view import count_noun
from ...store.row_claims import LEASE
from ...store.row_store import RowStore
from ..row import Row, RowResult
from .stored import FoundRow, find_stored_rows

RENEW = 5.0  # s between two renewals of the claims
POLL = 1.0  # s between two looks for the rows of other kernels
BATCH = 500  # the most rows that are looked up at once

Deliver = Callable[[Row, RowResult, Record | None], None]


class RowOutcome(msgspec.Struct, frozen=True):
    """A row that was asked, its result, and the record of its run (None: no run began)."""

    row: Row
    result: RowResult
    record: Record | None


class RowQueue:
    """Hands rows to the workers of a map; without a store, a finished row is delivered at once."""

    def __init__(self, rows: Sequence[Row], deliver: Deliver) -> None:
        self._left = deque(rows)
        self._deliver = deliver

    @property
    def left(self) -> Sequence[Row]:
        """The rows to ask; valid until `next_row` is first called."""
        return self._left

    async def deliver_known(self) -> None:
        """Deliver the rows whose results are known already; without a store there are none."""

    async def next_row(self) -> Row | None:
        """Return the next row to ask; None if there are no more."""
        return self._left.popleft() if self._left else None

    def put_result(self, outcome: RowOutcome) -> None:
        """Receive the result of a row that was asked."""
        self._deliver(outcome.row, outcome.result, outcome.record)

    async def serve(self) -> None:
        """Do the work behind `next_row` and `put_result` until cancelled; none without a store."""

    def deliver_rows(self) -> None:
        """Store and deliver the finished rows, and give up the others."""


class _Visit(msgspec.Struct):
    """One visit of the thread to the store: rows to claim, and finished rows to store.

    `stored`: set by the thread once the finished rows are stored.
    """

    candidates: Sequence[Row] = ()
    finished: Sequence[RowOutcome] = ()
    stored: bool = False


class StoreRowQueue(RowQueue):
    """A queue with a store.

    `trust`: which records of others count (see `find_stored_rows`). `show_status` receives in words
    what the map waits for, "" when the wait is over. `sleep` waits for a number of seconds.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        deliver: Deliver,
        store: RowStore,
        *,
        trust: bool | Collection[str] = False,
        show_status: Callable[[str], object] = lambda status: None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        super().__init__(rows, deliver)
        self._store, self._trust, self._sleep = store, trust, sleep
        # a row goes from `_left` through a visit, which claims it, to `_ready` (or first to
        # `_claimed_elsewhere`), to `_handed_out`, to `_finished`, and through a visit to its reader
        self._ready: deque[Row] = deque()
        self._claimed_elsewhere: dict[str, Row] = {}  # by key, until another kernel gives it up
        self._handed_out: dict[str, Row] = {}  # by key; the thread removes the finished ones
        self._finished: list[RowOutcome] = []
        self._visit = _Visit()  # the current one
        self._attempts: dict[str, int] = {}  # attempts of stored rows that are not yet delivered
        self._waiters: deque[asyncio.Future[Row | None]] = deque()  # workers that wait for a row
        self._visit_needed = asyncio.Event()  # set if there are results to store or rows to claim
        self._show_status, self._status = show_status, ""
        self._thread = ThreadPoolExecutor(1, "agent_nb map")

    async def deliver_known(self) -> None:
        """Deliver the rows whose stored results need no new request; the others are left."""
        rows, self._left = list(self._left), deque()
        for start in range(0, len(rows), BATCH):
            batch = rows[start : start + BATCH]
            usable = await self._in_thread(self._read_usable, batch)
            self._left.extend(row for row in batch if row.key not in usable)
            for each in usable.values():
                self._deliver(each.row, each.result, each.record)

    async def next_row(self) -> Row | None:
        """Return the next row, claimed; wait while another kernel asks the last rows."""
        if not (self._ready or self._more_may_come):
            return None
        waiter: asyncio.Future[Row | None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._visit_needed.set()
        return await waiter

    def put_result(self, outcome: RowOutcome) -> None:
        """Receive the result of a row, which is delivered once it is stored."""
        self._finished.append(outcome)
        self._visit_needed.set()

    async def serve(self) -> None:
        """Store results, claim rows, renew claims, and look for the rows of other kernels.

        Runs until cancelled; raises the fault if the store fails.
        """
        watching = asyncio.ensure_future(self._watch())
        watching.add_done_callback(lambda _: self._visit_needed.set())
        try:
            while not watching.done():
                await self._visit_needed.wait()
                self._visit_needed.clear()
                await self._visit_store()
            watching.result()  # raises what ended it
        finally:
            watching.cancel()
            await asyncio.wait([watching])

    def deliver_rows(self) -> None:
        """Store and deliver the finished rows, release the others, and close the store."""
        visit, finished = self._visit, self._finished
        self._visit, self._finished = _Visit(), []
        try:
            self._run_after_visit(self._store_and_close, visit, finished)
        finally:
            self._deliver_finished([*visit.finished, *finished])
            self._thread.shutdown(wait=False)

    def _run_after_visit(self, work: Callable[..., None], *arguments: Any) -> None:
        """Call `work` in the thread of the store, after its current visit."""
        try:
            ended = self._thread.submit(work, *arguments)
        except RuntimeError:  # the interpreter is shutting down
            work(*arguments)
        else:
            ended.result()

    def _store_and_close(self, visit: _Visit, finished: Sequence[RowOutcome]) -> None:
        """Store what the last visit did not, release the claims and close the store."""
        try:
            if not visit.stored:  # it failed, or was cancelled before the thread came to it
                self._put(visit.finished)
            self._put(finished)
            self._store.release([row.key for row in (*self._ready, *visit.candidates)])
            self._store.release(list(self._handed_out), attempted=True)
        finally:
            self._store.close()

    async def _visit_store(self) -> None:
        """Visit the store once: store finished rows, and claim a row for each waiting worker."""
        self._waiters = deque(each for each in self._waiters if not each.done())
        count = min(max(len(self._waiters) - len(self._ready), 0), len(self._left))
        candidates = [self._left.popleft() for _ in range(count)]
        visit = self._visit = _Visit(candidates, self._finished)
        self._finished = []
        claimed_keys = await self._in_thread(self._store_and_claim, visit)
        self._visit = _Visit()
        for row in candidates:
            if row.key in claimed_keys:
                self._ready.append(row)
            else:
                self._claimed_elsewhere[row.key] = row
        self._deliver_finished(visit.finished)
        self._hand_out()

    @property
    def _more_may_come(self) -> bool:
        """Whether more rows may become ready, or results are still to be stored.

        Workers wait until both are settled, because the map ends with the last worker.
        """
        unclaimed = self._left or self._visit.candidates or self._claimed_elsewhere
        return bool(unclaimed or self._finished or self._visit.finished)

    def _hand_out(self) -> None:
        """Give ready rows to the workers that wait, or None if no more rows can come."""
        while self._waiters and (self._ready or not self._more_may_come):
            waiter = self._waiters.popleft()
            if waiter.done():
                continue
            row = self._ready.popleft() if self._ready else None
            if row is not None:
                self._handed_out[row.key] = row
            waiter.set_result(row)
        if self._waiters and (self._left or self._finished):  # visit the store again
            self._visit_needed.set()

    def _store_and_claim(self, visit: _Visit) -> set[str]:
        """Carry a visit out in one transaction, because each transaction syncs the disk.

        Return the keys of the rows that are claimed.
        """
        if not visit.finished and not visit.candidates:
            return set()
        with self._store.visit():
            self._put(visit.finished)
            claimed_keys = self._claim(visit.candidates)
        visit.stored = True
        return claimed_keys

    def _claim(self, rows: Sequence[Row]) -> set[str]:
        return self._store.claim([row.key for row in rows], LEASE)

    def _put(self, finished: Sequence[RowOutcome]) -> None:
        """Store the rows whose runs came to an end; free the claims on the others."""
        ended: list[tuple[str, Record, int]] = []
        unstored_keys: list[str] = []
        for each in finished:
            if each.record is None or each.record.get("status") == "interrupted":
                unstored_keys.append(each.row.key)
            else:  # this map made several attempts at a row if workers of a cluster died
                ended.append((each.row.key, each.record, max(each.result.attempts, 1)))
        if ended:
            self._attempts |= self._store.put(ended)
        self._store.release(unstored_keys, attempted=True)
        for outcome in finished:
            self._handed_out.pop(outcome.row.key, None)

    def _deliver_finished(self, outcomes: Sequence[RowOutcome]) -> None:
        """Deliver rows, each with the number of attempts by all kernels."""
        for each in outcomes:
            attempts = self._attempts.pop(each.row.key, each.result.attempts)
            result = msgspec.structs.replace(each.result, attempts=attempts)
            self._deliver(each.row, result, each.record)

    async def _watch(self) -> None:
        """Renew the claims, and look for rows that other kernels have finished or given up."""
        waited = 0.0
        while True:
            await self._sleep(POLL)
            waited += POLL
            if waited >= RENEW:
                waited = 0.0
                await self._in_thread(self._store.renew, LEASE)
            if self._claimed_elsewhere and self._waiters:
                await self._look_elsewhere()
            self._report_waiting()

    def _report_waiting(self) -> None:
        """Report for how many rows of other kernels the workers wait, if the number changed."""
        count = len(self._claimed_elsewhere) if self._waiters else 0
        counted = f"waiting for {count_noun(count, 'row')}"
        status = f"{counted} that another kernel asks, or asked when it ended" if count else ""
        if status != self._status:
            self._status = status
            self._show_status(status)

    async def _look_elsewhere(self) -> None:
        """Take results of other kernels from the store, and claim rows that they have given up."""
        rows = list(self._claimed_elsewhere.values())[:BATCH]
        usable, claimed_keys = await self._in_thread(self._read_and_claim, rows)
        for row in rows:
            if row.key in usable:
                self._deliver(row, usable[row.key].result, usable[row.key].record)
            elif row.key in claimed_keys:
                self._ready.append(row)
            else:
                continue
            del self._claimed_elsewhere[row.key]
        self._hand_out()

    def _read_and_claim(self, rows: Sequence[Row]) -> tuple[dict[str, FoundRow], set[str]]:
        """Return the rows with usable results, and the keys of others, claimed for the waiters."""
        usable = self._read_usable(rows)
        unanswered = [row for row in rows if row.key not in usable]
        return usable, self._claim(unanswered[: len(self._waiters)])

    def _read_usable(self, rows: Sequence[Row]) -> dict[str, FoundRow]:
        """Return the stored rows that need not be asked again, by key."""
        stored_rows = find_stored_rows(self._store, rows, trust=self._trust)
        return {each.row.key: each for each in stored_rows if each.usable}

    async def _in_thread(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """Call `work` in the thread of the store."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
