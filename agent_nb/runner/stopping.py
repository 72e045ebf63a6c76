"""Ends executions early, on Ctrl-C, SIGTERM or a cancelled CI job, and their kernels with them.

Why: a kernel has its own session, so that signals of the terminal do not reach it, and it goes on
when a signal ends this process. nbclient's own handlers shut the kernel down during a cell, which
then fails as if the notebook were wrong.

Rule: notebooks run on other threads; the main thread only waits, and turns a signal into `Stopped`.
Stopping cancels each registered execution in its loop; the execution shuts its kernel down before
it ends. Further signals are ignored meanwhile, but only for `PATIENCE` seconds.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)
PATIENCE = 5.0  # s after the first signal in which others are ignored


class Stopped(KeyboardInterrupt):
    """Executions were stopped; the message names the signal if a signal raised this."""


class _Executions:
    """The executions of this process that can be stopped; used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()
        self.stopped = False

    @contextmanager
    def add_task(self) -> Iterator[None]:
        """Let the task that runs this be stopped. Raises Stopped if it was, or all were before."""
        task = asyncio.current_task()
        assert task is not None
        with self._lock:
            if self.stopped:
                raise Stopped
            self._tasks.add(task)
        try:
            yield
        except BaseException:
            if self.stopped:  # nbclient reports a cancellation as a dead kernel
                raise Stopped from None
            raise
        finally:
            with self._lock:
                self._tasks.discard(task)

    def stop(self) -> None:
        """Cancel all registered executions; those that begin later raise Stopped."""
        with self._lock:
            self.stopped = True
            for task in self._tasks:
                with suppress(RuntimeError):  # its loop has closed
                    task.get_loop().call_soon_threadsafe(task.cancel)


EXECUTIONS = _Executions()


@contextmanager
def raise_on_signals() -> Iterator[Callable[[], None]]:
    """Raise Stopped on the main thread at the first SIGINT or SIGTERM; on other threads do nothing.

    Yields the function that stops all executions, those included that have not begun. Leave the
    context when all executions have ended: those that begin later are not stopped.
    """
    if threading.current_thread() is not threading.main_thread():
        yield EXECUTIONS.stop
        return
    old_handlers = {number: signal.getsignal(number) for number in SIGNALS}
    first_at = 0.0  # when the first signal came; 0: none has come

    def stop(number: int, _: FrameType | None) -> None:
        nonlocal first_at
        now = time.monotonic()
        if not first_at:
            first_at = now
            raise Stopped(signal.Signals(number).name)
        if now - first_at > PATIENCE:
            os._exit(128 + number)  # as shells report a process that a signal ended

    for number in SIGNALS:
        signal.signal(number, stop)
    try:
        yield EXECUTIONS.stop
    finally:
        for number, handler in old_handlers.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        EXECUTIONS.stopped = False
