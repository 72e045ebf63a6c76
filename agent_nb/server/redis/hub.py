"""A hub that shares its runs through Redis: kernels publish, any number of servers serve.

    serve(store="redis://127.0.0.1:6379/0")           # in a kernel: its runs go to Redis too
    jupyter agent-nb serve --store redis://…          # elsewhere: serves the runs of all kernels

Why: the server of a team must show the runs of kernels that it did not start. Once a client
requests one (`find`), a mirror in this process reads it from Redis for all local subscriptions.

Rules
- A run never waits for Redis; subscribers resume when Redis is back.
- Entries keep the publisher's ids, so every server gives readers the same ids.
- All connections live on one thread of the process; all methods may be called from any thread.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from ...errors import HubAway, UsageError
from ...events import EventLog
from ...host import Background, read_launch
from ..channel import Channel, Info
from ..hub import KEEP, RUNS, Hub
from ..subscription import Subscription
from .address import RedisAddress, configured_address, parse_address
from .control import Control
from .index import Index
from .link import LOG, Link, Refusal
from .messages import hub_key
from .mirrors import Mirrors
from .outgoing import Limits
from .publisher import Publisher
from .reader import Reader
from .remote_control import RemoteControl

T = TypeVar("T")
MAINTENANCE_INTERVAL = 8.0  # s
CONNECT = 5.0  # s for the first connection
DRAIN = 2.0  # s without progress after which a stopping hub publishes no more
END = 30.0  # s for which the end of the process waits at most


class RedisHub(Hub):
    """A hub over the Redis at `address`; see `Hub`. `key` signs control messages (b"": none).

    Raises UsageError if Redis does not answer, MissingExtra without the extra `redis`.
    """

    def __init__(
        self,
        address: RedisAddress,
        *,
        keep: int = KEEP,
        runs: int = RUNS,
        epoch: int | None = None,
        key: bytes = b"",
        limits: Limits | None = None,
    ) -> None:
        super().__init__(keep=keep, runs=runs, epoch=epoch)
        self.address, self.where = address, address.shown
        self._tasks: set[asyncio.Task[Any]] = set()
        self._link = Link(address)
        self._reader = Reader(self._link)
        self._index = Index(self._link)
        self._control = Control(self._link, self._reader, key)
        self._remote = RemoteControl(self._link, self._reader, key)
        self._mirrors = Mirrors(self._link, self._reader, self._remote, self.shared, _THREAD.run)
        self._publisher = Publisher(self._link, self._index, self.shared, limits or Limits())
        self._start()
        _HUBS.add(self)

    # Publishing.

    def open(self, run: str, *, conversation: str = "", log: EventLog | None = None) -> Channel:
        """Return the channel of a run of this process; a new one is published; see `Hub.open`."""
        with self.shared.lock:
            new = run not in self._channels
            channel = super().open(run, conversation=conversation, log=log)
            if new:
                self._publisher.keep_only(self._channels)
                self._publisher.add(channel)
            return channel

    def _offer_controls(self, channel: Channel) -> None:
        # other servers may now stop the run, and answer its questions
        if (channel.cancel or channel.approve) and not channel.ended:
            _THREAD.submit(self._control.follow_messages(channel))

    def faults(self) -> dict[str, str]:
        """Return run -> the reason why it is no longer published to Redis."""
        return self._publisher.faults()

    def listeners(self, run: str = "") -> int:
        """Return the number of subscriptions here, plus other servers with readers of `run`."""
        return super().listeners(run) + (self._control.listeners(run) if run else 0)

    def had_reader(self, run: str, seconds: float) -> bool:
        """Return whether a reader of a run of this process left in the last `seconds`."""
        return super().had_reader(run, seconds) or self._control.listeners(run, seconds) > 0

    def flush(self, seconds: float = DRAIN) -> bool:
        """Wait until everything is published and return True.

        After `seconds` in which nothing was published, give up and return False.
        """
        return _THREAD.submit(self._publisher.drain(seconds)).result()

    # Reading.

    def channel(self, run: str) -> Channel:
        """Return the channel of a run that is published or read here; see `find`."""
        with self.shared.lock:
            mirror = None if run in self._channels else self._mirrors.get_mirror(run)
            return mirror or super().channel(run)

    async def find(self, run: str) -> Channel:
        """Return the channel of a run, ready to be read. Raises UsageError, HubAway."""
        if run in self._channels:
            return self.channel(run)
        return await _THREAD.run(self._mirrors.fetch_mirror(run))

    async def list_runs(self) -> list[Info]:
        """Return the list of the runs of all kernels, the newest last. Raises HubAway."""
        own = {info.run: info for info in self.runs()}
        try:
            published = await _THREAD.run(self._index.list_runs())
        except HubAway:
            if not own:
                raise
            return list(own.values())
        # for runs of this process its own info is newer than the published one
        merged = [own.pop(each.info.run, each.info) for each in published]
        return [*merged, *own.values()]

    def forget(self, subscription: Subscription) -> None:
        """Drop a subscription."""
        super().forget(subscription)
        if not super().listeners(subscription.run):
            self._announce_readers(subscription.run)

    def _register(self, subscription: Subscription) -> Subscription:
        super()._register(subscription)
        if not subscription.closed:
            self._announce_readers(subscription.run)
        return subscription

    def _announce_readers(self, run: str) -> None:
        """Notify the kernel of another process's run whether the run has readers here."""
        mirror = None if run in self._channels else self._mirrors.get_mirror(run)
        if mirror is None:
            return
        self._mirrors.keep_mirror(run)
        if not mirror.ended:
            _THREAD.submit(_quietly(self._remote.announce_readers(run, super().listeners)))

    def _wake(self, channel: Channel) -> None:
        super()._wake(channel)
        self._publisher.notify(channel.run)

    # The thread.

    def _start(self) -> None:
        try:
            _THREAD.submit(asyncio.wait_for(self._begin(), CONNECT)).result()
        except (TimeoutError, HubAway) as fault:
            _THREAD.submit(self._link.aclose())
            reason = self._link.away or str(fault) or "it does not answer in time"
            raise UsageError(
                f"The Redis at {self.address.shown} cannot be used: {reason} Start redis-server there, or correct the address."
            ) from None

    async def _begin(self) -> None:
        """Check that Redis answers, and start the endless work. Raises HubAway."""
        if isinstance(reply := await self._link.send("PING"), Refusal):
            raise HubAway(reply.text)
        for work in (self._publisher.run, self._reader.run, self._maintain):
            self._tasks.add(asyncio.ensure_future(self._run_forever(work)))

    async def _run_forever(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do endless work; if it raises, log that and begin again after a second."""
        while True:
            try:
                await work()
            except Exception:  # a fault in here must not stop runs or their readers
                LOG.exception("the hub at %s", self.address.shown)
                await asyncio.sleep(1)

    async def _maintain(self) -> None:
        """Renew keys that expire in Redis, and free unused state, every few seconds."""
        while True:
            await asyncio.sleep(MAINTENANCE_INTERVAL)
            try:
                await self._publisher.maintain_runs()
                await self._control.forget_ended_runs()
                await self._mirrors.maintain_mirrors(super().listeners, self.finish_readers)
            except (HubAway, UsageError):
                continue

    def stop(self) -> None:
        """Publish the remaining entries if Redis answers, and close the connections."""
        if self in _HUBS:
            _HUBS.discard(self)
            with suppress(TimeoutError):
                _THREAD.submit(self._finish()).result(END)

    async def _finish(self) -> None:
        """Publish what is left, stop the endless work, and close the connections."""
        try:
            await self._publisher.drain(0.0 if self._link.away else DRAIN)
            tasks = self._tasks
            for _ in range(3):  # a client of Redis may lose a cancellation
                for task in tasks:
                    task.cancel()
                if tasks:
                    _, tasks = await asyncio.wait(tasks, timeout=DRAIN / 4)
            if not self._link.away:
                with suppress(HubAway):
                    await self._publisher.mark_runs_away()
                    await self._link.send("UNLINK", self._reader.inbox)
        finally:
            await self._link.aclose()

    def __repr__(self) -> str:
        return f"<hub over {self.address.shown}>"


async def _quietly(work: Coroutine[Any, Any, T]) -> None:
    """Do work whose failure does not matter: ignore HubAway and UsageError."""
    with suppress(HubAway, UsageError):
        await work


_HUBS: weakref.WeakSet[RedisHub] = weakref.WeakSet()


async def _finish_all() -> None:
    endings = [hub._finish() for hub in list(_HUBS)]  # noqa: SLF001  (of this file)
    # all end before one raises
    for fault in await asyncio.gather(*endings, return_exceptions=True):
        if isinstance(fault, BaseException):
            raise fault


_THREAD = Background("agent_nb hub", _finish_all, END)


def open_hub(store: str | None, *, keep: int = KEEP) -> Hub:
    """Return a hub over the Redis at `store`, or at the configured address.

    Without an address, or if this process only replays records, the hub is local. Raises
    UsageError, MissingExtra.
    """
    address = parse_address(url) if (url := configured_address(store)) else None
    if address is None or read_launch().why_not_live:
        return Hub(keep=keep)
    return RedisHub(address, keep=keep, key=hub_key())
