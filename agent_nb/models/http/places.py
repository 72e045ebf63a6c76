"""The places of one endpoint: who waits, who is inside, who enters next. No clock, no lock.

Why: what a provider counts (requests a minute, requests at once) and what it says when it has had
enough (429, `Retry-After`) are one queue, and a queue is easy to test while it is pure.

Rules
- First come, first served. A ticket that has stopped asking holds up no other; when it asks again,
  it has kept its turn.
- The window slides: in any `WINDOW` seconds at most `rpm` requests begin. A request counts from
  when its answer begins, so the server, which counts arrivals, never counts more.
- A lane is what a provider limits for itself: one model. A refusal closes its lane for as long as
  the server asks; without such a wish for a step of `retry.BUSY`, the next step each time nothing
  was answered in between. The other lanes of the endpoint stay open.
- When a lane opens again, half as many as before enter at once, and one more for each round of
  answers. This is forgotten `MEMORY` seconds after the lane was closed last, once it is empty.
- Requests that were under way when their lane closed are refused with the first: they are one
  wave, and only the first counts (`refused`).
- A lane that is refused more often than `retry.BUSY` has steps, and never answered in between, is
  given up: it is no longer closed, and its refusals are final until one is answered.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from itertools import count
from typing import Literal

import msgspec

from .retry import BUSY

WINDOW = 60.0  # seconds that `rpm` counts over
POLL = 0.05  # seconds between two questions of the first in line
SLOW = 0.5  # the same while the window is closed for longer
FAR = 2.0  # the longest time between two questions of those behind
STALE = 5.0  # seconds without a question after which others go first
MEMORY = 60.0  # seconds that a lane remembers its last refusal

Refusal = Literal["first", "shared", "final"]


class Lane(msgspec.Struct):
    """The requests to one model. `waiting`: ticket -> when it asked last, in order of tickets.

    `inside`: ticket -> when it entered; `shut` until when and `closed` since when it is closed;
    `waves`: refusals without an answer in between; `most`: requests at once after a refusal.
    """

    waiting: dict[int, float] = msgspec.field(default_factory=dict)
    inside: dict[int, float] = msgspec.field(default_factory=dict)
    shut: float = -math.inf
    closed: float = -math.inf
    waves: int = 0
    most: float = math.inf

    def over(self, now: float) -> bool:
        """Return whether nobody uses it and it was not closed of late."""
        late = max(self.closed, self.shut) + MEMORY
        return not self.waiting and not self.inside and now >= late


class Places:
    """The queue of one endpoint: tickets wait in order, enter, and leave. 0 means unlimited."""

    def __init__(self, rpm: int = 0, concurrency: int = 0) -> None:
        self.rpm = rpm
        self.concurrency = concurrency
        self._numbers = count(1)
        self._lanes: dict[str, Lane] = {}
        self._lane_of: dict[int, Lane] = {}
        self._inside = 0
        self._unheard: set[int] = set()  # tickets inside whose answers have not begun
        self._begun: deque[float] = deque()  # when the other requests of the last window began

    def join(self, now: float, lane: str = "") -> int:
        """Return a new ticket at the end of the queue; `now` in seconds."""
        ticket = next(self._numbers)
        queue = self._lanes.get(lane)
        if queue is None or queue.over(now):
            self._lanes = {name: each for name, each in self._lanes.items() if not each.over(now)}
            queue = self._lanes[lane] = Lane()
        self._lane_of[ticket] = queue
        queue.waiting[ticket] = now
        return ticket

    def enter(self, ticket: int, now: float) -> float:
        """Return 0 if the ticket has entered, else the seconds after which to ask again."""
        lane = self._lane_of[ticket]
        lane.waiting[ticket] = now
        ahead = ticket - next(iter(lane.waiting))
        if (rest := max(self._closed(now), lane.shut - now)) > 0:
            return min(FAR, max(rest, ahead * POLL)) if ahead else min(rest, SLOW)
        if self._first(now) != ticket or self._full:
            return min(FAR, max(1, ahead) * POLL)
        del lane.waiting[ticket]
        lane.inside[ticket] = now
        self._inside += 1
        if self.rpm:
            self._unheard.add(ticket)
        return 0.0

    def heard(self, ticket: int, now: float, *, good: bool = True) -> None:
        """Note that the answer begins, and whether it is one; a refusal is `refused` too."""
        if ticket in self._unheard:
            self._unheard.discard(ticket)
            self._begun.append(now)
        lane = self._lane_of.get(ticket)
        if good and lane is not None:
            lane.waves = 0
            lane.most += 1 / lane.most

    def refused(
        self, ticket: int, now: float, wanted: float | None = None, *, spread: float = 1.0
    ) -> Refusal:
        """Close the lane of a ticket whose request was refused; `asked`: the server's wish in
        seconds, `spread`: the share of a step of `retry.BUSY` that is waited otherwise.
        """
        lane = self._lane_of[ticket]
        if lane.waves > len(BUSY):
            return "final"
        shared = lane.inside.get(ticket, now) <= lane.closed
        if not shared:
            lane.waves += 1
            if lane.waves > len(BUSY):
                return "final"
            lane.closed = now
            lane.most = max(1.0, min(lane.most, len(lane.inside)) / 2)
        if wanted is not None:
            lane.shut = max(lane.shut, now + wanted)
        elif not shared:
            lane.shut = max(lane.shut, now + BUSY[lane.waves - 1] * spread)
        return "shared" if shared else "first"

    def leave(self, ticket: int, now: float) -> None:
        """Give a ticket back, whether it waits or is inside."""
        lane = self._lane_of.pop(ticket, None)
        if lane is None:
            return
        lane.waiting.pop(ticket, None)
        self._inside -= lane.inside.pop(ticket, None) is not None
        if ticket in self._unheard:
            self._unheard.discard(ticket)
            self._begun.append(now)

    def whose_turn(self, now: float) -> int | None:
        """Return the ticket that would enter if it asked now."""
        return None if self._full or self._closed(now) > 0 else self._first(now)

    def reason(self, ticket: int, now: float) -> str:
        """Return what a ticket that waits is waiting for, limits as in the configuration."""
        if (rest := self._lane_of[ticket].shut - now) > 0:
            return f"it refuses requests for {max(1, math.ceil(rest))} s"
        if self._closed(now) > 0:
            return f"rpm {self.rpm}"
        return f"concurrency {self.concurrency}" if self._full else "it refused requests before"

    @property
    def waiting(self) -> list[int]:
        """The tickets that wait, in order."""
        return sorted(ticket for lane in self._lanes.values() for ticket in lane.waiting)

    @property
    def inside(self) -> int:
        """The number of requests under way."""
        return self._inside

    @property
    def _full(self) -> bool:
        return bool(self.concurrency) and self._inside >= self.concurrency

    def _first(self, now: float) -> int | None:
        """Return the first ticket of the open lanes that still asks."""
        return min(self._heads(now), default=None)

    def _heads(self, now: float) -> Iterator[int]:
        for lane in self._lanes.values():
            if lane.waiting and lane.shut <= now and len(lane.inside) < lane.most:
                for ticket, since in lane.waiting.items():
                    if now - since < STALE:
                        yield ticket
                        break

    def _closed(self, now: float) -> float:
        """Return the seconds until the window lets one more request begin."""
        begun = self._begun
        while begun and now - begun[0] >= WINDOW:
            begun.popleft()
        over = len(begun) + len(self._unheard) - self.rpm
        if not self.rpm or over < 0:
            return 0.0
        return begun[over] + WINDOW - now if over < len(begun) else POLL
