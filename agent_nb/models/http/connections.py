"""The connections of one model in one event loop: as many httpx clients as the requests need.

Why: httpx looks at all connections of a client for each request, which at a hundred costs more than
the rest of the request. Clients of a few connections each keep it cheap at any number, and nothing
has to be set for a map: the connections follow the requests.

Rules
- A request takes the first client with fewer than `SHARE` requests; a new one is made when all are
  full. So no request waits for a connection, and one run at a time has one client.
- Clients that are idle for `KEEP` seconds are closed, all but the first; all are closed when the
  event loop ends.
- The limit of open files is raised as needed (`host.open_files`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from ...host import open_files

if TYPE_CHECKING:
    import httpx

SHARE = 16  # requests at once of one client
KEEP = 10.0  # seconds that an idle client stays open


class Client(msgspec.Struct, eq=False):
    """One httpx client, the number of its requests under way, and since when it has none."""

    httpx: httpx.AsyncClient
    busy: int = 0
    idle: float = 0.0


class Connections:
    """The clients of the running event loop, at first one; `make` makes another."""

    def __init__(self, make: Callable[[], httpx.AsyncClient]) -> None:
        self._make = make
        self._clients: list[Client] = []
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self._keeper = _closed_with_the_loop(self._clients)
        self._add()

    @property
    def here(self) -> bool:
        """Whether they belong to the running event loop."""
        return self._loop is asyncio.get_running_loop()

    async def keep(self) -> None:
        """Have all clients closed with the event loop."""
        await anext(self._keeper)

    @contextmanager
    def client(self) -> Iterator[httpx.AsyncClient]:
        """Lend a client for one request."""
        lent = next((each for each in self._clients if each.busy < SHARE), None) or self._add()
        lent.busy += 1
        try:
            yield lent.httpx
        finally:
            lent.busy -= 1
            if not lent.busy:
                lent.idle = self._loop.time()
                if self._timer is None and len(self._clients) > 1:
                    self._timer = self._loop.call_later(KEEP, self._sweep)

    async def aclose(self) -> None:
        """Close all clients."""
        if self._timer is not None:
            self._timer.cancel()
        await self._keeper.aclose()

    def _add(self) -> Client:
        open_files.allow(SHARE * (len(self._clients) + 1))
        self._clients.append(Client(self._make()))
        return self._clients[-1]

    def _sweep(self) -> None:
        """Close the clients that have been idle for long, and look again later if some remain."""
        self._timer = None
        now = self._loop.time()
        for each in self._clients[1:]:
            if not each.busy and now - each.idle >= KEEP:
                self._clients.remove(each)
                task = self._loop.create_task(each.httpx.aclose())
                self._closing.add(task)
                task.add_done_callback(self._closing.discard)
        if len(self._clients) > 1:
            self._timer = self._loop.call_later(KEEP, self._sweep)


async def _closed_with_the_loop(clients: list[Client]) -> AsyncGenerator[None, None]:
    """Close clients with their event loop, which closes its generators when it ends."""
    try:
        yield
    finally:
        while clients:
            await clients.pop().httpx.aclose()
