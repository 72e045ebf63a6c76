"""Publish the runs of this process to Redis: each entry once, in order, while Redis answers.

Why: a run never waits for Redis, so the publisher compares again and again what the run has with
what Redis has. `outgoing` writes the batches of one run. A fault of one run, or a refusal that
`outgoing` cannot explain, ends only the publishing of that run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection

from ...errors import HubAway
from ..channel import Channel, Shared
from .index import Index
from .link import FIRST_WAIT, LONGEST_WAIT, Link
from .outgoing import Limits, Outgoing

AT_ONCE = 8  # runs that are published concurrently


class Publisher:
    """Publishes channels. `add`, `notify` and `keep_only` may be called from any thread."""

    def __init__(self, link: Link, index: Index, shared: Shared, limits: Limits) -> None:
        self._link, self._index, self._shared, self._limits = link, index, shared, limits
        self._runs: dict[str, Outgoing] = {}
        self._due: set[str] = set()  # runs that may have unpublished entries
        self._batch_count = 0  # published so far; `drain` sees by it whether anything moves
        self._news = asyncio.Event()  # a run has become due
        self._idle = asyncio.Event()  # all is published
        self._loop: asyncio.AbstractEventLoop | None = None  # set by `run`

    def add(self, channel: Channel) -> None:
        """Publish a channel from its beginning."""
        out = Outgoing(channel, self._link, self._index, self._shared, self._limits)
        self._runs[channel.run] = out
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
        count, since = self._batch_count, time.monotonic()
        while self._due or not self._idle.is_set():
            if self._batch_count != count:
                count, since = self._batch_count, time.monotonic()
            if time.monotonic() - since > patience:
                return False
            await asyncio.sleep(0.002)
        return True

    async def maintain_runs(self) -> None:
        """Let each run delete old deltas and renew its expiries. Raises HubAway."""
        for run, out in list(self._runs.items()):
            if await out.maintain_run():
                self.notify(run)

    async def mark_runs_away(self) -> None:
        """Mark the running runs as without a publisher. Raises HubAway."""
        running = [run for run, out in list(self._runs.items()) if not out.channel.ended]
        await self._link.send_all([self._index.make_away_command(run) for run in running])

    async def _publish_round(self) -> None:
        """Publish a batch of every run with new entries, `AT_ONCE` runs at a time."""
        runs = list(self._due)
        self._due.difference_update(run for run in runs if run not in self._runs)
        due = [self._runs[run] for run in runs if run in self._runs]
        for start in range(0, len(due), AT_ONCE):
            group = due[start : start + AT_ONCE]
            # all end before one raises: none may go on beside `_resume`
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
            if not out.fault and await out.send_batch():
                self._batch_count += 1
                self._due.add(out.channel.run)
        except HubAway:
            raise
        except Exception as fault:  # a fault of one run must not stop the others
            out.give_up(f"{type(fault).__name__}: {fault}")

    async def _resume(self) -> None:
        """Wait until Redis answers; then let each run continue after the newest entry in Redis."""
        while True:
            await self._link.wait_until_back()
            runs = [out for out in list(self._runs.values()) if not out.is_over]
            try:
                replies = await self._link.send_all([out.newest_query for out in runs])
            except HubAway:
                continue
            for out, reply in zip(runs, replies, strict=True):
                out.resume(reply)
                self._due.add(out.channel.run)
            self._news.set()
            return
