"""The index of runs in Redis: which there are, in order, and what is known of each.

Rules
- A sorted set holds the ids, ordered by a counter of Redis: clocks of machines differ. Beyond its
  limit the oldest ended runs go, never one that goes on.
- A run that goes on and whose publisher has not been heard of for `HEARD` seconds is `away`, and
  cannot be controlled.
- What others may write is read with care: an entry that is garbage, or of another run, hides itself
  only.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...errors import UsageError
from ..channel import Info
from .link import Command, Link
from .mirror import Published

AWAY = "away"  # the status
HEARD = 30  # s
LARGEST = 64 << 10  # bytes
LONGEST = 500  # characters of a run's id
MOST = 5_000  # runs that are read at once, however many a stranger adds
_decoder = msgspec.json.Decoder(Published)


class Index:
    """The index at one Redis."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._key = link.address.key

    def about(self, run: str, about: Published, seconds: int) -> list[Command]:
        """Return the commands that write down what is known of a run."""
        info = ("SET", self._key("run", run, "info"), msgspec.json.encode(about))
        return [info, *self.alive(run, seconds)]

    def alive(self, run: str, seconds: int) -> list[Command]:
        """Return the commands that say that the publisher of a run is there."""
        beat = ("SET", self._key("run", run, "alive"), b"1", "EX", HEARD)
        return [beat, ("EXPIRE", self._key("run", run, "info"), seconds)]

    def gone(self, run: str) -> Command:
        """Return the command that says that the publisher of a run is gone."""
        return ("UNLINK", self._key("run", run, "alive"))

    async def add(self, run: str, most: int) -> None:
        """Add a run, as the newest if it is new; beyond `most` ended ones drop the oldest.

        Raises HubAway.
        """
        runs = self._key("runs")
        if await self._link.ask("ZSCORE", runs, run) is None:
            number = await self._link.ask("INCR", self._key("count"))
            await self._link.ask("ZADD", runs, "NX", number, run)
            await self._trim(run, most)

    async def _trim(self, new: str, most: int) -> None:
        known = await self._known(0, MOST - 1)
        ended = [
            r for r, found in known if r != new and (not found or found.info.status != "running")
        ]
        gone = ended[: max(len(ended) - most + 1, 0)]
        commands: list[Command] = [
            (
                "UNLINK",
                *(self._key("run", r, what) for what in ("events", "info", "alive", "control")),
            )
            for r in gone
        ]
        if gone:
            await self._link.pipe([("ZREM", self._key("runs"), *gone), *commands])

    async def _known(self, first: int, last: int) -> list[tuple[str, Published | None]]:
        """Return what is known of the runs at these places of the index."""
        found = await self._link.ask("ZRANGE", self._key("runs"), first, last)
        listed = found if isinstance(found, list) else []
        names = [name.decode("utf-8", "replace") for name in listed]
        about = await self._link.pipe([self._about(name) for name in names])
        return [(n, _read(data)) for n, data in zip(names, about, strict=True)]

    def _about(self, run: str) -> Command:
        """Return the command that reads what is known of a run, and no more than counts."""
        return ("GETRANGE", self._key("run", run, "info"), 0, LARGEST)

    async def listed(self) -> list[Published]:
        """Return what is known of all runs, the newest last. Raises HubAway."""
        listed = await self._known(-MOST, -1)
        known = [run for name, run in listed if run is not None and run.info.run == name]
        beats = await self._link.pipe(
            [("EXISTS", self._key("run", run.info.run, "alive")) for run in known]
        )
        return [_with_presence(run, beat) for run, beat in zip(known, beats, strict=True)]

    async def find(self, run: str) -> Published:
        """Return what is known of a run. Raises UsageError if it is not here, HubAway."""
        if len(run) > LONGEST:
            raise UsageError(f"There is no run {run[:100]!r} here.")
        data, beat = await self._link.pipe(
            [self._about(run), ("EXISTS", self._key("run", run, "alive"))]
        )
        if (published := _read(data)) is None or published.info.run != run:
            raise UsageError(f"There is no run {run[:100]!r} here.")
        return _with_presence(published, beat)


def _read(data: Any) -> Published | None:
    if not isinstance(data, bytes) or len(data) > LARGEST:
        return None
    try:
        return _decoder.decode(data)
    except (ValueError, RecursionError):  # text that is not UTF-8 is a ValueError
        return None


def _with_presence(published: Published, beat: Any) -> Published:
    """Return what is known of a run; without a beat of its publisher it is `away`."""
    info: Info = published.info
    if info.status != "running" or beat == 1:
        return published
    return msgspec.structs.replace(
        published, info=msgspec.structs.replace(info, status=AWAY, controls=())
    )
