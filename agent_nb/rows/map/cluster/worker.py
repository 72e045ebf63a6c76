"""What runs in a worker: it asks the rows that it is sent, in one event loop for the process.

Why one loop: Dask calls `ask_row` in many threads, but connections, the limiter of an endpoint
and the tools of an agent live in an event loop, where a thousand rows wait as cheaply as one.

Rules
- Keys come from the worker's own environment.
- `ask_row` returns a result for every row and raises nothing. A row that is stopped is returned as
  interrupted.
- The loop ends with the last map (`forget_map`). Where a client goes away without that, the `KEPT`
  latest maps without rows under way keep their connections.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Collection
from contextlib import suppress

from ....host import __version__
from ..asking import Answered
from ..row import RowResult
from .work import Returned, Skew, Work, encode, read_work
from .worker_agent import Begun, WorkerAgent

KEPT = 4


class ProcessWorker:
    """The event loop of this process, and the maps whose rows it asks."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self._agents: dict[str, WorkerAgent] = {}
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def ask(self, work: Work, begun: Begun | None) -> Answered:
        """Ask a row and wait for it; see `WorkerAgent.ask`."""
        with self._lock:
            loop = self._loop = self._loop or _started()
            agent = self._agents.pop(work.map, None) or WorkerAgent(work.spec)
            self._agents[work.map] = agent
            asking = asyncio.run_coroutine_threadsafe(agent.ask(work, begun), loop)
            for name in [n for n, s in self._agents.items() if s.idle and s is not agent][:-KEPT]:
                asyncio.run_coroutine_threadsafe(self._agents.pop(name).aclose(), loop)
        return asking.result()

    def stop(self, name: str, tickets: Collection[str] | None) -> None:
        """Stop rows of a map, all if None; return at once."""
        agent, loop = self._agents.get(name), self._loop
        if agent is not None and loop is not None:
            loop.call_soon_threadsafe(agent.stop, tickets)

    def forget(self, name: str) -> None:
        """Stop a map and close its connections; without maps, end the loop. Return at once."""
        with self._lock:
            agent, loop = self._agents.pop(name, None), self._loop
            if agent is None or loop is None:
                return
            last = not self._agents
            self._loop = None if last else loop
        asyncio.run_coroutine_threadsafe(_closed(agent, loop, last=last), loop)


async def _closed(agent: WorkerAgent, loop: asyncio.AbstractEventLoop, *, last: bool) -> None:
    with suppress(Exception):  # a connection that does not close
        await agent.aclose()
    if last:
        loop.call_soon(loop.stop)


def _started() -> asyncio.AbstractEventLoop:
    """Return an event loop that runs in a thread of its own until it is stopped."""
    loop = asyncio.new_event_loop()

    def run() -> None:
        try:
            loop.run_forever()
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())
        finally:
            loop.close()

    threading.Thread(target=run, name="agent_nb worker", daemon=True).start()
    return loop


_workers: dict[int, ProcessWorker] = {}  # by process: one that was forked has one of its own
_making = threading.Lock()


def process_worker() -> ProcessWorker:
    """Return the worker of this process."""
    with _making:
        return _workers.setdefault(os.getpid(), ProcessWorker())


def ask_row(message: bytes, begun: Begun | None = None) -> bytes:
    """Ask the row of a message and return what came of it, as a message; see `WorkerAgent.ask`."""
    try:
        work = read_work(message)
    except Skew as skew:
        return encode(Returned(result=_skewed(skew)))
    answered = process_worker().ask(work, begun)
    record = None if answered.record is None else dict(answered.record)
    return encode(Returned(result=answered.result, record=record))


def stop_rows(name: str, tickets: Collection[str] | None = None) -> None:
    """Stop rows of a map in this process, all if None."""
    process_worker().stop(name, tickets)


def forget_map(name: str) -> None:
    """Stop a map in this process and close what it holds."""
    process_worker().forget(name)


def _skewed(skew: Skew) -> RowResult:
    return RowResult(
        position=0,
        key="",
        status="error",
        kind="version",
        error=f"The worker has jupyter-agent-nb {__version__}, and the map comes from {skew.version}. Install the same version on both sides.",
    )
