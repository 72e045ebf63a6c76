"""Requests per minute and requests at once, one limiter per endpoint and process.

Why: each cell has an event loop and each agent a connection of its own, but a provider counts them
all together. Without a limit on this side, ten sub-agents at once earn ten refusals.

Rules
- First come, first served, over all agents, sub-agents, retries, threads and event loops.
- A place is entered before a request is sent and left when its answer is over or given up. A run
  that stops while it waits leaves the queue.
- The window slides: at most `rpm` requests begin in any 60 seconds.
- Nothing here belongs to an event loop: those who wait ask again, at short intervals. One that has
  stopped asking (its loop is blocked or gone) holds up no other; when it asks again, it has kept
  its turn. A place whose owner is gone is free again.
- `Places` is the core: numbers in, numbers out, no clock, no lock.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from itertools import count

import anyio

WINDOW = 60.0  # seconds that `rpm` counts over
POLL = 0.05  # seconds between two questions for a place
SLOW = 0.5  # the same while the window is closed for longer
STALE = 5.0  # seconds without a question after which others go first
VISIBLE = 1.0  # seconds of waiting after which it is shown

Report = Callable[[str], object]
_report: ContextVar[Report | None] = ContextVar("agent_nb_limiter_report", default=None)


class Places:
    """The places of one endpoint: tickets wait in order, enter, and leave. 0 means unlimited."""

    def __init__(self, rpm: int = 0, concurrency: int = 0) -> None:
        self.rpm = rpm
        self.concurrency = concurrency
        self._numbers = count(1)
        self._waiting: dict[int, float] = {}  # ticket -> when it asked last, in order of tickets
        self._inside: set[int] = set()
        self._begun: deque[float] = deque()  # when the requests of the last window began

    def join(self, now: float) -> int:
        """Return a new ticket at the end of the queue; `now` in seconds."""
        ticket = next(self._numbers)
        self._waiting[ticket] = now
        return ticket

    def enter(self, ticket: int, now: float) -> float:
        """Return 0 if the ticket has entered, else the seconds after which to ask again."""
        self._waiting[ticket] = now
        first = next(t for t, asked in self._waiting.items() if t == ticket or now - asked < STALE)
        if (rest := self._closed(now)) > 0:
            return min(rest, SLOW)
        if first != ticket or (self.concurrency and len(self._inside) >= self.concurrency):
            return POLL
        del self._waiting[ticket]
        self._inside.add(ticket)
        if self.rpm:
            self._begun.append(now)
        return 0.0

    def leave(self, ticket: int) -> None:
        """Give a ticket back, whether it waits or is inside."""
        self._waiting.pop(ticket, None)
        self._inside.discard(ticket)

    def reason(self, now: float) -> str:
        """Return the limit that those who wait are waiting for, as in the configuration."""
        return f"rpm {self.rpm}" if self._closed(now) > 0 else f"concurrency {self.concurrency}"

    def _closed(self, now: float) -> float:
        """Return the seconds until one more request may begin."""
        while self._begun and now - self._begun[0] >= WINDOW:
            self._begun.popleft()
        if not self.rpm or len(self._begun) < self.rpm:
            return 0.0
        return self._begun[len(self._begun) - self.rpm] + WINDOW - now


class Limiter:
    """The limiter of one endpoint, for any thread and event loop; `host` is shown to those waiting.

    `clock` returns seconds, `sleep` waits for some in the running event loop.
    """

    def __init__(
        self,
        host: str,
        places: Places,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self.host = host
        self.places = places
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._gone: deque[int] = deque()  # tickets of blocks that were collected

    @asynccontextmanager
    async def admit(self) -> AsyncGenerator[None, None]:
        """Wait for a place, and leave it at the end of the block; a wait may be cancelled."""
        with self._lock:
            ticket = self.places.join(self._clock())
        place = _Place()
        # the block may never end: its event loop may be closed first
        weakref.finalize(place, self._gone.append, ticket).atexit = False
        try:
            await self._enter(ticket)
            yield
        finally:
            with self._lock:
                self.places.leave(ticket)

    def change(self, rpm: int, concurrency: int) -> None:
        """Set the limits anew, as the configuration has them now."""
        with self._lock:
            self.places.rpm, self.places.concurrency = rpm, concurrency

    async def _enter(self, ticket: int) -> None:
        began, shown, report = self._clock(), False, _report.get()
        while True:
            with self._lock:
                while self._gone:
                    self.places.leave(self._gone.popleft())
                now = self._clock()
                rest = self.places.enter(ticket, now)
                reason = self.places.reason(now) if rest else ""
            if not rest:
                break
            if report is not None and not shown and now - began >= VISIBLE:
                report(f"waiting for a free place at {self.host} ({reason})")
                shown = True
            await self._sleep(rest)
        if report is not None and shown:
            report("")


class _Place:
    """Stands for the block that waits or is inside: it is collected with the block's frame."""


_limiters: dict[str, Limiter] = {}
_lock = threading.Lock()


def limiter_of(endpoint: str, host: str, rpm: int, concurrency: int) -> Limiter | None:
    """Return the process's limiter of an endpoint, None if it has no limits."""
    with _lock:
        found = _limiters.get(endpoint)
        if found is None and (rpm or concurrency):
            found = _limiters[endpoint] = Limiter(host, Places(rpm, concurrency))
    if found is not None:
        found.change(rpm, concurrency)
    return found


@contextmanager
def reporting(report: Report) -> Iterator[None]:
    """Have waits of more than a second in this context reported in words, "" when they are over."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)
