"""A thread with an event loop of its own, for connections such as those of MCP sessions.

Each agent cell has its own event loop, and a connection must outlive it.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import os
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


class Background:
    """An event loop on a daemon thread named `name`, which starts with the first work.

    `at_exit` returns the last work of the loop, such as closing connections. `end` does it, for at
    most `limit` seconds, and so does the exit of the interpreter; the loop then takes new work.
    """

    def __init__(
        self, name: str, at_exit: Callable[[], Coroutine[Any, Any, None]], limit: float
    ) -> None:
        self._name, self._at_exit, self._limit = name, at_exit, limit
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Start work on the loop, from any thread; return a future of its value."""
        return asyncio.run_coroutine_threadsafe(work, self._start_loop())

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do work on the loop and return its value; cancelling the caller cancels the work."""
        return await asyncio.wrap_future(self.submit(work))

    def end(self) -> None:
        """Do the last work, if the loop has started, and wait for it. Never call it on the loop."""
        if self._loop is not None:
            with suppress(Exception):  # best effort: nobody can mend a failure here
                self.submit(self._at_exit()).result(self._limit)

    def _start_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                run = loop.run_forever
                threading.Thread(target=run, name=self._name, daemon=True).start()
                self._loop = loop  # not before: a start that fails is tried again
                atexit.register(self.end)
            return self._loop

    def _forget(self) -> None:
        """Start anew in a forked child: it has no thread, and nothing frees a held lock."""
        self._lock = threading.Lock()
        self._loop = None
