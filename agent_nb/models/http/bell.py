"""An event that wakes one waiting task from any thread.

An `asyncio` future belongs to one loop, and the tasks that wait for an endpoint run in many.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress


class Bell:
    """The bell of one task of the running event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._waiter: asyncio.Future[None] | None = None
        self._is_rung = False

    def ring(self) -> None:
        """Wake the task, or let its next wait end at once; from any thread."""
        self._is_rung = True
        with suppress(RuntimeError):  # the loop is closed: no task waits
            if threading.get_ident() == self._thread:
                self._wake()
            else:
                self._loop.call_soon_threadsafe(self._wake)

    async def wait(self, seconds: float) -> None:
        """Return when the bell has rung, or after `seconds`."""
        if not self._is_rung:
            self._waiter = self._loop.create_future()
            timer = self._loop.call_later(seconds, self._wake)
            try:
                await self._waiter
            finally:
                timer.cancel()
                self._waiter = None
        self._is_rung = False

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
