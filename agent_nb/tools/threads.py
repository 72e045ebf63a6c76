"""Run a function in a thread that may be abandoned.

Why: a tool may never return. The interpreter joins the pool threads of asyncio and anyio when it
exits, so such a tool would block the exit. It does not join daemon threads.

Rules
- What the function raises reaches the event loop inside a `Caught`, as a value: a KeyboardInterrupt
  raised in a task would end the loop.
- `stop` raises SystemExit in the function, at most once; inside a call of C code it comes only when
  that call returns.
"""

from __future__ import annotations

import asyncio
import contextvars
import ctypes
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec


class Caught(msgspec.Struct, frozen=True):
    """How a function ended: its value, or what it raised."""

    value: Any = None
    error: BaseException | None = None


def catch_outcome(function: Callable[[], Any]) -> Caught:
    """Call `function` and return how it ended; nothing is raised."""
    try:
        return Caught(function())
    except BaseException as error:  # KeyboardInterrupt too: see the rules
        return Caught(error=error)


class Worker:
    """A daemon thread that runs one function; it starts with the object, on a running event loop.

    `future` receives the Caught on that loop. If `stop` came before the function ended, the Caught
    has a SystemExit, unless the function caught that.
    """

    def __init__(self, function: Callable[[], Any], name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._running = False  # in `_run`, where the SystemExit of `stop` is caught
        self._stopped = False
        self.future: asyncio.Future[Caught] = self._loop.create_future()
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=lambda: self._run(context, function), name=name, daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Raise SystemExit in the function if it is still running; do not wait for it."""
        # under the lock the thread cannot leave the `try` of `_run` between the check and the raise
        with self._lock:
            self._stopped = True
            if self._running:
                self._running = False
                assert self._thread.ident is not None
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread.ident), ctypes.py_object(SystemExit)
                )

    def _run(self, context: contextvars.Context, function: Callable[[], Any]) -> None:
        """Run the function until it ends or `stop` interrupts it, and deliver the Caught."""
        caught = Caught(error=SystemExit())
        # `stop` may raise anywhere inside this `try`, at the latest when the last `with` ends
        try:
            with self._lock:
                self._running = not self._stopped
            if self._running:
                caught = catch_outcome(lambda: context.run(function))
            with self._lock:
                self._running = False
        except SystemExit:
            pass
        with suppress(RuntimeError):  # the loop is closed and nothing waits
            self._loop.call_soon_threadsafe(self._deliver, caught)

    def _deliver(self, caught: Caught) -> None:
        if not self.future.done():
            self.future.set_result(caught)
