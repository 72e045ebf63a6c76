"""The index of runs in Redis: their ids in order, and the published info of each.

Why: a server can list the runs without reading their streams. A counter in Redis orders the ids,
because the clocks of machines differ. Other programs may write to Redis: an info that cannot be
read hides only its own run.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...errors import UsageError
from ..channel import Info
from .link import Command, Link
from .mirror import Published

AWAY = "away"  # the status of a run whose publisher is silent
HEARD = 30  # seconds for which a sign of life counts
LARGEST = 64 << 10  # bytes of an info
LONGEST = 500  # characters of a run's id
MOST = 5_000  # the most runs that are read at once; other programs may add any number
_decoder = msgspec.json.Decoder(Published)


class Index:
    """The index in one Redis. Methods that return a Command leave it to the caller to send it."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._key = link.address.key

    def make_info_commands(self, run: str, published: Published, seconds: int) -> list[Command]:
        """Return the commands that store a run's info for `seconds`, and a sign of life."""
        info = ("SET", self._key("run", run, "info"), msgspec.json.encode(published))
        return [info, *self.make_beat_commands(run, seconds)]

    def make_beat_commands(self, run: str, seconds: int) -> list[Command]:
        """Return the commands that store a publisher's sign of life and renew the run's info."""
        beat = ("SET", self._key("run", run, "alive"), b"1", "EX", HEARD)
        return [beat, ("EXPIRE", self._key("run", run, "info"), seconds)]

    def make_away_command(self, run: str) -> Command:
        """Return the command that removes the sign of life of a run's publisher."""
        return ("UNLINK", self._key("run", run, "alive"))

    async def add_run(self, run: str, most: int) -> None:
        """Add a run as the newest, unless the index has it; keep at most `most` ended runs.

        Raises HubAway.
        """
        runs = self._key("runs")
        if await self._link.send("ZSCORE", runs, run) is None:
            number = await self._link.send("INCR", self._key("count"))
            await self._link.send("ZADD", runs, "NX", number, run)
            await self._remove_oldest(run, most)

    async def _remove_oldest(self, new: str, most: int) -> None:
        """Remove the oldest ended runs; at most `most` stay, `new` included."""
        known = await self._read_range(0, MOST - 1)
        # a run without an info counts as ended: its info has expired, or cannot be read
        going_on = {new, *(r for r, entry in known if entry and entry.info.status == "running")}
        ended = [r for r, _ in known if r not in going_on]
        # one more than the limit requires, to leave room for `new`
        removed = ended[: max(len(ended) - most + 1, 0)]
        if not removed:
            return
        commands: list[Command] = [("ZREM", self._key("runs"), *removed)]
        for run in removed:
            keys = (self._key("run", run, what) for what in ("events", "info", "alive", "control"))
            commands.append(("UNLINK", *keys))
        await self._link.send_all(commands)

    async def _read_range(self, first: int, last: int) -> list[tuple[str, Published | None]]:
        """Return (run, its info or None) for a range of positions in the index."""
        reply = await self._link.send("ZRANGE", self._key("runs"), first, last)
        ids = reply if isinstance(reply, list) else []
        names = [name.decode("utf-8", "replace") for name in ids]
        infos = await self._link.send_all([self._make_read_command(name) for name in names])
        return [(n, _decode_info(data)) for n, data in zip(names, infos, strict=True)]

    def _make_read_command(self, run: str) -> Command:
        """Return the command that reads a run's info, up to one byte more than allowed."""
        return ("GETRANGE", self._key("run", run, "info"), 0, LARGEST)

    async def list_runs(self) -> list[Published]:
        """Return the info of the newest `MOST` runs, in their order. Raises HubAway."""
        entries = await self._read_range(-MOST, -1)
        known = [run for name, run in entries if run is not None and run.info.run == name]
        beats = await self._link.send_all(
            [("EXISTS", self._key("run", run.info.run, "alive")) for run in known]
        )
        return [_mark_if_away(run, beat) for run, beat in zip(known, beats, strict=True)]

    async def find_run(self, run: str) -> Published:
        """Return the info of a run. Raises UsageError if the index lacks it, HubAway."""
        if len(run) > LONGEST:
            raise UsageError(f"There is no run {run[:100]!r} here.")
        data, beat = await self._link.send_all(
            [self._make_read_command(run), ("EXISTS", self._key("run", run, "alive"))]
        )
        if (published := _decode_info(data)) is None or published.info.run != run:
            raise UsageError(f"There is no run {run[:100]!r} here.")
        return _mark_if_away(published, beat)


def _decode_info(data: Any) -> Published | None:
    if not isinstance(data, bytes) or len(data) > LARGEST:
        return None
    try:
        return _decoder.decode(data)
    except (ValueError, RecursionError):  # text that is not UTF-8 is a ValueError
        return None


def _mark_if_away(published: Published, beat: Any) -> Published:
    """Return the info of a run; a running run without a sign of life (`beat`) is `away`."""
    info: Info = published.info
    if info.status != "running" or beat == 1:
        return published
    return msgspec.structs.replace(
        published, info=msgspec.structs.replace(info, status=AWAY, controls=())
    )
