"""A thread with an event loop of its own, for connections such as those of MCP sessions.

Why: each agent cell has its own event loop, and a connection must outlive it.

Rules
- The thread starts with the first work and is a daemon. A forked child starts its own.
- Once the thread runs, each `end` and the exit of the interpreter run `at_exit`; the loop goes on.
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
    """An event loop on a thread of its own.

    `name` is the thread's name. `at_exit` returns the last work to do on the loop, which may be
    done more than once; `end` waits for it, at most `limit` seconds.
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
        """Do the last work (`at_exit`), and wait for it; call it from any thread but the loop's."""
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
