"""The mirrors of other processes' runs: loaded when first requested, then kept up to date.

Why on request: there may be thousands of runs, of which clients read a few. `index` says which runs
there are and what controls their publishers offer, `remote_control` sends the stops and answers.

Rule: if the kernel of a run is gone, its readers' streams break off, as if the server had died:
clients reconnect, and give up in the end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from ...errors import HubAway, UsageError
from ..channel import Shared
from .entries import decode_entry, split_id
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
        self._away: set[str] = set()  # runs whose kernel was silent at the last maintenance
        self._loading: dict[str, asyncio.Future[Mirror]] = {}

    def get_mirror(self, run: str) -> Mirror | None:
        """Return the mirror of a run, None if the run has none."""
        return self._known.get(run)

    def keep_mirror(self, run: str) -> None:
        """Keep the mirror of a run for another `IDLE` seconds."""
        self._last_read[run] = time.monotonic()

    async def fetch_mirror(self, run: str) -> Mirror:
        """Return the mirror of a run, up to date with Redis. Raises UsageError, HubAway.

        Why up to date: a client may have read newer entries from another server.
        """
        mirror = self._known.get(run)
        if mirror is None:
            if run not in self._loading:
                self._loading[run] = asyncio.ensure_future(self._load(run))
                self._loading[run].add_done_callback(lambda _: self._loading.pop(run, None))
            return await asyncio.shield(self._loading[run])
        self.keep_mirror(run)
        if not mirror.ended:
            with suppress(HubAway, UsageError):  # then the mirror is served as it is
                self._update_controls(mirror, await self._index.find_run(run))
                await self._read_missing(mirror)
        return mirror

    async def maintain_mirrors(
        self, count_readers: Callable[[str], int], end_readers: Callable[[str], None]
    ) -> None:
        """Notify kernels that their runs have readers, and drop mirrors that have none.

        `end_readers` ends the subscriptions to a run; it is called if the run's kernel is away in
        two calls of this method in a row. Raises HubAway.
        """
        was_away, self._away = self._away, set()
        for run, mirror in list(self._known.items()):
            if not count_readers(run):
                self._drop_if_idle(run, count_readers)
            elif not mirror.ended:
                with suppress(UsageError):  # a fault of one run must not stop the others
                    await self._control.announce_readers(run, count_readers)
                    self._update_controls(mirror, await self._index.find_run(run))
                if mirror.about.info.status == AWAY:
                    self._away.add(run)
                    if run in was_away:
                        end_readers(run)

    def _drop_if_idle(self, run: str, count_readers: Callable[[str], int]) -> None:
        """Drop a mirror that was last read more than `IDLE` seconds ago."""
        if time.monotonic() - self._last_read[run] <= IDLE:
            return
        with self._shared.lock:
            if not count_readers(run):  # nobody has subscribed meanwhile
                self._reader.leave(self._key(run))
                del self._known[run]
                del self._last_read[run]

    async def _load(self, run: str) -> Mirror:
        """Read a run from its beginning, and follow it if it goes on."""
        about = await self._index.find_run(run)
        mirror = Mirror(self._shared, run, about)
        self._update_controls(mirror, about)
        await self._read_missing(mirror)
        if not mirror.ended:
            await self._reader.follow(
                self._key(run), mirror.cursor, lambda entries: self._add_entries(mirror, entries)
            )
        with self._shared.lock:
            self.keep_mirror(run)
            self._known[run] = mirror
        return mirror

    async def _read_missing(self, mirror: Mirror) -> None:
        """Read the entries in Redis that the mirror lacks; repeats from the reader are dropped."""
        key, after, full = self._key(mirror.run), mirror.cursor, True
        while full:
            seq, n = split_id(after)
            # `n + 1`: XRANGE includes the id that it starts at, and that entry is here already
            page = await self._link.send("XRANGE", key, f"{seq}-{n + 1}", "+", "COUNT", PAGE)
            if isinstance(page, Refusal):
                raise UsageError(f"The run {mirror.run[:100]!r} cannot be read: {page.text}")
            self._add_entries(mirror, page)
            after, full = page[-1][0].decode() if page else after, len(page) == PAGE

    def _update_controls(self, mirror: Mirror, about: Published) -> None:
        """Set the newest info of a run, and the controls that its publisher offers."""
        mirror.about = about
        offered = about.info.controls if self._control.key else ()
        control, on_loop = self._control, self._on_loop
        mirror.cancel = (lambda: on_loop(control.cancel(mirror))) if "cancel" in offered else None

        def approve(call: str, **answer: Any) -> Any:
            return on_loop(control.approve(mirror, call, **answer))

        mirror.approve = approve if "approve" in offered else None

    def _add_entries(self, mirror: Mirror, entries: list[Any]) -> None:
        """Pass entries of Redis on to a mirror; stop following a run that has ended."""
        decoded = [decode_entry(number, fields or [], mirror.run) for number, fields in entries]
        mirror.add_entries([entry for entry in decoded if entry is not None])
        if mirror.ended:
            self._reader.leave(self._key(mirror.run))

    def _key(self, run: str) -> str:
        return self._link.address.key("run", run, "events")
