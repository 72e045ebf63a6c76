"""Asks rows on the workers of a Dask cluster. The only file that imports `distributed`.

Dask repeats a lost task in silence (`client.map`), but each attempt at a row costs money. So each
attempt is a future of its own, bound to one worker; if the worker goes away, another one asks the
row, up to `MOST_ATTEMPTS` times.

Rules
- A worker gets rows only after it reports this version of the package: a worker that cannot import
  the task's function would lose its connection to the scheduler.
- A worker reports a row to the scheduler before it asks it (`log_event`, one topic for each map),
  so that the attempt counts even if the worker is killed at that moment.
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
from ..asking import RowAnswer, RowAsker
from ..options import MapOptions
from ..row import Row
from . import worker
from .messages import MapMessages
from .shares import Shares
from .spec import spec_of

if TYPE_CHECKING:
    from distributed import Client, Future

T = TypeVar("T")
LOOK_PERIOD = 0.5  # s between two looks for workers
MOST_ATTEMPTS = 5  # attempts at a row whose workers go away
ANSWER_TIMEOUT = 10.0  # s without an answer of the scheduler after which the rows fail
# the name that a worker imports to report its version; every version of the package has it
VERSION_NAME = "agent_nb:__version__"
# types of a worker's report of its version; anything else is a broken connection
REPORTS = (str, ImportError, AttributeError)


def distribute_rows(
    agent: Configuration, client: Any, options: MapOptions, redaction: Redaction
) -> Callable[[], RowAsker]:
    """Return a function that makes the asker of one execution of a map through `client`.

    Raises UsageError if `client` is not a Dask client, or the agent cannot travel.
    """
    spec = spec_of(agent, redaction)
    module = sys.modules.get("distributed")  # not imported: then no object is its Client
    if module is None or not isinstance(client, module.Client):
        raise UsageError(
            f"client= is a {type(client).__name__}. Give a Dask Client (pip install 'jupyter-agent-nb[dask]')."
            " Without client= the rows are asked here, concurrency= at once."
        )
    return lambda: DaskRows(client, MapMessages(spec, redaction, agent.output), options)


def ask_here(message: bytes, topic: str) -> bytes:
    """Ask a row; the task that runs in a worker.

    It leaves the worker's thread pool (`secede`): two threads can then ask all rows of a share.
    """
    from distributed import get_worker, secede

    own_worker = get_worker()
    secede()

    async def report_start(attempt_id: str) -> None:
        report = own_worker.scheduler.log_event(topic=topic, msg=attempt_id)
        sent = asyncio.run_coroutine_threadsafe(report, own_worker.loop.asyncio_loop)
        await asyncio.wrap_future(sent)

    return worker.ask_row(message, report_start)


class DaskRows:
    """Asks rows through a Dask client.

    Private methods run in the client's event loop, except `_in_client_loop`, which enters it.
    """

    def __init__(self, client: Client, messages: MapMessages, options: MapOptions) -> None:
        self._client, self._messages = client, messages
        self._topic = f"agent_nb-map-{messages.name}"
        self._shares = Shares(options.concurrency, options.rpm or 0)
        self._attempts: Counter[str] = Counter()  # how often a row may have been asked, by its key
        self._workers_changed = asyncio.Event()  # set for a moment when workers came or went
        self._room_made = asyncio.Event()  # set when a worker may ask one more row
        self._follower: asyncio.Task[None] | None = None
        self._cancelled_rows: list[tuple[str, str]] = []  # (worker, id of the attempt)
        self._stopper: asyncio.Task[None] | None = None
        self._refusals: dict[str, str] = {}  # worker -> why it gets no rows, "" if it does
        self._worker_request: Future[int] | None = None  # an empty task, until a worker is there
        self._why_stuck = ""  # why no row can be asked

    async def ask(self, row: Row) -> RowAnswer:
        """Ask one row; see `RowAsker`."""
        try:
            return await self._in_client_loop(self._ask(row))
        except asyncio.CancelledError:
            attempts = self._attempts[row.key]
            return RowAnswer(row.result("interrupted", kind="user", attempts=attempts))
        except Exception as fault:  # the client was closed
            return self._make_failure(row, "worker_lost", _describe_lost(fault))

    async def aclose(self) -> None:
        """Stop the rows under way and free the workers; the client stays open."""
        with suppress(Exception):  # the client was closed
            await self._in_client_loop(self._close())

    async def _in_client_loop(self, work: Coroutine[Any, Any, T]) -> T:
        """Await a coroutine in the client's loop.

        Raises RuntimeError if that loop ends: asyncio alone would wait forever.
        """
        loop = self._client.loop.asyncio_loop
        if not loop.is_running():
            work.close()
            raise RuntimeError("its event loop has ended")
        waiting = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))
        try:
            while not waiting.done():
                await asyncio.wait([waiting], timeout=ANSWER_TIMEOUT)
                if not waiting.done() and not loop.is_running():
                    raise RuntimeError("its event loop has ended")
            return waiting.result()
        finally:
            waiting.cancel()

    def _make_failure(self, row: Row, kind: str, error: str) -> RowAnswer:
        attempts = self._attempts[row.key]
        return RowAnswer(row.result("error", kind=kind, error=error, attempts=attempts))

    async def _ask(self, row: Row) -> RowAnswer:
        """Ask a row, again on another worker if its worker goes away."""
        if self._follower is None:
            self._client.subscribe_topic(self._topic, partial(_count_attempt, self._attempts))
            self._follower = asyncio.create_task(self._follow_workers())
        for attempt in range(1, MOST_ATTEMPTS + 1):
            name = await self._choose_worker()
            if not name:
                return self._make_failure(row, "worker_lost", self._why_stuck)
            try:
                answer = await self._submit(name, row, attempt)
            finally:
                self._shares.end_row(name)
                self._room_made.set()
            if answer is None:  # the worker went away: try another one
                continue
            if isinstance(answer, bytes):
                return self._messages.read(row, answer, max(self._attempts[row.key], 1))
            if self._client.status != "running":
                return self._make_failure(row, "worker_lost", _describe_lost(answer))
            error = f"The worker {name} could not ask the row ({_describe_fault(answer)}). Workers and scheduler need jupyter-agent-nb {__version__}."
            return self._make_failure(row, "worker", error)
        error = f"The workers that asked this row went away, {MOST_ATTEMPTS} times in a row. Their logs say why; often it is memory."
        return self._make_failure(row, "worker_lost", error)

    async def _choose_worker(self) -> str:
        """Return a worker as soon as it may ask one more row; "" if no row can be asked."""
        while not self._why_stuck:
            if name := self._shares.begin_row():
                return name
            self._room_made.clear()
            await self._room_made.wait()
        return ""

    async def _submit(self, name: str, row: Row, attempt: int) -> bytes | BaseException | None:
        """Return the worker's answer or exception; None if the worker went away."""
        attempt_id = f"{attempt} {row.key}"
        rpm, revision = self._shares[name].rpm, self._shares.revision
        future: Future[bytes] = self._client.submit(
            ask_here,
            self._messages.write(row, attempt_id, rpm=rpm, shares_revision=revision),
            self._topic,
            key=f"agent_nb_row-{self._messages.name}-{attempt}-{row.key}",  # as the dashboard shows
            workers=[name],
            allow_other_workers=False,
            pure=False,
        )
        getting = asyncio.ensure_future(self._client.gather(future, asynchronous=True))
        leaving = asyncio.create_task(self._wait_until_gone(name))
        try:
            await asyncio.wait({getting, leaving}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:  # this row's; one from the cluster stays in `getting`
            self._cancelled_rows.append((name, attempt_id))
            self._stopper = self._stopper or asyncio.create_task(self._stop())
            raise
        else:
            return _read_outcome(getting) if getting.done() else None
        finally:
            leaving.cancel()
            future.release()  # ends `getting`; cancelling it would also cancel other rows' gathers
            # reads the exception, which asyncio would log as never retrieved
            getting.add_done_callback(lambda task: task.cancelled() or task.exception())

    async def _wait_until_gone(self, name: str) -> None:
        """Return once a worker has no share any more, or no row can be asked."""
        while name in self._shares and not self._why_stuck:
            await self._workers_changed.wait()

    async def _follow_workers(self) -> None:
        """Follow the workers of the cluster until the map is closed."""
        last_answer = time.monotonic()
        while True:
            try:
                async with asyncio.timeout(ANSWER_TIMEOUT):
                    workers = await self._client.nthreads()
                fit = await self._select_fit(workers)
                self._request_worker(not workers)
                last_answer = time.monotonic()
                # every worker has reported, and none fits; without workers `_why_stuck` stays ""
                hopeless = not fit and len(self._refusals) == len(workers)
                self._why_stuck = next(iter(self._refusals.values()), "") if hopeless else ""
            except Exception as fault:  # the scheduler does not answer
                fit = []
                silence = time.monotonic() - last_answer
                if self._client.status == "running" and silence < ANSWER_TIMEOUT:
                    await asyncio.sleep(LOOK_PERIOD)
                    continue
                self._why_stuck = _describe_lost(fault)
            before = self._shares.revision
            self._shares.update(fit, last_answer)
            if self._why_stuck or self._shares.revision != before:
                self._workers_changed.set()  # wakes the tasks that wait now
                self._workers_changed.clear()
                self._room_made.set()
            await asyncio.sleep(LOOK_PERIOD)

    def _request_worker(self, wanted: bool) -> None:
        """Hold an empty task while a worker is wanted, so that an adaptive cluster starts one."""
        if wanted and self._worker_request is None:
            self._worker_request = self._client.submit(int, key=f"{self._topic}-worker", pure=False)
        elif not wanted and self._worker_request is not None:
            self._worker_request.release()
            self._worker_request = None

    async def _select_fit(self, workers: Iterable[str]) -> list[str]:
        """Return the workers that have this package, in this version."""
        self._refusals = {name: self._refusals[name] for name in workers if name in self._refusals}
        if new_workers := [name for name in workers if name not in self._refusals]:
            with suppress(Exception):  # a worker that goes away, or is busy: it is asked again
                async with asyncio.timeout(ANSWER_TIMEOUT):
                    versions = await self._client.run(
                        pkgutil.resolve_name, VERSION_NAME, workers=new_workers, on_error="return"
                    )
                for name, version in versions.items():
                    if isinstance(version, REPORTS):
                        self._refusals[name] = _explain_refusal(name, version)
        return [name for name in workers if self._refusals.get(name) == ""]

    async def _stop(self) -> None:
        """Stop the runs of all rows that were cancelled in this round of the event loop."""
        await asyncio.sleep(0)  # until the other rows of this round are in `_cancelled_rows` too
        cancelled, self._cancelled_rows, self._stopper = self._cancelled_rows, [], None
        names = {name for name, _ in cancelled if name in self._shares}
        await self._call_workers(worker.stop_rows, sorted(names), [id_ for _, id_ in cancelled])

    async def _close(self) -> None:
        if self._follower is None:
            return
        self._follower.cancel()
        self._request_worker(False)
        if self._stopper is not None:
            await self._stopper
        if self._client.status == "running":
            self._client.unsubscribe_topic(self._topic)
            fit = [name for name, why in self._refusals.items() if not why]
            await self._call_workers(worker.forget_map, fit)

    async def _call_workers(self, function: Any, workers: list[str], *args: Any) -> None:
        """Call a function in workers, with the name of the map."""
        with suppress(Exception):  # a worker that goes away meanwhile
            async with asyncio.timeout(ANSWER_TIMEOUT):
                await self._client.run(
                    function, self._messages.name, *args, workers=workers, on_error="ignore"
                )


def _count_attempt(attempts: Counter[str], event: tuple[float, str]) -> None:
    """Count that a row begins.

    A function: the client keeps its handlers alive, and with a method it would keep the asker.
    """
    attempts[event[1].partition(" ")[2]] += 1  # see `attempt_id` in `_submit`


def _read_outcome(getting: asyncio.Future[bytes]) -> bytes | BaseException | None:
    """Return the result of a task, or the exception that it raised; None if its worker died."""
    from distributed import KilledWorker

    try:
        return getting.result()
    except KilledWorker:
        return None
    except (Exception, asyncio.CancelledError) as fault:
        return fault


def _describe_fault(fault: BaseException) -> str:
    return f"{type(fault).__name__}: {fault}".rstrip(".")


def _describe_lost(fault: BaseException) -> str:
    return f"The Dask client has lost its cluster, or was closed ({_describe_fault(fault)}). Run the map again with another client: what is done is kept."


def _explain_refusal(name: str, version: object) -> str:
    """Return why a worker of this `version` gets no rows, "" if it does."""
    if version == __version__:
        return ""
    has = f"has {version}" if isinstance(version, str) else f"lacks it ({version})"
    return f"The worker {name} needs jupyter-agent-nb {__version__} and {has}. Install it on every worker and on the scheduler."
