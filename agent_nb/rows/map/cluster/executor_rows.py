"""Rows asked beyond this process: `client=` of a map, a Dask `Client` or an executor.

Rules
- Any `concurrent.futures.Executor`: one future a row. It asks as many rows at once as it has
  workers, and no more than `concurrency`.
- A limit of requests per minute is split evenly over the processes of the executor, so their number
  must be known.
- A row that is stopped: waiting, its future is cancelled; under way, its worker stops its run.
  Threads are reached directly; for processes, the row has a file that is removed, and a future is
  not cancelled: a pool that breaks would fail at it, and leave all others without an end.
- A pool that breaks (a process of it died) asks no more: its rows end with an error that says so. A
  row that was sent counts as asked.
"""

from __future__ import annotations

import asyncio
import platform
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from contextlib import suppress
from pathlib import Path
from typing import Any

from ....agent.configuration import Configuration
from ....errors import UsageError
from ....wire.redact import Redaction
from ..asking import Answered, RowAsker
from ..options import MapOptions
from ..row import Row
from . import worker
from .dask_rows import DaskRows, is_dask
from .sending import LOST, Sending, fault_of
from .spec import spec_of
from .worker_agent import stopped_result


def describe_client(client: Any) -> str:
    """Return what the plan of a map calls the place of its rows."""
    return "" if client is None else "dask" if is_dask(client) else "executor"


def distribute_rows(
    agent: Configuration, client: Any, options: MapOptions, redaction: Redaction
) -> Callable[[], RowAsker]:
    """Return what makes the asker of one execution of a map through `client`.

    Raises UsageError for a client that cannot be used, and for an agent that cannot travel.
    """
    spec = spec_of(agent, redaction)
    if is_dask(client):
        return lambda: DaskRows(client, Sending(spec, redaction, agent.output), options)
    if not isinstance(client, Executor):
        raise UsageError(
            f"client= is a {type(client).__name__}. Give a Dask Client, or a concurrent.futures.Executor such as ProcessPoolExecutor()."
        )
    rpm = _share(client, options.rpm or 0)
    return lambda: ExecutorRows(client, Sending(spec, redaction, agent.output), rpm)


class ExecutorRows:
    """Asks rows in the workers of an executor; `rpm`: requests per minute of each process."""

    def __init__(self, executor: Executor, sending: Sending, rpm: int) -> None:
        self._executor = executor
        self._sending = sending
        self._rpm = rpm
        self._near = isinstance(executor, ThreadPoolExecutor)
        self._files = "" if self._near else tempfile.mkdtemp(prefix="agent_nb_map_")
        self._sent = 0

    async def ask(self, row: Row) -> Answered:
        """Ask one row; see `RowAsker`."""
        self._sent += 1
        ticket = f"{self._sent}"
        alive = Path(self._files, ticket) if self._files else None
        more = {"alive": str(alive), "node": platform.node()} if alive else {}
        message = self._sending.message(row, ticket, rpm=self._rpm, issue=1, **more)
        try:
            if alive is not None:
                alive.touch()
            future = self._executor.submit(worker.ask_row, message)
        except BrokenExecutor as fault:
            return _broken(row, fault, 0)
        except RuntimeError as fault:  # it was shut down
            return fault_of(row, LOST, f"The executor takes no rows: {fault}.", 0)
        try:
            await _ended(future)
            return self._sending.received(row, future.result(), 1)
        except asyncio.CancelledError:
            begun = future.running() or future.done()
            if self._near:
                worker.stop_rows(self._sending.name, [ticket])
            if not isinstance(self._executor, ProcessPoolExecutor):
                future.cancel()
            return Answered(stopped_result(row, int(begun)))
        except BrokenExecutor as fault:
            return _broken(row, fault, 1)
        except Exception as fault:  # whatever a worker raises that cannot run ours
            reason = f"A worker cannot ask rows ({type(fault).__name__}: {fault}). Install jupyter-agent-nb on every worker."
            return fault_of(row, "worker", reason, 1)
        finally:
            if alive is not None:
                alive.unlink(missing_ok=True)

    async def aclose(self) -> None:
        """Stop what still runs; the executor stays open."""
        if self._near:
            worker.forget_map(self._sending.name)
        else:
            shutil.rmtree(self._files, ignore_errors=True)


async def _ended(future: Future[bytes]) -> None:
    """Wait for a future, which outlives a cancellation of this wait."""
    loop, ended = asyncio.get_running_loop(), asyncio.Event()

    def tell(_: object) -> None:
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(ended.set)

    future.add_done_callback(tell)
    await ended.wait()


def _share(executor: Executor, rpm: int) -> int:
    """Return the requests per minute of one process (0: no limit). Raises UsageError."""
    if not rpm or isinstance(executor, ThreadPoolExecutor):
        return rpm
    processes = getattr(executor, "_max_workers", None)
    if not isinstance(processes, int) or processes < 1:
        raise UsageError(
            f"rpm={rpm} cannot be split: how many processes a {type(executor).__name__} has is unknown. Give a Dask Client or a ProcessPoolExecutor."
        )
    if rpm < processes:
        raise UsageError(
            f"rpm={rpm} cannot be split over {processes} processes. Give an executor with at most {rpm} (max_workers={rpm})."
        )
    return rpm // processes


def _broken(row: Row, fault: BrokenExecutor, attempts: int) -> Answered:
    return fault_of(
        row,
        LOST,
        f"The executor is broken: a process of it ended abruptly ({type(fault).__name__})."
        " Make a new executor and run the map again: what is done is kept.",
        attempts,
    )
