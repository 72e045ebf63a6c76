"""Subscriptions: each has a position in a run's buffer and reads on from there at its own speed.

Why readers pull: a slow or dead reader holds no more than its position, and delays neither the run
nor other readers.

Rule: the publishing thread calls the waker, a function of the reader, at the first entry after the
reader has taken all, and not again until the reader has taken all again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

from ..events import End, Position
from .channel import Channel, Entry, Gap, Shared
from .filters import Filter

Overflow = Literal["gap", "disconnect"]


class Subscription:
    """One reader of one run: `take` returns new entries; once `closed`, no more come.

    `after`: the id after which it reads ("": all); for an unknown id it begins with a Gap.
    `overflow`: a reader that has lost entries receives a Gap (`gap`), or is also disconnected
    (`disconnect`). `forget` is called when the subscription is closed. Make one only while the
    hub's lock is held.
    """

    def __init__(
        self,
        shared: Shared,
        channel: Channel,
        wanted: Filter,
        forget: Callable[[Subscription], object],
        *,
        after: str = "",
        overflow: Overflow = "gap",
    ) -> None:
        self.run = channel.run
        self.reason = ""
        self.fault: Exception | None = None
        self._wake: Callable[[], Any] = lambda: None
        self._lock, self._forget = shared.lock, forget
        self._channel = channel
        self._wanted = wanted
        self._position, self._gap = channel.locate(after)  # `_gap` is returned first
        self._overflow = overflow
        self._idle = True  # the reader has taken everything, so the next entry must wake it
        self._until: Position | None = None  # the subscription closes at this position

    def wake_with(self, waker: Callable[[], Any]) -> None:
        """Set the waker, called when there are entries to take; see the rules of the file."""
        self._wake = waker

    @property
    def closed(self) -> bool:
        """Whether nothing more comes; `reason`: `ended`, `evicted`, `fault` or `closed`."""
        return bool(self.reason)

    @property
    def end(self) -> str:
        """The id of the run's end once the reader has passed it, else ""."""
        return str(self._channel.seq) if self.reason == "ended" else ""

    def take(self, limit: int = 512) -> list[Entry | Gap]:
        """Return the next entries that pass the filter, about `limit`; [] if there are none now."""
        out: list[Entry | Gap] = []
        until = self._until  # if `finish` sets it only now, it wakes the reader to look again
        while not out and not self.closed:
            with self._lock:
                entries, gap = self._channel.read(self._position, limit)
                self._idle = not entries
            out += [each for each in (self._gap, gap) if each is not None]
            self._gap = None
            if gap is not None and self._overflow == "disconnect":
                self.close(gap.reason)
            elif entries:
                out += self._filter_entries(entries)
            else:
                break
        # `not out`: entries before `until` may all be filtered out, or lost
        if until is not None and (not out or self._position >= until):
            self.close()
        return out

    def close(self, reason: str = "closed") -> None:
        """Close the subscription; if it is called again, the first reason stays."""
        self.reason = self.reason or reason
        self._forget(self)

    def finish(self) -> None:
        """Wake the reader to take the entries that are here now; close once it has taken them."""
        self._until = self._channel.newest
        with suppress(Exception):  # the reader may be gone
            self._wake()

    def signal(self) -> None:
        """Wake the reader, unless it has been woken since it last took all entries."""
        if not self._idle or self.closed:
            return
        self._idle = False
        try:
            self._wake()
        except Exception as fault:
            # a faulty waker closes only its own subscription
            self.fault = fault
            self.close("fault")

    def _filter_entries(self, entries: list[Entry]) -> list[Entry]:
        """Return the entries that pass the filter; the position moves past all of them."""
        try:
            passed = [e for e in entries if self._wanted(e.event)]
        except Exception as fault:  # a faulty filter closes only its own subscription
            self.fault = fault
            self.close("fault")
            return []
        self._advance(entries)
        return passed

    def _advance(self, entries: list[Entry]) -> None:
        """Move past the entries; close after the end of the run."""
        self._position = entries[-1].position
        last = entries[-1].event
        if isinstance(last, End) and not last.span:
            self.close("ended")
