"""Follow all streams of a process with one blocking read, `XREAD BLOCK`.

Why one: each blocking read occupies a connection. The hub's own inbox is always among the streams:
`follow` adds an entry there, which ends the current wait, so that the next read includes a new one.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ...errors import HubAway
from .link import FIRST_WAIT, LOG, Link

MOST_ENTRIES = 128  # entries of one stream at once
LONGEST_READ = 5.0  # s that a read waits for an entry
INBOX_LIFETIME = 3600  # s after its latest entry
Deliver = Callable[[list[Any]], None]


class Reader:
    """Reads streams and passes on their entries. All methods are called on the loop of the link."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.inbox = link.address.key("inbox", secrets.token_hex(8))
        self._cursors: dict[str, str] = {self.inbox: "0-0"}
        self._receivers: dict[str, Deliver] = {}  # key of a stream -> what takes its entries

    def deliver_inbox_to(self, deliver: Deliver) -> None:
        """Pass the messages in the inbox to `deliver`."""
        self._receivers[self.inbox] = deliver

    async def follow(self, key: str, after: str, deliver: Deliver) -> None:
        """Begin to read a stream after the id `after`; its entries go to `deliver`."""
        self._cursors[key], self._receivers[key] = after, deliver
        with suppress(HubAway):  # then the blocking read has ended too
            await self._link.add_message(self.inbox, [b"w", b"1"], INBOX_LIFETIME)

    def leave(self, key: str) -> None:
        """Stop reading a stream."""
        self._cursors.pop(key, None)
        self._receivers.pop(key, None)

    async def run(self) -> None:
        """Read until cancelled."""
        while True:
            try:
                streams = await self._link.read_streams(
                    dict(self._cursors), count=MOST_ENTRIES, block=LONGEST_READ
                )
            except HubAway:
                await asyncio.sleep(FIRST_WAIT)
                await self._link.wait_until_back()
                await self._drop_other_kinds()
                continue
            for key, entries in streams:
                self._deliver_entries(key, entries)
            await asyncio.sleep(0)  # other tasks run even if every read returns at once

    async def _drop_other_kinds(self) -> None:
        """Stop reading keys that do not hold a stream: a single one makes every XREAD fail."""
        keys = list(self._cursors)
        with suppress(HubAway):
            kinds = await self._link.send_all([("TYPE", key) for key in keys])
            for key, kind in zip(keys, kinds, strict=True):
                if kind not in (b"stream", b"none"):
                    LOG.warning("%s is not a stream and is read no longer", key)
                    self.leave(key)

    def _deliver_entries(self, key: str, entries: list[Any]) -> None:
        if key not in self._cursors or not entries:
            return
        self._cursors[key] = entries[-1][0].decode()
        deliver = self._receivers.get(key)
        if deliver is None:  # an inbox that nobody reads yet
            return
        try:
            deliver(entries)
        except Exception:  # one stream's fault must not stop the others
            LOG.exception("entries of %s could not be used", key)
