"""Publish the runs of this process to Redis: each entry once, in order, while Redis answers.

Why: a run never waits for Redis, so the publisher compares again and again what the run has with
what Redis has.

Rules
- Entries wait in the run's channel, whose buffer is bounded; the publisher holds none.
- After an outage each run continues after the newest entry in Redis. Redis may also restart
  unnoticed, so each batch checks that the last entry is still there.
- If Redis refuses the id of an entry, the entry in Redis decides: an equal one counts as published.
- A run is no longer published if Redis has a different entry, or is ahead of the run: then another
  run or program wrote to the stream. Any other refusal or fault ends its publishing, too.
- Of a run's deltas only the newest `keep` stay, and none for long after its end; its keys expire.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Collection
from typing import Any

import msgspec

from ...errors import HubAway
from ...events import Position
from ..channel import Channel, Entry, Shared
from .entries import LARGEST, encode_entry, split_id, stream_id
from .index import Index
from .link import FIRST_WAIT, LOG, LONGEST_WAIT, Command, Link, Refusal
from .mirror import Published

BATCH_ENTRIES = 256  # entries of a batch, at most
AT_ONCE = 8  # runs that are published concurrently
BATCH_BYTES = 4 << 20  # bytes of a batch, about


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


class Outgoing(msgspec.Struct, eq=False):
    """The state of publishing one run."""

    channel: Channel
    position: Position = Position()  # of the newest entry that Redis has
    listed: bool = False  # the index has the run
    fault: str = ""  # the reason if publishing has stopped
    # stream ids of the deltas in Redis, the oldest first
    deltas: deque[str] = msgspec.field(default_factory=deque)
    ended: float = 0.0  # when its end was published (monotonic s; 0: not yet)

    def back_to(self, top: tuple[int, int]) -> None:
        """Continue after `top`, the newest (seq, n) in Redis, if Redis lost later entries."""
        seq, n = top
        newest = Position(seq, self.channel.epoch if n else 0, n)
        self.position = min(self.position, newest)


class Publisher:
    """Publishes channels. `add`, `notify` and `keep_only` may be called from any thread."""

    def __init__(self, link: Link, index: Index, shared: Shared, limits: Limits, keep: int) -> None:
        self._link, self._index, self._shared = link, index, shared
        self._limits = limits
        self._keep = max(keep, 1)  # at least the newest stays, to show whether Redis lost entries
        self._runs: dict[str, Outgoing] = {}
        self._due: set[str] = set()
        self._sent_count = 0
        self._news = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle = asyncio.Event()

    def add(self, channel: Channel) -> None:
        """Publish a channel from its beginning."""
        self._runs[channel.run] = Outgoing(channel)
        self.notify(channel.run)

    def keep_only(self, runs: Collection[str]) -> None:
        """Stop publishing all runs but `runs`; the entries of the others stay in Redis."""
        for run in set(self._runs) - set(runs):
            self._runs.pop(run, None)

    def notify(self, run: str) -> None:
        """Publish the new entries of a run soon."""
        if run in self._due or run not in self._runs:
            return
        self._due.add(run)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._news.set)

    def faults(self) -> dict[str, str]:
        """Return run -> the reason why it is no longer published."""
        return {run: out.fault for run, out in list(self._runs.items()) if out.fault}

    async def run(self) -> None:
        """Publish until cancelled."""
        self._loop = asyncio.get_running_loop()
        self._due.update(self._runs)
        self._news.set()
        wait = FIRST_WAIT
        while True:
            await self._news.wait()
            self._news.clear()
            self._idle.clear()
            try:
                while self._due:
                    await self._publish_round()
                wait = FIRST_WAIT
            except HubAway:
                await asyncio.sleep(wait)
                wait = min(wait * 2, LONGEST_WAIT)
                await self._resume()
            if not self._due:
                self._idle.set()

    async def drain(self, patience: float) -> bool:
        """Wait until all entries are published and return True.

        After `patience` seconds in which nothing was published, give up and return False.
        """
        count, since = self._sent_count, time.monotonic()
        while self._due or not self._idle.is_set():
            if self._sent_count != count:
                count, since = self._sent_count, time.monotonic()
            if time.monotonic() - since > patience:
                return False
            await asyncio.sleep(0.002)
        return True

    async def tend(self) -> None:
        """Delete old deltas; of running runs also renew expiries and publish deleted streams again.

        Call it every few seconds. Raises HubAway.
        """
        now = time.monotonic()
        for run, out in list(self._runs.items()):
            if out.ended and out.deltas and now - out.ended > self._limits.deltas:
                await self._delete_deltas(out, 0)
            if not out.listed or out.channel.ended:
                continue
            lifetime = self._limits.lifetime
            beat = self._index.make_beat_commands(run, lifetime)
            renewed, *_ = await self._link.pipe([("EXPIRE", self._key(run), lifetime), *beat])
            # the key is gone, by a restart or by hand: publish the run from its beginning
            if renewed == 0 and out.position > Position():
                out.back_to((0, 0))
                out.listed = False
                self.notify(run)

    async def leave(self) -> None:
        """Mark the running runs as without a publisher. Raises HubAway."""
        running = [run for run, out in list(self._runs.items()) if not out.channel.ended]
        await self._link.pipe([self._index.make_leave_command(run) for run in running])

    async def _publish_round(self) -> None:
        """Publish a batch of every run with new entries, `AT_ONCE` runs at a time."""
        runs = list(self._due)
        self._due.difference_update(run for run in runs if run not in self._runs)
        due = [self._runs[run] for run in runs if run in self._runs]
        for start in range(0, len(due), AT_ONCE):
            group = due[start : start + AT_ONCE]
            outcomes = await asyncio.gather(
                *map(self._publish_batch, group), return_exceptions=True
            )
            for fault in outcomes:
                if isinstance(fault, BaseException):
                    raise fault

    async def _publish_batch(self, out: Outgoing) -> None:
        """Publish a batch of one run; a fault ends the publishing of this run. Raises HubAway."""
        self._due.discard(out.channel.run)
        try:
            if not out.fault and await self._send(out):
                self._due.add(out.channel.run)
        except HubAway:
            raise
        except Exception as fault:  # a fault of one run must not stop the others
            self._give_up(out, f"{type(fault).__name__}: {fault}")

    def _give_up(self, out: Outgoing, why: str) -> None:
        """Stop publishing a run, and log why."""
        out.fault = why
        address = self._link.address.shown
        LOG.warning("run %s is not published at %s: %s", out.channel.run, address, why)

    async def _send(self, out: Outgoing) -> bool:
        """Publish a batch of one run; return whether there may be more."""
        with self._shared.lock:
            # without the gap: a mirror finds the hole in the ids by itself
            unsent, _ = out.channel.read(out.position, BATCH_ENTRIES)
        if not unsent:
            if not out.listed:
                await self._list_run(out)
            return False
        entries, commands = self._make_batch(out, unsent)
        last, *replies = await self._link.pipe(commands, whole=True)
        if out.position > Position() and last == []:  # Redis restarted, with older data or none
            await self._link.ask("DEL", self._key(out.channel.run))
            out.back_to((0, 0))
            out.listed = False
            return True
        refused = [e for e, r in zip(entries, replies, strict=True) if isinstance(r, Refusal)]
        if refused and (why := await self._find_conflict(out, refused, replies)):
            self._give_up(out, why)
            return False
        out.position = entries[-1].position
        self._sent_count += len(entries)
        out.deltas.extend(stream_id(e) for e in entries if e.n)
        if not out.listed or not all(e.n for e in entries):
            await self._list_run(out)
        if len(out.deltas) > self._keep * 5 // 4:  # a quarter at once, to send few commands
            await self._delete_deltas(out, self._keep)
        if out.channel.ended and out.position == out.channel.newest:
            out.ended = out.ended or time.monotonic()
        return True

    async def _list_run(self, out: Outgoing) -> None:
        """Store the info of a run, and add the run to the index."""
        await self._link.pipe(self._make_info_commands(out.channel))
        if not out.listed:
            await self._index.add(out.channel.run, self._limits.runs)
            out.listed = True

    def _make_batch(self, out: Outgoing, entries: list[Entry]) -> tuple[list[Entry], list[Command]]:
        """Return the entries of a batch, and the commands that publish it as one transaction.

        The first command reads whether the last published entry is still in Redis, the others add
        the batch. They add nothing if the stream is gone: no stream begins in the middle of a run.
        """
        key, (seq, _, n) = self._key(out.channel.run), out.position
        existing = ("NOMKSTREAM",) if out.position > Position() else ()
        most = ("MAXLEN", "~", self._limits.entries)
        commands: list[Command] = []
        size = 0
        for entry in entries:
            fields = encode_entry(entry, self._limits.largest)
            size += len(fields[1])
            if commands and size > BATCH_BYTES:
                break
            commands.append(("XADD", key, *existing, *most, stream_id(entry), *fields))
        last: Command = ("XREVRANGE", key, "+", f"{seq}-{n}", "COUNT", 1)
        return entries[: len(commands)], [last, *commands]

    async def _find_conflict(self, out: Outgoing, refused: list[Entry], replies: list[Any]) -> str:
        """Return why a run cannot be published; "" if Redis has, or had, the refused events."""
        key = self._key(out.channel.run)
        stored = [e for e in refused if not e.n]  # the complete event makes up for a refused delta
        hits = await self._link.pipe([("XRANGE", key, stream_id(e), stream_id(e)) for e in stored])
        for entry, hit in zip(stored, hits, strict=True):
            if hit == []:  # trimmed
                continue
            fields = encode_entry(entry, self._limits.largest)
            if not isinstance(hit, list) or hit[0][1] != fields:
                refusal = next((r.text for r in replies if isinstance(r, Refusal)), "")
                reason = "another run has this id" if "equal or smaller" in refusal else refusal
                return f"event {entry.seq} is refused: {reason}"
        if [] in hits and await self._is_ahead(out):
            return "its stream has entries that the run has not come to"
        return ""

    async def _is_ahead(self, out: Outgoing) -> bool:
        """Return whether Redis has entries that the run itself has not produced yet."""
        top = await self._link.ask("XREVRANGE", self._key(out.channel.run), "+", "-", "COUNT", 1)
        seq, _, n = out.channel.newest
        return isinstance(top, list) and bool(top) and split_id(top[0][0]) > (seq, n)

    async def _delete_deltas(self, out: Outgoing, keep: int) -> None:
        """Delete a run's deltas in Redis, except the newest `keep`."""
        key = self._key(out.channel.run)
        while len(out.deltas) > keep:
            batch = [out.deltas.popleft() for _ in range(min(len(out.deltas) - keep, 500))]
            await self._link.ask("XDEL", key, *batch)

    async def _resume(self) -> None:
        """Wait until Redis answers; then let each run continue after the newest entry in Redis."""
        while True:
            await self._link.wait_until_back()
            runs = [out for out in list(self._runs.values()) if not self._is_over(out)]
            queries: list[Command] = [
                ("XREVRANGE", self._key(out.channel.run), "+", "-", "COUNT", 1) for out in runs
            ]
            try:
                tops = await self._link.pipe(queries)
            except HubAway:
                continue
            for out, top in zip(runs, tops, strict=True):
                out.back_to(split_id(top[0][0]) if isinstance(top, list) and top else (0, 0))
                out.listed = False
                self._due.add(out.channel.run)
            self._news.set()
            return

    def _is_over(self, out: Outgoing) -> bool:
        expired = out.ended and time.monotonic() - out.ended > self._limits.lifetime
        return bool(out.fault or expired)

    def _make_info_commands(self, channel: Channel) -> list[Command]:
        """Return the commands that store a run's info, and renew the expiry of its stream."""
        with self._shared.lock:
            about = Published(channel.info(), channel.earlier, channel.epoch)
        lifetime = self._limits.lifetime
        commands: list[Command] = [("EXPIRE", self._key(channel.run), lifetime)]
        return [*commands, *self._index.make_info_commands(channel.run, about, lifetime)]

    def _key(self, run: str) -> str:
        return self._link.address.key("run", run, "events")
