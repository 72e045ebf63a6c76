"""A run that another process publishes, mirrored as a channel of this process.

Why: subscriptions then read the mirror as they read a run of this process. The newest
`_MOST_STORED` stored events stay in memory, so that a late reader gets them as it gets those of a
log.

Rule: after a hole (events that Redis has lost) the mirror drops all entries before it; readers that
lack them get a Gap, as for evicted events.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...events import Event, Position
from ..channel import Channel, Entry, Gap, Info, Shared

_MOST_STORED = 100_000  # events


class Published(msgspec.Struct, frozen=True):
    """What the index holds of one run, so that a list of runs needs no events.

    `earlier`: see `Channel`. `epoch`: the epoch of the hub that publishes the run.
    """

    info: Info
    earlier: int = 0
    epoch: int = 0


class Mirror(Channel):
    """A run that is read from Redis; `about`: the newest info that its publisher wrote."""

    def __init__(self, shared: Shared, run: str, about: Published) -> None:
        super().__init__(shared, run)
        self.about = about
        self.epoch = about.epoch
        self.conversation, self.earlier = about.info.conversation, about.earlier
        self._stored: list[Entry] = []

    def add_entries(self, entries: Sequence[Entry]) -> None:
        """Add the next entries of the run, and wake its readers."""
        with self._shared.lock:
            for entry in entries:
                self._add_if_new(entry)
        if entries:
            self._shared.wake(self)

    def _add_if_new(self, entry: Entry) -> None:
        if self.ended or (entry.seq, entry.n) <= (self.seq, self._n):
            return
        # a hole: a delta has the `seq` of the stored event before it, a stored event the next one
        if entry.seq > (self.seq if entry.n else self.seq + 1):
            self._entries.clear()
            self._stored.clear()
        self.seq, self._n = entry.seq, entry.n
        if entry.n:
            self.epoch = entry.epoch
        else:
            self._update_info(entry.event)
            self._stored.append(entry)
            if len(self._stored) > _MOST_STORED * 5 // 4:  # not for each event: this moves the list
                del self._stored[:-_MOST_STORED]
        self._add_entry(entry)

    @property
    def cursor(self) -> str:
        """The id in Redis of the newest entry."""
        return f"{self.seq}-{self._n}"

    def stored(self) -> Sequence[Event]:
        """Return the stored events in memory, in order."""
        with self._shared.lock:
            return [entry.event for entry in self._stored]

    def info(self) -> Info:
        """Return the run's info: the newest one of its publisher, updated by newer events."""
        info = self.about.info
        info = msgspec.structs.replace(info, events=max(self.seq, info.events))
        if self.ended:
            return msgspec.structs.replace(info, status=self.status, controls=())
        return info

    def _read_evicted(
        self, position: Position, first: Entry, limit: int
    ) -> tuple[list[Entry], Gap | None]:
        """Read stored events that the buffer, which begins with `first`, has dropped.

        Return the next entries for a reader at `position`, at most `limit`, and a gap before them.
        """
        if not self._stored or self._stored[-1].seq <= position[0]:
            return super()._read_evicted(position, first, limit)
        # stored events have consecutive `seq`, so the `seq` gives the place in `_stored`
        begin = self._stored[0].seq
        start = max(position[0] + 1 - begin, 0)
        older = [e for e in self._stored[start : start + limit] if e.position < first.position]
        missed = begin - 1 - position[0]
        gap = Gap(self.run, "evicted", str(position[0]), missed) if missed > 0 else None
        return (older or self._entries[:limit]), gap
