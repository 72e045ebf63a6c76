"""The one blocking read of a process: all streams that it follows, in one `XREAD BLOCK`.

Rules
- Each stream has a cursor and a function that takes its entries; after an outage reading goes on at
  the cursors.
- The hub's own inbox is always read. A new stream interrupts the waiting by an entry there.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ...errors import HubAway
from .link import FIRST, LOG, Link

COUNT = 128  # entries of one stream at once
BLOCK = 5.0  # s
KEPT = 3600  # s that an inbox nobody reads stays
Deliver = Callable[[list[Any]], None]


class Reader:
    """Reads streams and passes on their entries. All methods are called on the loop of the link."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.inbox = link.address.key("inbox", secrets.token_hex(8))
        self._cursors: dict[str, str] = {self.inbox: "0-0"}
        self._deliver: dict[str, Deliver] = {}

    def answers(self, deliver: Deliver) -> None:
        """Hand the messages in the inbox to `deliver`."""
        self._deliver[self.inbox] = deliver

    async def follow(self, key: str, after: str, deliver: Deliver) -> None:
        """Read a stream after an id from now on."""
        self._cursors[key], self._deliver[key] = after, deliver
        wake = ("XADD", self.inbox, "MAXLEN", "~", 1000, "*", b"w", b"1")
        with suppress(HubAway):  # the reading waits no longer either
            await self._link.pipe([wake, ("EXPIRE", self.inbox, KEPT)])

    def leave(self, key: str) -> None:
        """Read a stream no longer."""
        self._cursors.pop(key, None)
        self._deliver.pop(key, None)

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            try:
                found = await self._link.read(dict(self._cursors), count=COUNT, block=BLOCK)
            except HubAway:
                await asyncio.sleep(FIRST)
                await self._link.returned()
                await self._drop_other_kinds()
                continue
            for key, entries in found:
                self._pass_on(key, entries)
            await asyncio.sleep(0)

    async def _drop_other_kinds(self) -> None:
        """Stop reading keys that hold no stream: one of them makes every XREAD fail."""
        keys = list(self._cursors)
        with suppress(HubAway):
            kinds = await self._link.pipe([("TYPE", key) for key in keys])
            for key, kind in zip(keys, kinds, strict=True):
                if kind not in (b"stream", b"none"):
                    LOG.warning("%s is not a stream and is read no longer", key)
                    self.leave(key)

    def _pass_on(self, key: str, entries: list[Any]) -> None:
        if key not in self._cursors or not entries:
            return
        self._cursors[key] = entries[-1][0].decode()
        try:
            self._deliver.get(key, _drop)(entries)
        except Exception:  # one stream's fault must not stop the others
            LOG.exception("entries of %s could not be used", key)


def _drop(_entries: list[Any]) -> None:
    """Take what nobody waits for."""
