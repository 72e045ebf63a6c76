"""The connections of one model in one event loop: as many as there are requests at once.

A pool as in httpx examines all its connections for each request; with a hundred of them that costs
many times the rest of the request. Here a request takes a free connection without a search.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager

from .open_files import allow_files
from .transport import Transport

KEEP = 10.0  # seconds that a free transport stays open
STEP = 64  # the limit of open files is raised by so many at a time


class Connections:
    """The transports of the running event loop; `make` makes one.

    A request takes the free transport that was used last, or a new one, and never waits. Transports
    that stay free for `KEEP` seconds are closed, except the last one. The constructor makes the
    first transport. `keep` must be awaited once, or the transports outlive the loop.
    """

    def __init__(self, make: Callable[[], Transport]) -> None:
        self._make = make
        self._all: set[Transport] = set()
        self._free: list[tuple[Transport, float]] = []  # with the time of their last use, in order
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._keeper = _close_with_loop(self._all)
        self._free.append((self._add(), self._loop.time()))

    @property
    def is_current(self) -> bool:
        """Whether they belong to the running event loop."""
        return self._loop is asyncio.get_running_loop()

    async def keep(self) -> None:
        """Have all transports closed when the event loop ends.

        This begins the generator `_keeper`: the loop knows only generators that have begun.
        """
        await anext(self._keeper)

    @contextmanager
    def lend(self) -> Iterator[Transport]:
        """Lend a transport for one request."""
        transport = self._free.pop()[0] if self._free else self._add()
        try:
            yield transport
        finally:
            self._free.append((transport, self._loop.time()))
            if self._timer is None and len(self._all) > 1 and not self._loop.is_closed():
                self._timer = self._loop.call_later(KEEP, self._close_idle)

    async def aclose(self) -> None:
        """Close all transports."""
        if self._timer is not None:
            self._timer.cancel()
        await self._keeper.aclose()

    def _add(self) -> Transport:
        # not for each one: reading the limit is a call of the system
        if len(self._all) % STEP == 0:
            allow_files(len(self._all) + STEP)
        transport = self._make()
        self._all.add(transport)
        return transport

    def _close_idle(self) -> None:
        """Close the transports that have been free for long; look again later if some remain."""
        self._timer = None
        cutoff = self._loop.time() - KEEP
        expired = [transport for transport, used in self._free if used <= cutoff]
        if len(expired) == len(self._all):
            expired.pop()  # the one used last
        self._free = self._free[len(expired) :]
        for transport in expired:
            self._all.discard(transport)
            task = self._loop.create_task(transport.aclose())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        if len(self._all) > 1:
            self._timer = self._loop.call_later(KEEP, self._close_idle)


async def _close_with_loop(transports: set[Transport]) -> AsyncGenerator[None, None]:
    """Close transports when the event loop ends: a loop that ends closes its async generators."""
    try:
        yield
    finally:
        while transports:
            await transports.pop().aclose()
