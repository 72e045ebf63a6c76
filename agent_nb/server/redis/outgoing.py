"""Publishes one run to Redis: its entries in batches, its info, and how long they stay.

Why apart from `publisher`: that decides when a run is published, this decides what is written.
Redis may restart unnoticed, so each batch checks that the last entry is still there.

Rule: if Redis refuses the id of a stored event, the entry in Redis decides: an equal one, or one
that Redis has trimmed, counts as published. A different one, or one ahead of the run, comes from
another run or program, and ends publishing. A refused delta is passed over.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import msgspec

from ...errors import HubAway
from ...events import Position
from ..channel import Channel, Entry, Shared
from .entries import LARGEST, encode_entry, split_id, stream_id
from .index import Index
from .link import LOG, Command, Link, Refusal
from .mirror import Published

BATCH_ENTRIES = 256  # entries of a batch, at most
BATCH_BYTES = 4 << 20  # bytes of a batch, about
_START = Position()  # before the first entry


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a run Redis keeps, and for how long.

    entries: entries of a stream, about. lifetime: seconds after the last change.
    deltas: seconds that deltas stay after the run's end. runs: ended runs in the index.
    largest: bytes of an entry.
    """

    entries: int = 100_000
    lifetime: int = 24 * 3600
    deltas: float = 60.0
    runs: int = 1000
    largest: int = LARGEST


class Outgoing:
    """Publishes the run of one channel; `fault`: why it no longer does, "" while it does."""

    def __init__(
        self, channel: Channel, link: Link, index: Index, shared: Shared, limits: Limits
    ) -> None:
        self.channel = channel
        self.fault = ""
        self._link, self._index, self._shared, self._limits = link, index, shared, limits
        self._key = link.address.key("run", channel.run, "events")
        # reads the newest entry in Redis, for `resume`
        self.newest_query: Command = ("XREVRANGE", self._key, "+", "-", "COUNT", 1)
        self._position = _START  # of the newest entry that Redis has
        self._is_listed = False  # the index has the run
        self._deltas: deque[str] = deque()  # ids of its deltas in Redis, the oldest first
        self._ended_at = 0.0  # when the run's end was published (monotonic s; 0: not yet)

    @property
    def is_over(self) -> bool:
        """Whether nothing of the run is left to publish or to renew."""
        age = time.monotonic() - self._ended_at
        return bool(self.fault or (self._ended_at and age > self._limits.lifetime))

    def resume(self, reply: Any) -> None:
        """Continue after the newest entry in Redis (the reply to `newest_query`).

        Redis may have lost entries that were published, and the run's place in the index.
        """
        self._go_back(*_newest_id(reply))

    def _go_back(self, seq: int = 0, n: int = 0) -> None:
        """Continue after the entry `seq`-`n`, by default from the beginning."""
        newest = Position(seq, self.channel.epoch if n else 0, n)
        self._position = min(self._position, newest)
        self._is_listed = False
        while self._deltas and split_id(self._deltas[-1]) > (seq, n):
            self._deltas.pop()

    def give_up(self, why: str) -> None:
        """Stop publishing the run, and log why."""
        self.fault = why
        address = self._link.address.shown
        LOG.warning("run %s is not published at %s: %s", self.channel.run, address, why)

    async def send_batch(self) -> bool:
        """Publish the next entries; return whether there may be more. Raises HubAway."""
        with self._shared.lock:
            # a Gap is not published: a mirror finds the hole in the ids by itself
            unsent, _gap = self.channel.read(self._position, BATCH_ENTRIES)
        if not unsent:
            if not self._is_listed:
                await self._list_run()
            return False
        entries, commands = self._make_batch(unsent)
        last, *replies = await self._link.send_all(commands, transaction=True)
        if self._position > _START and last == []:  # Redis restarted, with older data or none
            await self._link.send("DEL", self._key)
            self._go_back()
            return True
        refused = [e for e, r in zip(entries, replies, strict=True) if isinstance(r, Refusal)]
        if refused and (why := await self._find_conflict(refused, replies)):
            self.give_up(why)
            return False
        await self._finish_batch(entries)
        return True

    async def _finish_batch(self, entries: list[Entry]) -> None:
        """Move past entries that Redis has now; update the index and delete surplus deltas."""
        self._position = entries[-1].position
        self._deltas.extend(stream_id(e) for e in entries if e.n)
        if not self._is_listed or not all(e.n for e in entries):
            await self._list_run()
        keep = max(self._shared.keep, 1)  # the newest shows whether Redis lost entries
        if len(self._deltas) > keep * 5 // 4:  # a quarter at once, to send few commands
            await self._delete_deltas(keep)
        if self.channel.ended and self._position == self.channel.newest:
            self._ended_at = self._ended_at or time.monotonic()

    async def maintain_run(self) -> bool:
        """Delete old deltas, and renew the expiries of a running run. Raises HubAway.

        Return whether the stream was lost, so that the run is published again from its beginning.
        """
        age = time.monotonic() - self._ended_at
        if self._ended_at and self._deltas and age > self._limits.deltas:
            await self._delete_deltas(0)
        if not self._is_listed or self.channel.ended:
            return False
        lifetime = self._limits.lifetime
        beat = self._index.make_beat_commands(self.channel.run, lifetime)
        renewed, *_ = await self._link.send_all([("EXPIRE", self._key, lifetime), *beat])
        if renewed != 0 or self._position == _START:
            return False
        self._go_back()  # the key is gone, by a restart or by hand
        return True

    async def _list_run(self) -> None:
        """Store the run's info, renew the expiry of its stream, and add the run to the index."""
        run, lifetime = self.channel.run, self._limits.lifetime
        with self._shared.lock:
            about = Published(self.channel.info(), self.channel.earlier, self.channel.epoch)
        info = self._index.make_info_commands(run, about, lifetime)
        await self._link.send_all([("EXPIRE", self._key, lifetime), *info])
        if not self._is_listed:
            await self._index.add_run(run, self._limits.runs)
            self._is_listed = True

    def _make_batch(self, entries: list[Entry]) -> tuple[list[Entry], list[Command]]:
        """Return the entries of a batch, and the commands that publish it as one transaction.

        The first command reads whether the last published entry is still in Redis, the others add
        the batch. They add nothing if the stream is gone: no stream begins in the middle of a run.
        """
        seq, _, n = self._position
        existing = ("NOMKSTREAM",) if self._position > _START else ()
        most = ("MAXLEN", "~", self._limits.entries)
        commands: list[Command] = []
        size = 0
        for entry in entries:
            fields = encode_entry(entry, self._limits.largest)
            size += len(fields[1])
            if commands and size > BATCH_BYTES:
                break
            commands.append(("XADD", self._key, *existing, *most, stream_id(entry), *fields))
        last: Command = ("XREVRANGE", self._key, "+", f"{seq}-{n}", "COUNT", 1)
        return entries[: len(commands)], [last, *commands]

    async def _find_conflict(self, refused: list[Entry], replies: list[Any]) -> str:
        """Return why the run cannot be published; "" if Redis has, or had, the refused events."""
        stored = [e for e in refused if not e.n]  # the complete event makes up for a refused delta
        hits = await self._link.send_all(
            [("XRANGE", self._key, stream_id(e), stream_id(e)) for e in stored]
        )
        for entry, hit in zip(stored, hits, strict=True):
            if hit == []:  # trimmed
                continue
            fields = encode_entry(entry, self._limits.largest)
            if not isinstance(hit, list) or hit[0][1] != fields:
                refusal = next((r.text for r in replies if isinstance(r, Refusal)), "")
                reason = "another run has this id" if "equal or smaller" in refusal else refusal
                return f"event {entry.seq} is refused: {reason}"
        if [] in hits and await self._is_redis_ahead():
            return "its stream has entries that the run has not come to"
        return ""

    async def _is_redis_ahead(self) -> bool:
        """Return whether Redis has entries that the run itself has not produced yet."""
        seq, _, n = self.channel.newest
        return _newest_id(await self._link.send(*self.newest_query)) > (seq, n)

    async def _delete_deltas(self, keep: int) -> None:
        """Delete the run's deltas in Redis, except the newest `keep`."""
        while len(self._deltas) > keep:
            size = min(len(self._deltas) - keep, 500)  # a command must not become too large
            ids = [self._deltas.popleft() for _ in range(size)]
            try:
                await self._link.send("XDEL", self._key, *ids)
            except HubAway:
                self._deltas.extendleft(reversed(ids))
                raise


def _newest_id(reply: Any) -> tuple[int, int]:
    """Return (seq, n) of the entry in a reply to `newest_query`, (0, 0) if it has none."""
    return split_id(reply[0][0]) if isinstance(reply, list) and reply else (0, 0)
