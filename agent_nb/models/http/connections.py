"""The connections of one model in one event loop: one for each request at once.

Why: a pool of connections (as in httpx) looks at all of them for each request, which at a hundred
costs many times the rest of the request. Here nothing is looked through, and nothing has to be set
for a map: the connections follow the requests.

Rules
- A request takes the way that was used last, of those that are free; a new one is made when
  there is none. So no request waits for a connection, and one run at a time has one way.
- Ways that are free for `KEEP` seconds are closed, all but one; all are closed when the event
  loop ends.
- The limit of open files is raised as needed (`host.open_files`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager

from .open_files import allow_files
from .way import Way

KEEP = 10.0  # seconds that a free way stays open
STEP = 64  # files by which their limit is raised


class Connections:
    """The ways of the running event loop, at first one; `make` makes another."""

    def __init__(self, make: Callable[[], Way]) -> None:
        self._make = make
        self._all: set[Way] = set()
        self._free: list[tuple[Way, float]] = []  # with the time of their last use
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._keeper = _closed_with_the_loop(self._all)
        self._free.append((self._add(), self._loop.time()))

    @property
    def here(self) -> bool:
        """Whether they belong to the running event loop."""
        return self._loop is asyncio.get_running_loop()

    async def keep(self) -> None:
        """Have all ways closed with the event loop."""
        await anext(self._keeper)

    @contextmanager
    def way(self) -> Iterator[Way]:
        """Lend a way for one request."""
        way = self._free.pop()[0] if self._free else self._add()
        try:
            yield way
        finally:
            self._free.append((way, self._loop.time()))
            if self._timer is None and len(self._all) > 1 and not self._loop.is_closed():
                self._timer = self._loop.call_later(KEEP, self._sweep)

    async def aclose(self) -> None:
        """Close all ways."""
        if self._timer is not None:
            self._timer.cancel()
        await self._keeper.aclose()

    def _add(self) -> Way:
        if len(self._all) % STEP == 0:
            allow_files(len(self._all) + STEP)
        way = self._make()
        self._all.add(way)
        return way

    def _sweep(self) -> None:
        """Close the ways that have been free for long; look again later if some remain."""
        self._timer = None
        late = self._loop.time() - KEEP
        old = [way for way, used in self._free if used <= late]
        if len(old) == len(self._all):
            old.pop()  # the one used last
        self._free = self._free[len(old) :]
        for way in old:
            self._all.discard(way)
            task = self._loop.create_task(way.aclose())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        if len(self._all) > 1:
            self._timer = self._loop.call_later(KEEP, self._sweep)


async def _closed_with_the_loop(ways: set[Way]) -> AsyncGenerator[None, None]:
    """Close ways with their event loop, which closes its generators when it ends."""
    try:
        yield
    finally:
        while ways:
            await ways.pop().aclose()
