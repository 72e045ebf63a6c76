"""The mirrors of other processes' runs: loaded when first requested, then kept up to date.

Why on request: there may be thousands of runs, of which clients read a few.

Rules
- Simultaneous requests for a run load it once.
- A mirror without readers for `IDLE` seconds is dropped.
- If the kernel of a run is gone, its readers' streams break off, as if the server had died: clients
  reconnect, and give up in the end.
- A mirror has controls only if its publisher offers them and this process has a key.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from ...errors import HubAway, UsageError
from ..channel import Shared
from .entries import entry_of, split_id
from .index import AWAY, Index
from .link import Link, Refusal
from .mirror import Mirror, Published
from .reader import Reader
from .remote_control import RemoteControl

PAGE = 128  # entries read at once
IDLE = 60.0  # s after which a mirror without readers is dropped
OnLoop = Callable[[Coroutine[Any, Any, Any]], Coroutine[Any, Any, Any]]


class Mirrors:
    """The mirrors of a hub, by run.

    `on_loop`: wraps a coroutine so that it runs on the hub's event loop while another loop awaits
    it; a mirror's controls are called from such loops.
    """

    def __init__(
        self, link: Link, reader: Reader, control: RemoteControl, shared: Shared, on_loop: OnLoop
    ) -> None:
        self._link, self._reader, self._control = link, reader, control
        self._index = Index(link)
        self._shared, self._on_loop = shared, on_loop
        self._known: dict[str, Mirror] = {}
        self._last_read: dict[str, float] = {}  # run -> when it last had readers, monotonic s
        self._away: set[str] = set()  # runs whose kernel was silent at the last `tend`
        self._loading: dict[str, asyncio.Future[Mirror]] = {}

    def get(self, run: str) -> Mirror | None:
        """Return the mirror of a run, None if the run has none."""
        return self._known.get(run)

    def touch(self, run: str) -> None:
        """Keep the mirror of a run for another `IDLE` seconds."""
        self._last_read[run] = time.monotonic()

    async def find(self, run: str) -> Mirror:
        """Return the mirror of a run, up to date with Redis. Raises UsageError, HubAway.

        Why up to date: a client may have read newer entries from another server.
        """
        mirror = self._known.get(run)
        if mirror is None:
            if run not in self._loading:
                self._loading[run] = asyncio.ensure_future(self._load(run))
                self._loading[run].add_done_callback(lambda _: self._loading.pop(run, None))
            return await asyncio.shield(self._loading[run])
        self.touch(run)
        if not mirror.ended:
            with suppress(HubAway, UsageError):  # then the mirror is served as it is
                self._update_controls(mirror, await self._index.find(run))
                await self._catch_up(mirror)
        return mirror

    async def tend(self, listeners: Callable[[str], int], end: Callable[[str], None]) -> None:
        """Notify kernels that their runs have readers, and drop runs that have none.

        `listeners` counts a run's readers. `end` ends the subscriptions of a run's readers; it is
        called if the run's kernel was away in two calls of `tend` in a row. Raises HubAway.
        """
        away, self._away = self._away, set()
        for run, mirror in list(self._known.items()):
            if listeners(run):
                if mirror.ended:
                    continue
                with suppress(UsageError):  # a fault of one run must not stop the others
                    await self._control.listen(run, here=True)
                    self._update_controls(mirror, await self._index.find(run))
                if mirror.about.info.status == AWAY:
                    self._away.add(run)
                    if run in away:
                        end(run)
            elif time.monotonic() - self._last_read[run] > IDLE:
                with self._shared.lock:
                    if not listeners(run):
                        self._reader.leave(self._stream(run))
                        del self._known[run]
                        del self._last_read[run]

    async def _load(self, run: str) -> Mirror:
        """Read a run from its beginning, and follow it if it goes on."""
        about = await self._index.find(run)
        mirror = Mirror(self._shared, run, about)
        self._update_controls(mirror, about)
        await self._catch_up(mirror)
        if not mirror.ended:
            await self._reader.follow(
                self._stream(run), mirror.cursor, lambda entries: self._pass_on(mirror, entries)
            )
        with self._shared.lock:
            self.touch(run)
            self._known[run] = mirror
        return mirror

    async def _catch_up(self, mirror: Mirror) -> None:
        """Read the entries in Redis that the mirror lacks; repeats from the reader are dropped."""
        key, after, full = self._stream(mirror.run), mirror.cursor, True
        while full:
            seq, n = split_id(after)
            # `n + 1`: XRANGE includes the id that it starts at, and that entry is here already
            page = await self._link.ask("XRANGE", key, f"{seq}-{n + 1}", "+", "COUNT", PAGE)
            if isinstance(page, Refusal):
                raise UsageError(f"The run {mirror.run[:100]!r} cannot be read: {page.text}")
            self._pass_on(mirror, page)
            after, full = page[-1][0].decode() if page else after, len(page) == PAGE

    def _update_controls(self, mirror: Mirror, about: Published) -> None:
        """Set the newest info of a run, and the controls that its publisher offers."""
        mirror.about = about
        offered = about.info.controls if self._control.key else ()
        control, on_loop = self._control, self._on_loop
        functions: dict[str, Callable[..., Any]] = {
            "cancel": lambda: on_loop(control.cancel(mirror)),
            "approve": lambda call, **answer: on_loop(control.approve(mirror, call, **answer)),
        }
        mirror.cancel = functions["cancel"] if "cancel" in offered else None
        mirror.approve = functions["approve"] if "approve" in offered else None

    def _pass_on(self, mirror: Mirror, entries: list[Any]) -> None:
        """Pass entries of Redis on to a mirror; stop following a run that has ended."""
        decoded = [entry_of(number, fields or [], mirror.run) for number, fields in entries]
        mirror.take_in([entry for entry in decoded if entry is not None])
        if mirror.ended:
            self._reader.leave(self._stream(mirror.run))

    def _stream(self, run: str) -> str:
        return self._link.address.key("run", run, "events")
