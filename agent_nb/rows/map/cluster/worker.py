"""The worker's side: asks the rows that a client sends, in one event loop for the whole process.

Dask calls `ask_row` in many threads, but connections, the limiter of an endpoint and the tools of
an agent live in an event loop, where a thousand rows wait as cheaply as one.

Rule: the loop ends with the last map (`forget_map`). If a client goes away without that call, its
map stays, with its connections, until `KEPT_MAPS` newer maps are idle.
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
from ..asking import LocalRows, RowAnswer
from ..row import RowResult
from ..row_result import failed_result
from .messages import RowRequest, RowResponse, VersionSkew, read_message
from .spec import AgentSpec, agent_of

KEPT_MAPS = 4  # idle maps that keep their connections
ReportStart = Callable[[str], Awaitable[None]]  # takes the id of an attempt that begins now


class WorkerMap:
    """One map in this process; only `tasks` is read outside the event loop, to find idle maps.

    The first row makes the agent. If that fails in this process, each row ends with the error.
    """

    def __init__(self, spec: AgentSpec) -> None:
        self.tasks: dict[str, asyncio.Task[RowAnswer]] = {}  # of the attempts under way
        self._spec = spec
        self._agent: Configuration | None = None
        self._rows: LocalRows | None = None
        self._revision = 0

    async def ask(self, request: RowRequest, report_start: ReportStart | None) -> RowAnswer:
        """Ask a row; await `report_start` just before. Every fault becomes the error of the row."""
        task = self.tasks[request.attempt_id] = asyncio.create_task(
            self._ask(request, report_start)
        )
        try:
            return await task
        except asyncio.CancelledError:
            return RowAnswer(request.row.result("interrupted", kind="user", attempts=1))
        except Exception as fault:  # any fault becomes the error of the row
            return RowAnswer(failed_result(request.row, fault))
        finally:
            del self.tasks[request.attempt_id]

    async def _ask(self, request: RowRequest, report_start: ReportStart | None) -> RowAnswer:
        """Ask a row; before, make the agent for the first row and apply a newer rate limit."""
        enter_run()
        if self._rows is None:
            self._agent = self._agent or agent_of(self._spec)
            self._rows = LocalRows(self._agent, Basis.of(self._agent, self._agent.redaction()))
        if request.shares_revision > self._revision:
            self._rows.limit_rate(request.rpm)
            self._revision = request.shares_revision
        if report_start is not None:
            await report_start(request.attempt_id)
        return await self._rows.ask(request.row)

    def stop(self, attempt_ids: Collection[str]) -> None:
        """Stop these attempts."""
        for attempt_id in self.tasks.keys() & attempt_ids:
            self.tasks[attempt_id].cancel()

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

    def ask(self, request: RowRequest, report_start: ReportStart | None) -> RowAnswer:
        """Ask a row and wait for it, on any thread."""
        with self.lock:
            loop = self.loop = self.loop or _start_loop()
            current = self.maps.pop(request.map, None) or WorkerMap(request.spec)
            self.maps[request.map] = current  # at the end again, as the latest
            asking = asyncio.run_coroutine_threadsafe(current.ask(request, report_start), loop)
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


def ask_row(message: bytes, report_start: ReportStart | None = None) -> bytes:
    """Ask the row of a message and return its result as a message, errors of the row included.

    Raises only DecodeError, for bytes that are not a message. `report_start`: see `WorkerMap.ask`.
    """
    try:
        answered = process_worker().ask(read_message(message, RowRequest), report_start)
    except VersionSkew as skew:
        error = f"The worker has jupyter-agent-nb {__version__}, and the map comes from {skew}. Install the same version on both sides."
        answered = RowAnswer(
            RowResult(position=0, key="", status="error", kind="version", error=error)
        )
    return msgspec.json.encode(RowResponse(result=answered.result, record=answered.record))


def stop_rows(name: str, attempt_ids: Collection[str]) -> None:
    """Stop rows of a map in this process; return at once."""
    own_process = process_worker()
    if (stopping := own_process.maps.get(name)) is not None and own_process.loop is not None:
        own_process.loop.call_soon_threadsafe(stopping.stop, attempt_ids)


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
