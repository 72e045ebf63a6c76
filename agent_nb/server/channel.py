"""One published run: a bounded buffer of its events with ids by which a reader can resume.

Rules
- An entry's id is never used again: `seq` for a stored event; `seq.epoch.n` for the n-th delta
  after it, where the epoch is the hub's, so that a restarted server counts its deltas apart. Ids of
  one run are in order as the numbers in them are.
- The buffer holds `keep` entries, deltas included; stored events that left it are read from the
  run's log where there is one.
- What cannot be given any more, or an id that this run never had, is said with a `Gap`, never
  passed over.
- All state is guarded by the hub's lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from ..events import Delta, End, Event, RunStart, User
from ..events.log import EventLog
from ..events.position import START, Position, parse_id


class Entry:
    """One event of a run and its place. `texts` keeps what stateless encoders made of it, for all
    subscribers.
    """

    __slots__ = ("epoch", "event", "n", "seq", "texts")

    def __init__(self, event: Event, seq: int, *, epoch: int = 0, n: int = 0) -> None:
        self.event = event
        self.seq = seq
        self.epoch = epoch
        self.n = n
        self.texts: dict[str, bytes] = {}

    @property
    def id(self) -> str:
        """The id: `seq`, or `seq.epoch.n` for a delta."""
        return f"{self.seq}.{self.epoch}.{self.n}" if self.n else str(self.seq)

    @property
    def position(self) -> Position:
        """The place as numbers."""
        return (self.seq, self.epoch, self.n) if self.n else (self.seq, 0, 0)


class Gap(msgspec.Struct, frozen=True):
    """Events that a subscriber asked for and cannot have.

    `reason`: `evicted` (the buffer no longer has them), `unknown` (the id is none of this run:
    everything there is follows), `lag` (the subscriber was too slow for the limit it asked for).
    `missed`: how many stored events (0: none, or not known).
    """

    run: str
    reason: Literal["evicted", "unknown", "lag"]
    after: str = ""
    missed: int = 0


class Info(msgspec.Struct, frozen=True):
    """What a list of runs tells: `status` is `running` or how it ended, `started` epoch seconds,
    `prompt` its first 200 characters; `controls`: what can be done to it from here, `cancel` and
    `approve`.
    """

    run: str
    conversation: str
    status: str
    agent: str
    prompt: str
    started: float
    events: int
    controls: tuple[str, ...] = ()


class Shared:
    """What the channels of one hub share. `wake` is called, without the lock, when a channel has
    something new.
    """

    def __init__(self, keep: int, epoch: int, wake: Callable[[Channel], None]) -> None:
        self.lock = threading.RLock()
        self.keep = keep
        self.epoch = epoch
        self.wake = wake


class Channel:
    """One run: its buffer, its subscribers, and the handles by which it is stopped and asked.

    `earlier`: how many runs its conversation had before it.
    """

    def __init__(self, shared: Shared, run: str, log: EventLog | None = None) -> None:
        self.run = run
        self.conversation = ""
        self.earlier = 0
        self.cancel: Callable[[], Any] | None = None
        self.approve: Callable[..., Any] | None = None
        self.status = "running"
        self.seq = 0
        self.log = log
        self._shared = shared
        self._entries: list[Entry] = []
        self._first = 0  # the index of the first entry that is still there
        self._n = 0
        self._agent = self._prompt = ""
        self._started = 0.0

    def join(self, conversation: str, earlier: int) -> None:
        """Make the run the next one of a conversation that had `earlier` runs before."""
        self.conversation, self.earlier = conversation, earlier

    def control(self, cancel: Callable[[], Any] | None, approve: Callable[..., Any] | None) -> None:
        """Set how the run is cancelled and approved; None keeps what is set."""
        self.cancel, self.approve = cancel or self.cancel, approve or self.approve

    @property
    def ended(self) -> bool:
        """True when the run's end has been published."""
        return self.status != "running"

    @property
    def newest(self) -> Position:
        """The place of the newest entry."""
        return (self.seq, self._shared.epoch if self._n else 0, self._n)

    def publish(self, event: Event) -> None:
        """Take the next event of the run; an event without a number gets one. Raises ValueError
        when the run has ended.
        """
        with self._shared.lock:
            for missed in self._missed(event):
                self._append(missed)
            if type(event) is Delta or not event.seq or event.seq > self.seq:
                self._append(event)
        self._shared.wake(self)

    def _missed(self, event: Event) -> list[Event]:
        """Return the events of the log that come before `event` and are not here yet (it grew while
        we were subscribing to it).
        """
        if self.log is None or event.seq <= self.seq + 1:
            return []
        return self.log[self.seq : event.seq - 1]

    def info(self) -> Info:
        """Return what a list of runs tells of this one."""
        ways = (("cancel", self.cancel), ("approve", self.approve)) if not self.ended else ()
        controls = tuple(name for name, way in ways if way is not None)
        return Info(
            self.run,
            self.conversation,
            self.status,
            self._agent,
            self._prompt,
            self._started,
            self.seq,
            controls,
        )

    def _append(self, event: Event) -> None:
        if self.ended:
            raise ValueError(f"run {self.run} has ended")
        if type(event) is Delta:
            self._n += 1
        else:
            self.seq, self._n = self.seq + 1, 0
            event = event if event.seq == self.seq else msgspec.structs.replace(event, seq=self.seq)
            self._note(event)
        shared = self._shared
        self._entries.append(Entry(event, self.seq, epoch=shared.epoch, n=self._n))
        if len(self._entries) > self._shared.keep * 5 // 4:
            cut = len(self._entries) - self._shared.keep
            del self._entries[:cut]
            self._first += cut

    def _note(self, event: Event) -> None:
        self._started = self._started or event.ts
        if isinstance(event, RunStart) and not event.span:
            self._agent = event.agent
        elif isinstance(event, User) and not self._prompt:
            self._prompt = event.content[:200]
        elif isinstance(event, End) and not event.span:
            self.status = event.status

    # Reading; the hub's lock is held.

    def locate(self, after: str) -> tuple[Position, Gap | None]:
        """Return the place that an id names; an id that this run never had is the beginning, with a
        Gap.
        """
        if not after:
            return START, None
        place = parse_id(after)
        if place is None or place > (self.seq, self._shared.epoch, self._n):
            return START, Gap(self.run, "unknown", after[:100])
        return place, None

    def read(self, place: Position, limit: int) -> tuple[list[Entry], Gap | None]:
        """Return up to `limit` entries after `place`, and what is missing before them."""
        if not self._entries:
            return [], None
        first = self._entries[0]
        if place < first.position and self._lost(place, first):
            return self._before(place, first, limit)
        start = self._index(place)
        return self._entries[start : start + limit], None

    def behind(self, place: Position) -> int:
        """Return how many entries come after `place`."""
        return len(self._entries) - self._index(place)

    def _lost(self, place: Position, first: Entry) -> int:
        """Return how many stored events after `place` have left the buffer."""
        newest_lost = first.seq if first.n else first.seq - 1
        return max(newest_lost - place[0], 0)

    def _before(self, place: Position, first: Entry, limit: int) -> tuple[list[Entry], Gap | None]:
        lost = self._lost(place, first)
        if self.log is not None:
            older = self.log[place[0] : place[0] + min(lost, limit)]
            return [Entry(event, event.seq) for event in older], None
        gap = Gap(self.run, "evicted", str(place[0]), lost)
        return self._entries[:limit], gap

    def _index(self, place: Position) -> int:
        """Return the index in the buffer of the first entry after `place`."""
        low, high = 0, len(self._entries)
        while low < high:
            middle = (low + high) // 2
            if self._entries[middle].position <= place:
                low = middle + 1
            else:
                high = middle
        return low
