"""Rows asked by the workers of a Dask cluster. The only file that imports `distributed`.

Rules
- One future a row and attempt, held to one worker; its key names the map, the attempt and the row.
  A task leaves its worker's pool of threads at once (`secede`), so that a worker with two threads
  asks as many rows at once as its share allows.
- Workers may come and go: they are looked for every `LOOK` seconds, and the shares follow. A row
  whose worker went away is asked again by another one, `MOST` times at most. While there is no
  worker, an empty task waits for one, so that a cluster that adapts starts one.
- A worker gets rows when it has said that it has this package, in this version: a worker that reads
  a function it cannot import loses its connection to the scheduler.
- Just before a row is asked, its worker reports it to the scheduler and waits until the scheduler
  has it (`log_event`, one topic a map). So each time that a row may have been asked is counted,
  even if its worker is killed in that moment.
- Everything runs in the event loop of the client, whichever loop the map runs in; a `Client` may be
  synchronous or asynchronous.
- Stop: futures are cancelled, and the workers stop the runs (`client.run`).
"""

from __future__ import annotations

import asyncio
import pkgutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ....agent import Configuration
from ....errors import UsageError
from ....host import __version__
from ....wire import Redaction
from ..asking import Answered, RowAsker
from ..options import MapOptions
from ..row import Row
from . import worker
from .sending import LOST, Sending, fault_of
from .shares import Shares
from .spec import spec_of
from .worker_agent import stopped_result

if TYPE_CHECKING:
    from distributed import Client, Future

T = TypeVar("T")
LOOK = 0.5  # s between two looks for workers
MOST = 5  # attempts of a row whose workers go away
PATIENCE = 10.0  # s without an answer of the scheduler after which the rows end
NAME = "agent_nb_row"  # how the dashboard calls a row
# What a worker is asked for: the name that all versions have, whichever modules they consist of.
VERSION = "agent_nb:__version__"
ANSWERS = (str, ImportError, AttributeError)  # to it; anything else is a broken connection


def is_dask(client: object) -> bool:
    """Return whether an object is a Dask client; without Dask none is."""
    if "distributed" not in sys.modules:
        return False
    from distributed import Client

    return isinstance(client, Client)


def distribute_rows(
    agent: Configuration, client: Any, options: MapOptions, redaction: Redaction
) -> Callable[[], RowAsker]:
    """Return what makes the asker of one execution of a map through `client`.

    Raises UsageError for what is not a Dask client, and for an agent that cannot travel.
    """
    spec = spec_of(agent, redaction)
    if not is_dask(client):
        raise UsageError(
            f"client= is a {type(client).__name__}. Give a Dask Client (pip install 'jupyter-agent-nb[dask]')."
            " Without client= the rows are asked here, concurrency= at once."
        )
    return lambda: DaskRows(client, Sending(spec, redaction, agent.output), options)


def ask_here(message: bytes, topic: str) -> bytes:
    """Ask a row; the task that runs in a worker."""
    from distributed import get_worker, secede

    here = get_worker()
    secede()

    async def begun(ticket: str) -> None:
        """Report to the scheduler that a row begins, and wait until it knows."""
        report = here.scheduler.log_event(topic=topic, msg=ticket)
        sent = asyncio.run_coroutine_threadsafe(report, here.loop.asyncio_loop)
        await asyncio.wrap_future(sent)

    return worker.ask_row(message, begun)


class DaskRows:
    """Asks rows through a Dask client."""

    def __init__(self, client: Client, sending: Sending, options: MapOptions) -> None:
        self._client = client
        self._sending = sending
        self._topic = f"agent_nb-map-{sending.name}"
        self._shares = Shares(options.concurrency, options.rpm or 0)
        self._begun: Counter[str] = Counter()  # by row
        self._moved = asyncio.Event()  # workers came or went
        self._freed = asyncio.Event()  # a worker may ask one more row
        self._looking: asyncio.Task[None] | None = None
        self._dropped: list[tuple[str, str]] = []  # rows that are wanted no longer, their workers
        self._stopping: asyncio.Task[None] | None = None
        self._unfit: dict[str, str] = {}  # why a worker gets no rows; "" for those that do
        self._wish: Future[int] | None = None  # the task that waits for a first worker
        self._down = ""  # why no row can be asked

    async def ask(self, row: Row) -> Answered:
        """Ask one row; see `RowAsker`."""
        try:
            return await self._there(self._ask(row))
        except asyncio.CancelledError:
            return Answered(stopped_result(row, self._begun[row.key]))
        except Exception as fault:  # the client was closed
            return fault_of(row, LOST, _lost(fault), self._begun[row.key])

    async def aclose(self) -> None:
        """Stop what still runs and leave the cluster as it was; the client stays open."""
        with suppress(Exception):  # the client was closed
            await self._there(self._close())

    async def _there(self, work: Coroutine[Any, Any, T]) -> T:
        """Await a coroutine in the event loop of the client.

        Raises RuntimeError if that loop has ended, which asyncio would not notice.
        """
        loop = self._client.loop.asyncio_loop
        if not loop.is_running():
            work.close()
            raise RuntimeError("its event loop has ended")
        waiting = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))
        try:
            while not waiting.done():
                await asyncio.wait([waiting], timeout=PATIENCE)
                if not waiting.done() and not loop.is_running():
                    raise RuntimeError("its event loop has ended")
            return waiting.result()
        finally:
            waiting.cancel()

    async def _ask(self, row: Row) -> Answered:
        if self._looking is None:
            self._client.subscribe_topic(self._topic, partial(_count, self._begun))
            self._looking = asyncio.create_task(self._look())
        for attempt in range(1, MOST + 1):
            name = await self._free()
            if not name:
                return fault_of(row, LOST, self._down, self._begun[row.key])
            try:
                answer = await self._asked_by(name, row, attempt)
            finally:
                self._shares.give_back(name)
                self._freed.set()
            if isinstance(answer, bytes):
                return self._sending.received(row, answer, max(self._begun[row.key], 1))
            if answer is not None and self._client.status != "running":
                return fault_of(row, LOST, _lost(answer), self._begun[row.key])
            if answer is not None:
                return fault_of(row, "worker", _cannot(name, answer), self._begun[row.key])
        reason = f"The workers that asked this row went away, {MOST} times in a row. Their logs say why; often it is memory."
        return fault_of(row, LOST, reason, self._begun[row.key])

    async def _asked_by(self, name: str, row: Row, attempt: int) -> bytes | BaseException | None:
        """Return the message of a worker, what it raised, or None if it went away."""
        ticket = f"{attempt} {row.key}"
        rpm, issue = self._shares[name].rpm, self._shares.issue
        future: Future[bytes] = self._client.submit(
            ask_here,
            self._sending.message(row, ticket, rpm=rpm, issue=issue),
            self._topic,
            key=f"{NAME}-{self._sending.name}-{attempt}-{row.key}",
            workers=[name],
            allow_other_workers=False,
            pure=False,
        )
        getting = asyncio.ensure_future(self._client.gather(future, asynchronous=True))
        leaving = asyncio.create_task(self._gone(name))
        try:
            await asyncio.wait({getting, leaving}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._drop(ticket, name)
            raise
        else:
            return _outcome(getting) if getting.done() else None
        finally:
            leaving.cancel()
            future.release()  # ends `getting`; a cancellation would reach what others gather
            getting.add_done_callback(_heard)

    async def _free(self) -> str:
        """Return the worker for a row, as soon as one may ask; "" if the cluster is gone."""
        while not self._down:
            if name := self._shares.take():
                return name
            self._freed.clear()
            await self._freed.wait()
        return ""

    async def _gone(self, name: str) -> None:
        while name in self._shares and not self._down:
            await self._moved.wait()

    async def _look(self) -> None:
        """Follow the workers of the cluster until the map is closed."""
        heard = time.monotonic()
        while True:
            try:
                async with asyncio.timeout(PATIENCE):
                    workers = await self._client.nthreads()
                fit = await self._fit(workers)
                self._wish_for(not workers)
                heard = time.monotonic()
                hopeless = not fit and len(self._unfit) == len(workers)
                self._down = next(iter(self._unfit.values()), "") if hopeless else ""
            except Exception as fault:  # the scheduler does not answer
                fit = []
                if self._client.status == "running" and time.monotonic() - heard < PATIENCE:
                    await asyncio.sleep(LOOK)
                    continue
                self._down = _lost(fault)
            before = self._shares.issue
            self._shares.update(fit, heard)
            if self._down or self._shares.issue != before:
                self._moved.set()  # wakes who waits now
                self._moved.clear()
                self._freed.set()
            await asyncio.sleep(LOOK)

    def _wish_for(self, wanted: bool) -> None:
        """Hold an empty task while a worker is wanted."""
        if wanted and self._wish is None:
            self._wish = self._client.submit(int, key=f"{self._topic}-worker", pure=False)
        elif not wanted and self._wish is not None:
            self._wish.release()
            self._wish = None

    async def _fit(self, workers: Iterable[str]) -> list[str]:
        """Return the workers that have this package, in this version."""
        self._unfit = {name: self._unfit[name] for name in workers if name in self._unfit}
        if fresh := [name for name in workers if name not in self._unfit]:
            with suppress(Exception):  # a worker that goes away, or is busy: it is asked again
                async with asyncio.timeout(PATIENCE):
                    versions = await self._client.run(
                        pkgutil.resolve_name, VERSION, workers=fresh, on_error="return"
                    )
                answered = {n: s for n, s in versions.items() if isinstance(s, ANSWERS)}
                self._unfit |= {name: _unfit(name, said) for name, said in answered.items()}
        return [name for name in workers if self._unfit.get(name) == ""]

    def _drop(self, ticket: str, name: str) -> None:
        self._dropped.append((ticket, name))
        self._stopping = self._stopping or asyncio.create_task(self._stop())

    async def _stop(self) -> None:
        """Stop the runs of rows that are wanted no longer."""
        await asyncio.sleep(0)
        dropped, self._dropped, self._stopping = self._dropped, [], None
        tickets = [ticket for ticket, _ in dropped]
        names = {name for _, name in dropped if name in self._shares}
        await self._run(worker.stop_rows, tickets, workers=sorted(names))

    async def _close(self) -> None:
        if self._looking is None:
            return
        self._looking.cancel()
        self._wish_for(False)
        if self._stopping is not None:
            await self._stopping
        if self._client.status == "running":
            self._client.unsubscribe_topic(self._topic)
            fit = [name for name, why in self._unfit.items() if not why]
            await self._run(worker.forget_map, workers=fit)

    async def _run(self, function: Any, *args: Any, **where: Any) -> None:
        with suppress(Exception):  # a worker that goes away meanwhile
            async with asyncio.timeout(PATIENCE):
                await self._client.run(
                    function, self._sending.name, *args, on_error="ignore", **where
                )


def _heard(getting: asyncio.Future[bytes]) -> None:
    """Take note of the outcome of a task that is wanted no longer."""
    if not getting.cancelled():
        getting.exception()


def _count(begun: Counter[str], event: tuple[float, str]) -> None:
    """Count that a row begins; without the map itself, as the client keeps its handlers."""
    begun[event[1].partition(" ")[2]] += 1


def _outcome(getting: asyncio.Future[bytes]) -> bytes | BaseException | None:
    """Return what a task returned or raised, None if its worker died."""
    from distributed import KilledWorker

    try:
        return getting.result()
    except KilledWorker:
        return None
    except (Exception, asyncio.CancelledError) as fault:
        return fault


def _lost(fault: BaseException) -> str:
    reason = f"{type(fault).__name__}: {fault}".rstrip(".")
    return f"The Dask client has lost its cluster, or was closed ({reason}). Run the map again with another client: what is done is kept."


def _unfit(name: str, version: object) -> str:
    """Return why a worker of this `version` gets no rows, "" if it does."""
    if version == __version__:
        return ""
    has = f"has {version}" if isinstance(version, str) else f"lacks it ({version})"
    return f"The worker {name} needs jupyter-agent-nb {__version__} and {has}. Install it on every worker and on the scheduler."


def _cannot(name: str, fault: BaseException) -> str:
    reason = f"{type(fault).__name__}: {fault}".rstrip(".")
    return f"The worker {name} could not ask the row ({reason}). Workers and scheduler need jupyter-agent-nb {__version__}."
