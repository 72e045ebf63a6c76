"""The queue of one endpoint: which requests wait, which are under way, which one enters next.

It has no clock, lock or I/O: `limiter` passes the time `now` in seconds, and holds the lock.

Rules
- First come, first served; a ticket that stops asking keeps its turn but lets others pass.
- In any `WINDOW` seconds at most `rpm` requests begin. A request counts from when its answer
  begins, so the server, which counts arrivals, never counts more.
- Each model has a lane of its own, because providers limit each model by itself. A refusal closes
  the lane. When it opens again it admits half as many requests at once as before, and one more
  after each round of answers. After more refusals in a row than `BUSY_DELAYS` has delays, each is
  "final" until a request is answered, and the lane stays open.
"""

from __future__ import annotations

import math
from collections import deque
from itertools import count
from typing import Literal

import msgspec

from .retry import BUSY_DELAYS

WINDOW = 60.0  # seconds that `rpm` counts over
POLL = 0.05  # seconds after which the first ticket in line asks again
SLOW_POLL = 0.5  # the same while a longer wait is certain
LONGEST_POLL = 2.0  # most seconds after which a later ticket asks again
STALE_AFTER = 5.0  # seconds after which a ticket that does not ask lets later ones pass
MEMORY = 60.0  # seconds for which an open lane remembers its last refusal

# kinds of refusals: "first" closes the lane, "shared" came with the one that closed it, and after
# "final" the request is given up
Refusal = Literal["first", "shared", "final"]


class Lane(msgspec.Struct):
    """The requests to one model; all times in seconds.

    An empty lane is forgotten, its limit too, after `MEMORY` seconds.
    """

    # ticket -> when it asked last, in order of tickets
    waiting: dict[int, float] = msgspec.field(default_factory=dict)
    # ticket -> when it entered
    inside: dict[int, float] = msgspec.field(default_factory=dict)
    shut_until: float = -math.inf  # until then no request enters
    closed_at: float = -math.inf  # the time of the newest "first" refusal
    refusals: int = 0  # "first" ones without an answer in between
    limit: float = math.inf  # requests at once; finite after a refusal

    def is_forgettable(self, now: float) -> bool:
        """Return whether no request uses the lane and its last refusal need not be remembered."""
        forget_at = max(self.closed_at, self.shut_until) + MEMORY
        return not self.waiting and not self.inside and now >= forget_at


class RequestQueue:
    """The queue of one endpoint: a request draws a ticket, asks until it may enter, and leaves.

    Tickets are numbered from 1, in the order in which requests come.

    `rpm`: requests per minute, `concurrency`: requests at once; 0: unlimited. `inside`: how many
    requests are under way.
    """

    def __init__(self, rpm: int = 0, concurrency: int = 0) -> None:
        self.rpm = rpm
        self.concurrency = concurrency
        self._numbers = count(1)
        self._lanes: dict[str, Lane] = {}  # by model
        self._lane_of: dict[int, Lane] = {}  # by ticket
        self.inside = 0
        self._unanswered: set[int] = set()  # tickets inside whose answers have not begun
        # when the other requests of the last window began
        self._begin_times: deque[float] = deque()

    def join(self, now: float, model: str = "") -> int:
        """Return a new ticket at the end of the queue, in the lane of `model`."""
        ticket = next(self._numbers)
        lane = self._lanes.get(model)
        # a lane without refusals is as good as a new one
        if lane is None or (lane.limit < math.inf and lane.is_forgettable(now)):
            self._lanes = {
                name: each for name, each in self._lanes.items() if not each.is_forgettable(now)
            }
            lane = self._lanes[model] = Lane()
        self._lane_of[ticket] = lane
        lane.waiting[ticket] = now
        return ticket

    def enter(self, ticket: int, now: float) -> float:
        """Return 0 if the ticket has entered, else the seconds after which to ask again."""
        lane = self._lane_of[ticket]
        lane.waiting[ticket] = now
        # roughly how many requests wait before this one: the numbers run over all lanes
        ahead = ticket - next(iter(lane.waiting))
        # later tickets ask less often, so that a long queue costs little
        wait = max(self._window_wait(now), lane.shut_until - now)
        if wait > 0 and not ahead:
            return min(wait, SLOW_POLL)
        if wait > 0:
            return min(LONGEST_POLL, max(wait, ahead * POLL))
        if self._full or self._find_first(now) != ticket:
            return min(LONGEST_POLL, max(1, ahead) * POLL)
        del lane.waiting[ticket]
        lane.inside[ticket] = now
        self.inside += 1
        if self.rpm:
            self._unanswered.add(ticket)
        return 0.0

    def note_answer(self, ticket: int, now: float, *, good: bool = True) -> None:
        """Note that an answer begins; `good` is false if it is a refusal."""
        self._note_begin(ticket, now)
        lane = self._lane_of.get(ticket)
        if good and lane is not None:
            lane.refusals = 0
            lane.limit += 1 / lane.limit  # one more for each round of `limit` answers

    def note_refusal(
        self, ticket: int, now: float, retry_after: float | None = None, *, spread: float = 1.0
    ) -> Refusal:
        """Close the lane of a ticket whose request was refused, and return the kind of refusal.

        `retry_after`: the seconds that the server asks to wait; `spread`: without them, the lane
        closes for this share of a delay of `retry.BUSY_DELAYS`.
        """
        lane = self._lane_of[ticket]
        if lane.refusals > len(BUSY_DELAYS):
            return "final"
        # a request that entered before the lane closed was refused with the one that closed it
        shared = lane.inside.get(ticket, now) <= lane.closed_at
        if not shared:
            lane.refusals += 1
            if lane.refusals > len(BUSY_DELAYS):
                return "final"
            lane.closed_at = now
            lane.limit = max(1.0, min(lane.limit, len(lane.inside)) / 2)
        if retry_after is not None:
            lane.shut_until = max(lane.shut_until, now + retry_after)
        elif not shared:
            lane.shut_until = max(lane.shut_until, now + BUSY_DELAYS[lane.refusals - 1] * spread)
        return "shared" if shared else "first"

    def leave(self, ticket: int, now: float) -> None:
        """Give a ticket back, whether it waits or is inside."""
        lane = self._lane_of.pop(ticket, None)
        if lane is None:
            return
        lane.waiting.pop(ticket, None)
        if lane.inside.pop(ticket, None) is not None:
            self.inside -= 1
        # a request that ends without an answer may have reached the server, so it counts
        self._note_begin(ticket, now)

    def whose_turn(self, now: float) -> int | None:
        """Return the ticket that would enter if it asked now."""
        return None if self._full or self._window_wait(now) > 0 else self._find_first(now)

    def reason(self, ticket: int, now: float) -> str:
        """Return in words why a ticket waits; limits as in the configuration."""
        seconds = self._lane_of[ticket].shut_until - now
        if seconds > 0:
            return f"it refuses requests for {max(1, math.ceil(seconds))} s"
        if self._window_wait(now) > 0:
            return f"rpm {self.rpm}"
        return f"concurrency {self.concurrency}" if self._full else "it refused requests before"

    @property
    def _full(self) -> bool:
        return bool(self.concurrency) and self.inside >= self.concurrency

    def _note_begin(self, ticket: int, now: float) -> None:
        """Count a request as begun now, unless it counts already."""
        if ticket in self._unanswered:
            self._unanswered.discard(ticket)
            self._begin_times.append(now)

    def _find_first(self, now: float) -> int | None:
        """Return the first ticket in all open lanes that still asks, or None."""
        firsts = (
            next((ticket for ticket, asked in lane.waiting.items() if now - asked < STALE_AFTER), 0)
            for lane in self._lanes.values()
            if lane.shut_until <= now and len(lane.inside) < lane.limit
        )
        return min(filter(None, firsts), default=None)

    def _window_wait(self, now: float) -> float:
        """Return the seconds until the window lets one more request begin."""
        begin_times = self._begin_times
        while begin_times and now - begin_times[0] >= WINDOW:
            begin_times.popleft()
        # unanswered requests count: they may begin at the server at any time
        surplus = len(begin_times) + len(self._unanswered) - self.rpm
        if not self.rpm or surplus < 0:
            return 0.0
        # `surplus` + 1 requests must leave the window first; an unanswered one has no time to leave
        if surplus >= len(begin_times):
            return POLL
        return begin_times[surplus] + WINDOW - now
