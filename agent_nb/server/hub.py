"""The hub: publishes runs to subscribers, without HTTP or an event loop.

Why apart from HTTP: runs can then be published, resumed and tested without a web server. Publishing
never waits for a subscriber and never raises because of one. Every method may be called from any
thread: a run publishes from its own, as a subscriber reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ..errors import UsageError
from ..events import EventLog
from .channel import Channel, Info, Shared
from .filters import Filter
from .subscription import Overflow, Subscription

KEEP = 20_000  # entries in the buffer of a run, deltas included
RUNS = 200  # ended runs that stay published


class Hub:
    """The published runs and their subscriptions.

    keep: entries in each run's buffer.
    runs: ended runs that stay published; the oldest is dropped first, unless it is being read.
    epoch: a part of the ids of deltas that no earlier hub used (default: the time in milliseconds).
    where: the store through which other processes share its runs (`redis.hub`), "" for none.
    """

    where = ""

    def __init__(self, *, keep: int = KEEP, runs: int = RUNS, epoch: int | None = None) -> None:
        self.shared = Shared(keep, int(time.time() * 1000) if epoch is None else epoch, self._wake)
        self.closed = False
        self.starts_runs = True  # False: the server shuts down
        self._runs = runs
        self._channels: dict[str, Channel] = {}  # by the run's id, the newest last
        self._subscriptions: dict[str, list[Subscription]] = {}  # by the run's id

    def attach(
        self,
        log: EventLog,
        *,
        conversation: str = "",
        cancel: Callable[[], Any] | None = None,
        approve: Callable[..., Any] | None = None,
    ) -> Channel:
        """Publish a run: the events in its log and all that follow.

        `cancel()` stops the run; `approve(call_id, allow=…, args=…, scope=…, reason=…)` answers an
        approval and returns whether one was waiting. A log may be attached again, to set a missing
        conversation or to replace these functions. Raises UsageError if another run with this id is
        published.
        """
        with self.shared.lock:
            new = log.run not in self._channels
            channel = self.open(log.run, conversation=conversation, log=log)
            channel.cancel, channel.approve = cancel or channel.cancel, approve or channel.approve
        # outside the lock, because `subscribe` first passes all logged events to the channel
        if new:
            log.subscribe(channel.publish)
        self._offer_controls(channel)
        return channel

    def open(self, run: str, *, conversation: str = "", log: EventLog | None = None) -> Channel:
        """Return the channel of a run; make one if the run is new.

        A channel without a conversation becomes the next run of `conversation`. Raises UsageError
        if the id belongs to another log.
        """
        with self.shared.lock:
            channel = self._channels.get(run)
            if channel is None:
                self._forget_old()
                channel = self._channels[run] = Channel(self.shared, run, log)
            elif log is not None and channel.log is not log:
                raise UsageError(
                    f"A run with the id {run} is published already; ids are never used again."
                )
            if conversation and not channel.conversation:
                positions = [
                    member.earlier
                    for member in self._channels.values()
                    if member.conversation == conversation
                ]
                channel.conversation = conversation
                channel.earlier = max(positions, default=-1) + 1
            return channel

    def channel(self, run: str) -> Channel:
        """Return the channel of a run. Raises UsageError if this process does not publish it."""
        with self.shared.lock:
            if run not in self._channels:
                raise UsageError(f"There is no run {run[:100]!r} here.")
            return self._channels[run]

    def channels(self) -> list[Channel]:
        """Return the channels of all runs, the newest last."""
        with self.shared.lock:
            return list(self._channels.values())

    def runs(self) -> list[Info]:
        """Return the list of runs that this process publishes, the newest last."""
        with self.shared.lock:
            return [channel.info() for channel in self._channels.values()]

    async def find(self, run: str) -> Channel:
        """Return the channel of a run, ready to be read; a shared hub also finds other processes'.

        Raises UsageError if the run is unknown, HubAway if the shared store does not answer.
        """
        return self.channel(run)

    async def list_runs(self) -> list[Info]:
        """Return the list of runs, the newest last; a shared hub also lists other processes'.

        Raises HubAway if the shared store does not answer.
        """
        return self.runs()

    def subscribe(
        self,
        run: str,
        wanted: Filter | None = None,
        *,
        after: str = "",
        overflow: Overflow = "gap",
    ) -> Subscription:
        """Subscribe to a run from its start, or after the id `after`.

        wanted: the filter (default: all but internal events).
        overflow: a reader that lost entries receives a Gap and, with `disconnect`, is disconnected.
        Raises UsageError if the run is unknown. In a closed hub the subscription is closed.
        """
        with self.shared.lock:
            channel = self.channel(run)
            wanted = wanted or Filter()
            subscription = Subscription(
                self.shared, channel, wanted, self.forget, after=after, overflow=overflow
            )
            return self._register(subscription)

    def listeners(self, run: str = "") -> int:
        """Return the number of subscriptions to a run, or to all runs ("")."""
        return len(self._list_readers(run))

    def had_reader(self, run: str, seconds: float) -> bool:
        """Return whether a reader of a run of this process left in the last `seconds`."""
        with self.shared.lock:
            channel = self._channels.get(run)
        return channel is not None and time.monotonic() < channel.left + seconds

    def _list_readers(self, run: str) -> list[Subscription]:
        with self.shared.lock:
            groups = self._subscriptions.items()
            return [s for r, group in groups if run in ("", r) for s in group]

    def forget(self, subscription: Subscription) -> None:
        """Drop a subscription."""
        with self.shared.lock:
            readers = self._subscriptions.get(subscription.run, [])
            # replaced in one step, because `_wake` may be reading without the lock
            self._subscriptions[subscription.run] = [s for s in readers if s is not subscription]
            if not self._subscriptions[subscription.run]:
                del self._subscriptions[subscription.run]
            if channel := self._channels.get(subscription.run):
                channel.left = time.monotonic()

    def close(self) -> None:
        """End every subscription as the server shuts down; runs continue."""
        with self.shared.lock:
            self.closed = True
        self.finish_readers()

    def finish_readers(self, run: str = "") -> None:
        """End the subscriptions to a run, or to all runs (""); the runs continue."""
        for subscription in self._list_readers(run):
            subscription.finish()

    def stop(self) -> None:
        """Close the connections to the shared store, if there is one; called after `close`."""

    def _offer_controls(self, channel: Channel) -> None:
        """Let other processes control a run; a hub that shares nothing does nothing here."""

    def _register(self, subscription: Subscription) -> Subscription:
        """Add a subscription; a closed hub closes it at once."""
        if self.closed:
            subscription.close()
        else:
            # a new list, because `_wake` may be reading the old one without the lock
            self._subscriptions[subscription.run] = [
                *self._subscriptions.get(subscription.run, []),
                subscription,
            ]
        return subscription

    def _wake(self, channel: Channel) -> None:
        """Wake the readers of a channel that has new entries."""
        for subscription in self._subscriptions.get(channel.run, ()):
            subscription.signal()

    def _forget_old(self) -> None:
        """Drop the oldest ended runs without subscriptions, to make room for one more."""
        ended = [
            run
            for run, channel in self._channels.items()
            if channel.ended and not self._subscriptions.get(run)
        ]
        for run in ended[: max(len(ended) - self._runs + 1, 0)]:
            del self._channels[run]
