"""A wake-up call for one that waits in an event loop, from any thread.

Why: `asyncio` futures belong to one loop, and those who wait for an endpoint are in many.

Rules: to ring a bell of a loop that is gone does nothing; a ring while nobody waits is kept.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress


class Bell:
    """The bell of one waiting task of the running event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._waits: asyncio.Future[None] | None = None
        self._rung = False

    def ring(self) -> None:
        """Wake the task."""
        self._rung = True
        if threading.get_ident() == self._thread:
            self._wake()
        else:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._wake)

    async def wait(self, seconds: float) -> None:
        """Return once the bell has rung, after at most so many seconds."""
        if not self._rung:
            self._waits = self._loop.create_future()
            timer = self._loop.call_later(seconds, self._wake)
            try:
                await self._waits
            finally:
                timer.cancel()
                self._waits = None
        self._rung = False

    def _wake(self) -> None:
        if self._waits is not None and not self._waits.done():
            self._waits.set_result(None)
