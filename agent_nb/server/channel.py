"""The channel of a published run: a bounded buffer of its events, with ids for resuming.

Why: a subscriber that lost its connection names the last id it received, and goes on from there.

Rules
- Ids are never reused: `seq` for a stored event (any but a delta), `seq.epoch.n` for the n-th delta
  after it. Each start of a hub has its own epoch. Ids of one run sort by their numbers.
- Lost stored events and unknown ids are reported as a `Gap`. Lost deltas are not reported: they
  matter only while they are live.
- The hub's lock guards all changes, and the reading of the buffer.
"""

from __future__ import annotations

import inspect
import math
import threading
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from ..events import Delta, End, Event, EventLog, Position, RunStart, User
from ..wire import replace_surrogates


class Entry(msgspec.Struct, eq=False):
    """One event of a run and its position.

    `seq`, `epoch` and `n` make the id (see the rules of the file); `n` is 0 for a stored event.
    `texts`: framing -> the event encoded for it, made once for all subscribers.
    """

    event: Event
    seq: int
    epoch: int = 0
    n: int = 0
    texts: dict[str, bytes] = {}

    @property
    def id(self) -> str:
        """The id for resuming; see the rules of the file."""
        return f"{self.seq}.{self.epoch}.{self.n}" if self.n else str(self.seq)

    @property
    def position(self) -> Position:
        """The position as numbers."""
        return Position(self.seq, self.epoch, self.n) if self.n else Position(self.seq)


class Gap(msgspec.Struct, frozen=True):
    """Reports events that a subscriber requested but does not receive.

    reason: `evicted` (no longer in the buffer) or `unknown` (not an id of this run; all events
        follow).
    missed: the number of stored events that are missing (0: none or unknown).
    """

    run: str
    reason: Literal["evicted", "unknown"]
    after: str = ""
    missed: int = 0


class Info(msgspec.Struct, frozen=True):
    """An entry in the list of runs.

    status: `running`, how the run ended, or `away` if its process has been silent for a while.
    started: epoch seconds. prompt: its first 200 characters.
    events: the number of stored events. controls: `cancel` and `approve`, if this process offers
        them.
    """

    run: str
    conversation: str
    status: str
    agent: str
    prompt: str
    started: float
    events: int
    controls: tuple[str, ...] = ()


class Shared(msgspec.Struct, eq=False):
    """The lock, settings and waker that all channels of one hub share.

    `keep`: the entries that stay when the buffer of a channel is cut. `epoch`: the epoch of this
    start of the hub. `wake` is called with a channel that has new entries, without the lock.
    """

    keep: int
    epoch: int
    wake: Callable[[Channel], None]
    lock: Any = msgspec.field(default_factory=threading.RLock)


async def call_control(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a function that starts or controls a run, async or not, and return its result."""
    result = function(*args, **options)
    return await result if inspect.isawaitable(result) else result


class Channel:
    """One published run: its buffer, and the functions that cancel it or answer its approvals.

    `earlier`: the number of earlier runs in its conversation.
    """

    def __init__(self, shared: Shared, run: str, log: EventLog | None = None) -> None:
        self.run = run
        self.conversation = ""
        self.earlier = 0
        self.cancel: Callable[[], Any] | None = None
        self.approve: Callable[..., Any] | None = None
        self.status = "running"
        self.seq = 0  # `seq` of the newest stored event
        self.epoch = shared.epoch
        self.left = -math.inf  # monotonic s at which a reader left last
        self.log = log
        self._shared = shared
        self._entries: list[Entry] = []
        self._n = 0  # deltas since the newest stored event
        self._agent = self._prompt = ""
        self._started = 0.0

    @property
    def ended(self) -> bool:
        """Whether the run's end has been published."""
        return self.status != "running"

    @property
    def newest(self) -> Position:
        """The position of the newest entry."""
        return Position(self.seq, self.epoch if self._n else 0, self._n)

    def stored(self) -> Sequence[Event]:
        """Return the stored events in memory, in order."""
        if self.log is not None:
            return self.log
        with self._shared.lock:
            return [entry.event for entry in self._entries if not entry.n]

    def publish(self, event: Event) -> None:
        """Publish the next event of the run; one without `seq` gets one.

        Raises ValueError if the run has ended.
        """
        with self._shared.lock:
            for missed in self._read_missed(event):
                self._append(missed)
            # a stored event up to `seq` was among the missed ones of an earlier call
            if type(event) is Delta or not event.seq or event.seq > self.seq:
                self._append(event)
        self._shared.wake(self)

    def _read_missed(self, event: Event) -> list[Event]:
        """Return the events before `event` that were logged while the hub was subscribing."""
        if self.log is None or event.seq <= self.seq + 1:
            return []
        return self.log[self.seq : event.seq - 1]

    def info(self) -> Info:
        """Return the entry for the list of runs."""
        functions = {"cancel": self.cancel, "approve": self.approve} if not self.ended else {}
        controls = tuple(name for name, function in functions.items() if function is not None)
        about = (self.run, self.conversation, self.status, self._agent, self._prompt)
        return Info(*about, self._started, self.seq, controls)

    def _append(self, event: Event) -> None:
        """Number an event and add it to the buffer. Raises ValueError if the run has ended."""
        if self.ended:
            raise ValueError(f"run {self.run} has ended")
        if type(event) is Delta:
            self._n += 1
        else:
            self.seq, self._n = self.seq + 1, 0
            event = event if event.seq == self.seq else msgspec.structs.replace(event, seq=self.seq)
            self._update_info(event)
        self._add_entry(Entry(event, self.seq, epoch=self.epoch, n=self._n))

    def _add_entry(self, entry: Entry) -> None:
        """Add an entry to the buffer; evict the oldest ones if it is too long."""
        self._entries.append(entry)
        # a quarter at once, because each cut moves the whole list
        if len(self._entries) > self._shared.keep * 5 // 4:
            cut = len(self._entries) - self._shared.keep
            del self._entries[:cut]

    def _update_info(self, event: Event) -> None:
        """Take agent, prompt, status and start from a stored event, for the list of runs."""
        self._started = self._started or event.ts
        if isinstance(event, RunStart) and not event.span:
            self._agent = replace_surrogates(event.agent)
        elif isinstance(event, User) and not self._prompt:
            self._prompt = replace_surrogates(event.content[:200])
        elif isinstance(event, End) and not event.span:
            self.status = event.status

    # Reading; callers of `read` hold the hub's lock.

    def locate(self, after: str) -> tuple[Position, Gap | None]:
        """Return the position of the id `after`; for an unknown id the start, and a Gap."""
        if not after:
            return Position(), None
        position = Position.parse(after)
        if position is None or position > (self.seq, self.epoch, self._n):
            return Position(), Gap(self.run, "unknown", after[:100])
        return position, None

    def read(self, position: Position, limit: int) -> tuple[list[Entry], Gap | None]:
        """Return up to `limit` entries after `position`, and the gap before them."""
        if not self._entries:
            return [], None
        first = self._entries[0]
        if position < first.position and self._count_lost(position, first):
            return self._read_evicted(position, first, limit)
        # by halves, since positions are sorted and every reader asks again and again
        start = bisect_right(self._entries, position, key=lambda entry: entry.position)
        return self._entries[start : start + limit], None

    def _count_lost(self, position: Position, first: Entry) -> int:
        """Return the number of stored events after `position` and before the entry `first`."""
        # a delta bears the `seq` of the stored event before it, which then is evicted too
        newest_lost = first.seq if first.n else first.seq - 1
        return max(newest_lost - position[0], 0)

    def _read_evicted(
        self, position: Position, first: Entry, limit: int
    ) -> tuple[list[Entry], Gap | None]:
        """Return evicted entries after `position` from the log, or else a Gap and the buffer."""
        lost = self._count_lost(position, first)
        if self.log is not None:
            older = self.log[position[0] : position[0] + min(lost, limit)]
            return [Entry(event, event.seq) for event in older], None
        gap = Gap(self.run, "evicted", str(position[0]), lost)
        return self._entries[:limit], gap
