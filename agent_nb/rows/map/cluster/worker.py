"""The worker's side: asks the rows that a client sends, in one event loop for the whole process.

Why one loop: Dask calls `ask_row` in many threads, but connections, the limiter of an endpoint
and the tools of an agent live in an event loop, where a thousand rows wait as cheaply as a single
row.

Rules
- Keys come from the worker's own environment.
- `ask_row` returns a result for every row; it raises only for bytes that are not a message.
- The loop ends with the last map (`forget_map`). If a client goes away without that call, its map
  keeps its connections until `KEPT_MAPS` newer maps are idle.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress

import msgspec

from ....agent import Basis, Configuration, enter_run
from ....host import __version__
from ..asking import Answered, LocalRows
from ..row import RowResult
from ..row_result import failed_result
from .messages import Returned, VersionSkew, Work, read_message
from .spec import AgentSpec, agent_of

KEPT_MAPS = 4  # idle maps that keep their connections
Begun = Callable[[str], Awaitable[None]]  # reports the ticket of a row that is about to be asked


class WorkerMap:
    """One map in this process; only `tasks` is read outside the event loop, to find idle maps.

    The first row makes the agent. If that fails in this process, each row ends with the error.
    """

    def __init__(self, spec: AgentSpec) -> None:
        self.tasks: dict[str, asyncio.Task[Answered]] = {}  # of the rows under way, by ticket
        self._spec = spec
        self._agent: Configuration | None = None
        self._rows: LocalRows | None = None
        self._issue = 0

    async def ask(self, work: Work, begun: Begun | None) -> Answered:
        """Ask a row; `begun` is awaited just before. Raises nothing."""
        task = self.tasks[work.ticket] = asyncio.create_task(self._ask(work, begun))
        try:
            return await task
        except asyncio.CancelledError:
            return Answered(work.row.result("interrupted", kind="user", attempts=1))
        except Exception as fault:  # any fault becomes the error of the row
            return Answered(failed_result(work.row, fault))
        finally:
            del self.tasks[work.ticket]

    async def _ask(self, work: Work, begun: Begun | None) -> Answered:
        """Ask a row; before, make the agent for the first row and apply a newer rate limit."""
        enter_run()
        if self._rows is None:
            self._agent = self._agent or agent_of(self._spec)
            self._rows = LocalRows(self._agent, Basis.of(self._agent, self._agent.redaction()))
        if work.issue > self._issue:
            self._rows.limit_rate(work.rpm)
            self._issue = work.issue
        if begun is not None:
            await begun(work.ticket)
        return await self._rows.ask(work.row)

    def stop(self, tickets: Collection[str]) -> None:
        """Stop the rows with these tickets."""
        for ticket in self.tasks.keys() & tickets:
            self.tasks[ticket].cancel()

    async def aclose(self) -> None:
        """Stop all rows and close the connections."""
        self.stop(self.tasks.keys())
        if self.tasks:
            await asyncio.wait(self.tasks.values())
        for each in (self._rows, self._agent):
            if each is not None:
                await each.aclose()


class ProcessWorker:
    """The event loop of this process, on a thread of its own, and the maps by name."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.maps: dict[str, WorkerMap] = {}  # in the order of their latest row
        self.lock = threading.Lock()

    def ask(self, work: Work, begun: Begun | None) -> Answered:
        """Ask a row and wait for it, on any thread."""
        with self.lock:
            loop = self.loop = self.loop or _start_loop()
            current = self.maps.pop(work.map, None) or WorkerMap(work.spec)
            self.maps[work.map] = current  # at the end again, as the latest
            asking = asyncio.run_coroutine_threadsafe(current.ask(work, begun), loop)
            idle = [n for n, each in self.maps.items() if not each.tasks and each is not current]
            for name in idle[:-KEPT_MAPS]:
                asyncio.run_coroutine_threadsafe(self.maps.pop(name).aclose(), loop)
        return asking.result()


def _start_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop that runs in a thread of its own until it is stopped."""
    loop = asyncio.new_event_loop()

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.get_loop().run_forever()

    threading.Thread(target=run, name="agent_nb worker", daemon=True).start()
    return loop


_workers: dict[int, ProcessWorker] = {}  # by process id: a forked process makes its own


def process_worker() -> ProcessWorker:
    """Return the worker of this process."""
    return _workers.setdefault(os.getpid(), ProcessWorker())


def ask_row(message: bytes, begun: Begun | None = None) -> bytes:
    """Ask the row of a message and return its result as a message; see `WorkerMap.ask`."""
    try:
        answered = process_worker().ask(read_message(message, Work), begun)
    except VersionSkew as skew:
        error = f"The worker has jupyter-agent-nb {__version__}, and the map comes from {skew}. Install the same version on both sides."
        answered = Answered(
            RowResult(position=0, key="", status="error", kind="version", error=error)
        )
    return msgspec.json.encode(Returned(result=answered.result, record=answered.record))


def stop_rows(name: str, tickets: Collection[str]) -> None:
    """Stop rows of a map in this process; return at once."""
    own_process = process_worker()
    if (stopping := own_process.maps.get(name)) is not None and own_process.loop is not None:
        own_process.loop.call_soon_threadsafe(stopping.stop, tickets)


def forget_map(name: str) -> None:
    """Stop a map in this process and close its connections; after the last map, end the loop.

    Return at once.
    """
    own_process = process_worker()
    with own_process.lock:
        closing, loop = own_process.maps.pop(name, None), own_process.loop
        if closing is None or loop is None:
            return
        is_last = not own_process.maps
        if is_last:
            own_process.loop = None

    async def close() -> None:
        with suppress(Exception):  # a connection may fail to close
            await closing.aclose()
        if is_last:
            loop.call_soon(loop.stop)

    asyncio.run_coroutine_threadsafe(close(), loop)
