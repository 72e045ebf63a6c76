"""When and where a run took place: its time, time zone and folders.

`masks` lets two values differ only if each is the time, or a folder, of its own run: a date in the
data must not differ. A value without a zone is read in UTC and in local time; one fit is enough.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import cached_property
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import msgspec

from .durations import DAY
from .folders import Folders, describe_folders

if TYPE_CHECKING:
    from .clock import Clock

TOLERANCE = 5.0  # seconds before and after a run that still count as its time


class Span(msgspec.Struct, frozen=True, dict=True):
    """The time of a run (epoch seconds) and its time zone.

    `zone` is an IANA name, or "" with the `offset` of local time in seconds.
    """

    began: float
    ended: float
    zone: str = ""
    offset: int = 0

    def holds(self, clock: Clock, *, whole_day: bool = False) -> bool:
        """Return whether a value is the time of this run; `whole_day`: whatever its time of day.

        It is if the second, minute or day that it means touches the run, extended by `TOLERANCE`.
        """
        try:
            return any(
                start <= self.ended + TOLERANCE and start + length >= self.began - TOLERANCE
                for start, length in self._list_readings(clock, whole_day=whole_day)
            )
        except (ValueError, OverflowError, OSError):  # a record may hold any number as its time
            return False

    def holds_day(self, clock: Clock) -> bool:
        """Return whether a value names a day with its year, and one of this run."""
        return any(clock.list_days()) and self.holds(clock, whole_day=True)

    def may_have_aged(self, recorded: Clock, fresh: Clock) -> bool:
        """Return whether `ls -l` may have written both values for one file.

        `recorded`: in this run, with the time of a new file ("Nov 27 12:30"). `fresh`: in a replay,
        half a year later, with the year in place of the time ("Nov 27  2026").
        """
        day = recorded.month_and_day
        if day is None or day != fresh.month_and_day:
            return False
        if "time" not in recorded.parts or "year" in recorded.parts or "time" in fresh.parts:
            return False
        try:
            year = datetime.fromtimestamp(self.began, self._local).year
        except (ValueError, OverflowError, OSError):  # as in `holds`
            return False
        # in a run in January, the file may be from the year before
        return fresh.parts.get("year") in (str(year), str(year - 1))

    @cached_property
    def _local(self) -> tzinfo:
        is_known = is_zone(self.zone)
        return ZoneInfo(self.zone) if is_known else timezone(timedelta(seconds=self.offset))

    def _list_readings(self, clock: Clock, *, whole_day: bool) -> Iterator[tuple[float, float]]:
        """Yield the stretches of time that a value may mean: (start in epoch seconds, length)."""
        if clock.epoch is not None:
            yield clock.epoch, 1.0
            return
        seconds, length = (0.0, DAY) if whole_day else clock.read_time()
        named_days = list(clock.list_days())
        for zone in [clock.zone] if clock.zone else [UTC, self._local]:
            # a value with a date that does not exist means no day
            for day in named_days if clock.has_date else self._find_days(clock, zone):
                moment = datetime(day.year, day.month, day.day, tzinfo=zone)
                moment += timedelta(seconds=seconds)
                start, again = moment.timestamp(), moment.replace(fold=1).timestamp()
                # where clocks change, a day has 23 or 25 hours
                next_day = (moment + timedelta(1)).timestamp()
                yield start, next_day - start if length == DAY else length
                if again > start:  # the hour that comes twice; earlier in one that is left out
                    yield again, length

    def _find_days(self, clock: Clock, zone: tzinfo) -> Iterator[date]:
        """Yield the days that touch the run and that a value without a year may mean."""
        touching = self.began - TOLERANCE, self.ended + TOLERANCE
        first, last = (datetime.fromtimestamp(t, zone).date() for t in touching)
        named = clock.month_and_day
        # one year has all names of days
        days = (first + timedelta(n) for n in range(min((last - first).days, 366) + 1))
        return (day for day in days if named in (None, (day.month, day.day)))


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the run that made a result: its time and its folders."""

    span: Span
    folders: Folders = Folders()

    @classmethod
    def read(cls, description: Mapping[str, Any], began: float, ended: float) -> Side:
        """Return the side of a run whose place `describe_place` or a record has described."""
        zone, offset = description.get("zone"), description.get("offset")
        zone = zone if isinstance(zone, str) else ""
        offset = offset if isinstance(offset, int) and abs(offset) < DAY else 0
        folders = Folders(**{name: description.get(name) for name in Folders.__struct_fields__})
        return cls(span=Span(began, ended, zone, offset), folders=folders)


def describe_place(folder: str) -> dict[str, Any]:
    """Return the place of a run in `folder`: its time zone, and its folders (as digests)."""
    zone, offset = read_time_zone()
    return {"zone": zone, "offset": offset, **describe_folders(folder)}


def read_time_zone() -> tuple[str, int]:
    """Return this machine's time zone: IANA name ("" if unknown) and current offset in seconds."""
    configured = os.environ.get("TZ", "").lstrip(":")
    name = configured or os.path.realpath("/etc/localtime").partition("zoneinfo/")[2]
    offset: Any = datetime.now().astimezone().utcoffset()  # an aware time has one
    return name if is_zone(name) else "", int(offset.total_seconds())


def is_zone(name: str) -> bool:
    """Return whether a name is a time zone that this machine knows."""
    try:
        return bool(name) and ZoneInfo(name) is not None
    except (OSError, ValueError, KeyError):  # not a file, an invalid name, or unknown (`JST-9`)
        return False
