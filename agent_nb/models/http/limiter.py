"""Limits of requests per minute and of requests at once: one limiter per endpoint and process.

Each cell has its own event loop and each agent its own connections, but a provider counts all their
requests together. With a shared limiter, one refusal (429, or 503 and 529 with `Retry-After`) makes
all requests to that model wait.

A request draws a ticket from the `RequestQueue`, waits in `admit` until the queue lets it enter,
and has a `Slot` until it ends.

Rule: a limiter belongs to no event loop. A waiting request asks again after a time, or when its
`bell` rings.
"""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import anyio

from ...errors import ModelError
from .bell import Bell
from .request_queue import RequestQueue
from .retry import BUSY_STATUSES, LONGEST_WAIT
from .waits import mark_wait

REPORTED_AFTER = 1.0  # seconds; shorter waits are not reported

Report = Callable[[str], object]
_report: ContextVar[Report | None] = ContextVar("agent_nb_limiter_report", default=None)


class Limiter:
    """The limiter of one endpoint, for any thread and event loop; `host` names it in reports.

    `clock` returns seconds; `pause` waits until a bell rings or so many seconds have passed;
    `spread` returns a number in [0, 1).
    """

    def __init__(
        self,
        host: str,
        queue: RequestQueue | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[Bell, float], Awaitable[None]] = Bell.wait,
        spread: Callable[[], float] = random.random,
    ) -> None:
        self.host = host
        self.queue = queue = queue or RequestQueue()
        self._clock = clock
        self._pause = pause
        self._spread = spread
        self._lock = threading.Lock()
        # waiting ticket -> its bell; weak, because a bell holds its task and so the slot, which can
        # then be collected if the event loop was closed
        self._bells: WeakValueDictionary[int, Bell] = WeakValueDictionary()
        # tickets whose `admit` was garbage-collected; `Slot.__del__` only adds them, because it may
        # run while this thread holds the lock
        self.lost_tickets: deque[int] = deque()
        # limits are pairs (rpm, concurrency)
        self._configured = (queue.rpm, queue.concurrency)
        self._of_running_maps: list[tuple[int, int]] = []

    @asynccontextmanager
    async def admit(self, model: str = "") -> AsyncGenerator[Slot, None]:
        """Wait until a request to `model` may be sent; it ends with the block. Can be cancelled."""
        with self._lock:
            now = self._clock()
            ticket = self.queue.join(now, model)
            seconds = self._try_to_enter(ticket, now)
            if seconds:
                bell = self._bells[ticket] = Bell()
        slot = Slot(self, ticket)  # collected with this frame if the event loop is closed first
        try:
            if seconds:
                await self._wait_to_enter(ticket, bell, seconds)
            yield slot
        finally:
            slot.left = True
            with self._lock:
                self.queue.leave(ticket, self._clock())
                self._bells.pop(ticket, None)
                self._wake_next()

    def change(self, rpm: int, concurrency: int) -> None:
        """Replace the limits of the configuration."""
        with self._lock:
            self._configured = (rpm, concurrency)
            self._apply_limits()

    @contextmanager
    def tightened(self, rpm: int = 0, concurrency: int = 0) -> Iterator[None]:
        """Apply these limits too while the block runs; 0: no limit."""
        with self._lock:
            self._of_running_maps.append((rpm, concurrency))
            self._apply_limits()
        try:
            yield
        finally:
            with self._lock:
                self._of_running_maps.remove((rpm, concurrency))
                self._apply_limits()

    def note_answer(self, ticket: int, status: int) -> None:
        """Note that the answer to a ticket's request begins, with this HTTP status."""
        with self._lock:
            self.queue.note_answer(ticket, self._clock(), good=status < 300)
            self._wake_next()

    def note_refusal(self, ticket: int, fault: ModelError) -> None:
        """Close the model's lane if the fault means "busy", and mark the fault (`Refusal`)."""
        retry_after = fault.retry_after
        busy = fault.status == 429 or (fault.status in BUSY_STATUSES and retry_after is not None)
        too_long = retry_after is not None and retry_after > LONGEST_WAIT
        if not busy or not fault.retryable or too_long:
            return
        spread = 0.5 + self._spread() / 2  # at random, so that processes do not return together
        with self._lock:
            kind = self.queue.note_refusal(ticket, self._clock(), retry_after, spread=spread)
        fault.shared = kind == "shared"
        if kind == "final":
            fault.final()

    def _apply_limits(self) -> None:
        """Apply the strictest limits, and wake the request that they now allow."""
        limits = [self._configured, *self._of_running_maps]
        self.queue.rpm = _strictest(rpm for rpm, _ in limits)
        self.queue.concurrency = _strictest(concurrency for _, concurrency in limits)
        self._wake_next()

    def _wake_next(self) -> None:
        """Wake the request whose turn it is, if it waits."""
        if self._bells:
            turn = self.queue.whose_turn(self._clock())
            bell = self._bells.get(turn) if turn is not None else None
            if bell is not None:
                bell.ring()

    def _try_to_enter(self, ticket: int, now: float) -> float:
        """Return 0 if the ticket has entered, else the seconds to wait; the lock must be held."""
        while self.lost_tickets:
            self.queue.leave(self.lost_tickets.popleft(), now)
        seconds = self.queue.enter(ticket, now)
        if not seconds:
            self._wake_next()
        return seconds

    async def _wait_to_enter(self, ticket: int, bell: Bell, seconds: float) -> None:
        """Ask again until the ticket enters; report a wait of `REPORTED_AFTER` seconds."""
        report, begin, reported = _report.get(), self._clock(), False
        with mark_wait():
            while seconds:
                await self._pause(bell, seconds)
                with self._lock:
                    now = self._clock()
                    seconds = self._try_to_enter(ticket, now)
                    reason = self.queue.reason(ticket, now) if seconds else ""
                late = now - begin >= REPORTED_AFTER
                if seconds and late and report is not None and not reported:
                    report(f"waiting for a free place at {self.host} ({reason})")
                    reported = True
        # not if the wait is cancelled: the stopped run still says what it waited for
        if report is not None and reported:
            report("")

    @staticmethod
    async def wait_before_retry(seconds: float) -> None:
        """Wait before a retry; the wait does not count against the run's time limit (`waits`)."""
        with mark_wait():
            await anyio.sleep(seconds)

    @staticmethod
    @contextmanager
    def limit_endpoints(
        models: Iterable[Any], *, rpm: int | None = None, concurrency: int | None = None
    ) -> Iterator[None]:
        """Apply limits to the endpoints of these models while the block runs; 0, None: no limit."""
        with ExitStack() as stack:
            for limiter in dict.fromkeys(map(_find_limiter, models)):
                stack.enter_context(limiter.tightened(rpm or 0, concurrency or 0))
            yield

    @staticmethod
    @asynccontextmanager
    async def wait_for_slot(model: Any, report: Report) -> AsyncGenerator[None, None]:
        """Wait for a slot at a model without a limiter of its own, if a map limits it.

        `report` gets a text when any wait in the block exceeds `REPORTED_AFTER`, then "".
        """
        with report_waits(report):
            limiter = _by_name.get(_name_of(model))
            if limiter is None or isinstance(getattr(model, "limiter", None), Limiter):
                yield
                return
            async with limiter.admit() as slot:
                yield
                slot.note_answer(200)  # such a model reports no status: no exception means success


class Slot:
    """The slot of one request; its answer or refusal decides when others may enter.

    A slot that is garbage-collected is free again.
    """

    left = False

    def __init__(self, limiter: Limiter, ticket: int) -> None:
        self._limiter = limiter
        self._ticket = ticket
        self.note_answer = partial(limiter.note_answer, ticket)
        self.note_refusal = partial(limiter.note_refusal, ticket)

    def __del__(self) -> None:
        if not self.left:  # `admit` never ended, because its event loop was closed
            self._limiter.lost_tickets.append(self._ticket)


def _strictest(limits: Iterable[int]) -> int:
    """Return the lowest limit; 0 is none."""
    return min(filter(None, limits), default=0)


_limiters: dict[str, Limiter] = {}  # by endpoint
_by_name: dict[str, Limiter] = {}  # name of a model without a limiter of its own -> limiter
_lock = threading.Lock()


def configure_limiter(endpoint: str, host: str, rpm: int, concurrency: int) -> Limiter:
    """Return the process's limiter of an endpoint, with these limits from now on."""
    with _lock:
        limiter = _limiters.get(endpoint)
        if limiter is None:
            limiter = _limiters[endpoint] = Limiter(host, RequestQueue(rpm, concurrency))
    limiter.change(rpm, concurrency)
    return limiter


def _find_limiter(model: Any) -> Limiter:
    """Return the limiter of a model: its own, or one under its name."""
    own = getattr(model, "limiter", None)
    if isinstance(own, Limiter):
        return own
    name = _name_of(model)
    with _lock:
        return _by_name.setdefault(name, Limiter(name, RequestQueue()))


def _name_of(model: Any) -> str:
    """Return the name of a model, else the name of its class."""
    return str(getattr(model, "name", "") or type(model).__name__)


@contextmanager
def report_waits(report: Report) -> Iterator[None]:
    """Pass a text to `report` for each wait of over `REPORTED_AFTER` in this context, then ""."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)
