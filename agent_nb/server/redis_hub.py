"""A hub that shares its runs through Redis: kernels publish, any number of servers serve.

    serve(store="redis://127.0.0.1:6379/0")           # in a kernel: its runs go to Redis too
    jupyter agent-nb serve --store redis://…          # elsewhere: serves the runs of all kernels

Runs of this process are published as in `Hub`, and to Redis; runs of others are read from Redis
when they are asked for (`find`), fanned out to local subscriptions, and let go when nobody reads.

Rules
- A run never waits for Redis, and goes on without it; subscribers resume when it is back.
- Ids of entries are those of the publisher, so every server gives readers the same bytes.
- All connections live on one thread of the process; all methods may be called from any thread.
"""

from __future__ import annotations

import asyncio
import time
import weakref
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from ..errors import HubAway, UsageError
from ..events.log import EventLog
from ..host.background import Background
from .channel import Channel, Info
from .hub import KEEP, RUNS, Hub
from .redis_control import Control
from .redis_entries import entry_of
from .redis_index import Index
from .redis_link import LOG, Link, Refusal
from .redis_messages import hub_key
from .redis_mirror import Mirror
from .redis_place import Place, configured, place_of
from .redis_publisher import Limits, Publisher
from .redis_reader import Reader
from .subscription import Subscription

T = TypeVar("T")
PAGE = 128  # entries
IDLE = 60.0  # s that a run nobody reads is followed
TEND = 8.0  # s
DOOR = 5.0  # s for the first connection
LAST = 2.0  # s for what is not yet published when the process ends


class RedisHub(Hub):
    """A hub over the Redis at `place`; see `Hub`. `key`: of control messages, b"" for none.

    Raises UsageError if Redis does not answer, MissingExtra without the extra `redis`.
    """

    def __init__(
        self,
        place: Place,
        *,
        keep: int = KEEP,
        runs: int = RUNS,
        epoch: int | None = None,
        key: bytes = b"",
        limits: Limits | None = None,
    ) -> None:
        super().__init__(keep=keep, runs=runs, epoch=epoch)
        self.place, self.where = place, place.shown
        limits = limits or Limits(runs=runs)
        self._mirrors: dict[str, Mirror] = {}
        self._read: dict[str, float] = {}  # when each mirror was last asked for, monotonic s
        self._finding: dict[str, asyncio.Future[Mirror]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._link = Link(place)
        self._reader = Reader(self._link)
        self._index = Index(self._link)
        self._control = Control(self._link, self._reader, key)
        self._publisher = Publisher(self._link, self._index, self.shared, limits, keep)
        self._start()
        _HUBS.add(self)

    # Publishing.

    def open(self, run: str, *, conversation: str = "", log: EventLog | None = None) -> Channel:
        """Return the channel of a run of this process, new if there is none; see `Hub.open`."""
        with self.shared.lock:
            new = run not in self._channels
            channel = super().open(run, conversation=conversation, log=log)
            if new:
                self._publisher.keep_only(self._channels)
                self._publisher.add(channel)
            return channel

    def attach(
        self,
        log: EventLog,
        *,
        conversation: str = "",
        cancel: Callable[[], Any] | None = None,
        approve: Callable[..., Any] | None = None,
    ) -> Channel:
        """Publish a run here and to Redis; see `Hub.attach`."""
        channel = super().attach(log, conversation=conversation, cancel=cancel, approve=approve)
        if (channel.cancel or channel.approve) and not channel.ended:
            _THREAD.submit(self._control.attend(channel))
        return channel

    def faults(self) -> dict[str, str]:
        """Return why runs are not published to Redis, by run."""
        return self._publisher.faults()

    def listeners(self, run: str = "") -> int:
        """Return the number of subscriptions here, and of servers that have some for `run`."""
        return super().listeners(run) + (self._control.listeners(run) if run else 0)

    def flush(self, seconds: float = LAST) -> bool:
        """Wait until everything is published; return whether it is."""
        try:
            _THREAD.submit(asyncio.wait_for(self._publisher.drained(), seconds)).result()
        except TimeoutError:
            return False
        return True

    # Reading.

    def channel(self, run: str) -> Channel:
        """Return the channel of a run that is published or read here; see `find`."""
        with self.shared.lock:
            return self._mirrors[run] if self._reads(run) else super().channel(run)

    def _reads(self, run: str) -> bool:
        return run not in self._channels and run in self._mirrors

    async def find(self, run: str) -> Channel:
        """Return the channel of a run, ready to be read. Raises UsageError, HubAway."""
        if run in self._channels:
            return self.channel(run)
        return await _THREAD.run(self._found(run))

    async def listed(self) -> list[Info]:
        """Return the list of the runs of all kernels, the newest last. Raises HubAway."""
        own = {info.run: info for info in self.runs()}
        try:
            known = [found.info for found in await _THREAD.run(self._index.listed())]
        except HubAway:
            if not own:
                raise
            return list(own.values())
        here = [own.pop(info.run, info) for info in known]
        return [*here, *own.values()]

    def forget(self, subscription: Subscription) -> None:
        """Drop a subscription."""
        super().forget(subscription)
        if self._reads(subscription.run) and not super().listeners(subscription.run):
            self._read[subscription.run] = time.monotonic()
            self._listen(subscription.run, here=False)

    def _listening(self, found: Subscription) -> Subscription:
        subscription = super()._listening(found)
        if self._reads(found.run) and not found.closed:
            self._listen(found.run, here=True)
        return subscription

    def _listen(self, run: str, *, here: bool) -> None:
        if not self._mirrors[run].ended:
            _THREAD.submit(_quietly(self._control.listen(run, here=here)))

    def _wake(self, channel: Channel) -> None:
        super()._wake(channel)
        self._publisher.notify(channel.run)

    async def _found(self, run: str) -> Mirror:
        """Return the mirror of a run, loaded once for all who ask at the same time."""
        self._read[run] = time.monotonic()
        mirror = self._mirrors.get(run)
        if mirror is None:
            if run not in self._finding:
                self._finding[run] = asyncio.ensure_future(self._load(run))
                self._finding[run].add_done_callback(lambda _: self._finding.pop(run, None))
            return await asyncio.shield(self._finding[run])
        if not mirror.ended:
            with suppress(HubAway, UsageError):
                self._hear(mirror, await self._index.find(run))
        return mirror

    async def _load(self, run: str) -> Mirror:
        about = await self._index.find(run)
        mirror = Mirror(self.shared, run, about)
        self._hear(mirror, about)
        key = self.place.key("run", run, "events")
        after = "0-0"
        while True:
            page = await self._link.ask("XRANGE", key, _next(after), "+", "COUNT", PAGE)
            if isinstance(page, Refusal):
                raise UsageError(f"The run {run[:100]!r} cannot be read: {page.text}")
            self._take(mirror, page)
            if len(page) < PAGE:
                break
            after = page[-1][0].decode()
        if not mirror.ended:
            last = page[-1][0].decode() if page else after
            await self._reader.follow(key, last, lambda entries: self._take(mirror, entries))
        with self.shared.lock:
            self._mirrors[run] = mirror
        return mirror

    def _hear(self, mirror: Mirror, about: Any) -> None:
        """Take what the publisher says of a run, and how it can be controlled."""
        mirror.about = about
        here = about.info.controls if self._control.key else ()
        control = self._control
        mirror.cancel = mirror.approve = None
        if "cancel" in here:
            mirror.cancel = lambda: _THREAD.run(control.cancel(mirror))
        if "approve" in here:
            mirror.approve = lambda call, **answer: _THREAD.run(
                control.approve(mirror, call, **answer)
            )

    def _take(self, mirror: Mirror, entries: list[Any]) -> None:
        found = [entry_of(number, given or [], mirror.run) for number, given in entries]
        mirror.take_in([entry for entry in found if entry is not None])
        if mirror.ended:
            self._reader.leave(self.place.key("run", mirror.run, "events"))

    # The thread.

    def _start(self) -> None:
        try:
            _THREAD.submit(asyncio.wait_for(self._begin(), DOOR)).result()
        except (TimeoutError, HubAway) as fault:
            _THREAD.submit(self._link.aclose())
            why = self._link.away or str(fault) or "it does not answer in time"
            raise UsageError(
                f"The Redis at {self.place.shown} cannot be used: {why} Start redis-server there, or correct the address."
            ) from None

    async def _begin(self) -> None:
        if isinstance(said := await self._link.ask("PING"), Refusal):
            raise HubAway(said.text)
        for work in (self._publisher.run(), self._reader.run(), self._tend()):
            self._tasks.add(asyncio.ensure_future(work))

    async def _tend(self) -> None:
        """Keep up what has a time limit, and let go of what nobody uses."""
        while True:
            await asyncio.sleep(TEND)
            try:
                await self._publisher.tend()
                await self._control.tend()
                for run, mirror in list(self._mirrors.items()):
                    if super().listeners(run):
                        if not mirror.ended:
                            await self._control.listen(run, here=True)
                    elif time.monotonic() - self._read.get(run, 0.0) > IDLE:
                        self._let_go(run)
            except (HubAway, UsageError):
                continue
            except Exception:  # the next round may do better
                LOG.exception("tending the hub at %s", self.place.shown)

    def _let_go(self, run: str) -> None:
        with self.shared.lock:
            if not super().listeners(run):
                self._reader.leave(self.place.key("run", run, "events"))
                del self._mirrors[run]
                self._read.pop(run, None)

    def stop(self) -> None:
        """Publish what is left, within `LAST` seconds, and close the connections."""
        if self in _HUBS:
            _HUBS.discard(self)
            with suppress(TimeoutError):
                _THREAD.submit(self._finish()).result(3 * LAST)

    async def _finish(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._publisher.drained(), 0.0 if self._link.away else LAST)
        left = self._tasks
        for _ in range(3):  # a client of Redis may lose a cancellation
            for task in left:
                task.cancel()
            if left:
                _, left = await asyncio.wait(left, timeout=LAST / 4)
        if not self._link.away:
            with suppress(HubAway):
                await self._link.ask("UNLINK", self._reader.inbox)
        await self._link.aclose()

    def __repr__(self) -> str:
        return f"<hub over {self.place.shown}>"


async def _quietly(work: Coroutine[Any, Any, T]) -> None:
    with suppress(HubAway, UsageError):
        await work


def _next(number: str) -> str:
    """Return the id after an id."""
    seq, _, n = number.partition("-")
    return f"{seq}-{int(n) + 1}"


_HUBS: weakref.WeakSet[RedisHub] = weakref.WeakSet()


async def _finish_all() -> None:
    await asyncio.gather(*(hub._finish() for hub in list(_HUBS)))  # noqa: SLF001  (of this file)


_THREAD = Background("agent_nb hub", _finish_all, 3 * LAST)


def hub_at(store: str | None, *, keep: int = KEEP) -> Hub:
    """Return a hub over the Redis at an address, given or configured; without one, one of this
    process alone.

    Raises UsageError, MissingExtra.
    """
    url = configured(store)
    return RedisHub(place_of(url), keep=keep, key=hub_key()) if url else Hub(keep=keep)
