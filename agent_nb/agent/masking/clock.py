"""Find dates and times in a text, and decide whether they are the time of a run.

Why: a result that states the time of its run differs in every run and still means the same, but a
date in the data must not differ. So `masks` compares values in pairs: each must be the time of its
own run.

Rules
- A value means a stretch of time: a second, a minute ("12:30") or a day ("2026-11-27"). It is
  near a run if that stretch touches the run, or the `TOLERANCE` seconds before or after it.
- A value with an offset or UTC is read in that zone, any other in UTC and in the run's local time.
  Other letters of a zone, such as CET, and the `tzinfo` of a `datetime` are ignored.
- Digits such as 03/04/2026 are read as day first and as month first; a single fit is enough.
- `_FORMS` lists the longer forms first: of values that overlap, `masks` takes the first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

TOLERANCE = 5.0  # seconds before and after a run that still count as its time
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAY = 86_400  # seconds
# The pieces of `_FORMS`. Their named groups become `Clock.parts`: `am_pm` a half of the day,
# `month_number` the month as digits, `arguments` those of a `datetime` call, `zone_letters` such as
# CET.
_ISO = r"(?P<date>\d{4}-\d\d-\d\d)"
_TIME = r"(?P<time>\d{1,2}:\d\d(?::\d\d)?)(?P<fraction>[.,]\d+)?(?: ?(?P<am_pm>[AaPp]\.?[Mm])\b)?"
_OFFSET = r"(?: ?(?P<offset>Z|UTC|GMT|[+-]\d\d:?\d\d)\b| (?P<zone_letters>[A-Z]{1,4}T)\b)?"
_MONTH_NAME = rf"(?P<month>{'|'.join(_MONTHS)})[a-z]*"
_WEEKDAY = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?"
_MONTH_DAY_YEAR = rf"{_WEEKDAY}{_MONTH_NAME} (?P<day>\d{{1,2}}), (?P<year>\d{{4}})"
_DAY_MONTH_YEAR = rf"{_WEEKDAY}(?P<day>\d{{1,2}})[ -]{_MONTH_NAME}[ -](?P<year>\d{{4}})"
_NUMERIC_DATES = (
    # 27.11.2026, 27/11/26; `_list_days` also reads the month first
    r"(?P<day>\d\d?)(?P<separator>[./-])(?P<month_number>\d\d?)(?P=separator)(?P<year>\d{4}|\d\d)",
    # 2026/11/27
    r"(?P<year>\d{4})(?P<separator>[./])(?P<month_number>\d\d?)(?P=separator)(?P<day>\d\d?)",
)
_STRUCT_TIME = (
    r"tm_year=(?P<year>\d{4}), tm_mon=(?P<month_number>\d+), tm_mday=(?P<day>\d+), "
    r"tm_hour=(?P<hour>\d+), tm_min=(?P<minute>\d+), tm_sec=(?P<second>\d+), "
    r"tm_wday=\d, tm_yday=\d+, tm_isdst=-?\d"
)
# Each form with an example. The pattern around them keeps a form from matching inside a longer
# number, version or time.
_FORMS = tuple(
    re.compile(rf"(?<![\d.:]){form}(?![\d:]|\.\d)")
    for form in (
        rf"{_ISO}[T ]{_TIME}{_OFFSET}",  # 2026-11-27T12:30:05.25+01:00
        r"(?P<datetime_digits>\d{8}[T_-]?\d{6})(?P<offset>Z)?",  # 20261127T123005Z
        # Fri Nov 27 12:30:05 CET 2026, as `date` and `time.ctime` write it
        rf"{_WEEKDAY}{_MONTH_NAME} +(?P<day>\d{{1,2}}) {_TIME}(?: [A-Z]{{3,5}})? (?P<year>\d{{4}})",
        *(
            rf"{day},? {_TIME}{_OFFSET}"  # 27 Nov 2026, 12:30 · 11/27/2026 12:30 PM
            for day in (_DAY_MONTH_YEAR, _MONTH_DAY_YEAR, *_NUMERIC_DATES)
        ),
        rf"{_WEEKDAY}{_MONTH_NAME} +(?P<day>\d{{1,2}}) +{_TIME}",  # Nov 27 12:30: a new file in `ls -l`
        rf"{_MONTH_NAME} +(?P<day>\d{{1,2}})  (?P<year>\d{{4}})",  # Nov 27  2025: an older one
        # datetime.datetime(2026, 11, 27, 12, 30, tzinfo=datetime.timezone.utc)
        r"datetime\.datetime\((?P<arguments>\d{4}(?:, \d+){4,6})(?P<tzinfo>, tzinfo=[^()]*(?:\([^()]*\))?[^()]*)?\)",
        r"datetime\.date\((?P<arguments>\d{4}, \d+, \d+)\)",
        rf"time\.struct_time\({_STRUCT_TIME}\)",
        rf"{_ISO}",
        _MONTH_DAY_YEAR,
        _DAY_MONTH_YEAR,
        *_NUMERIC_DATES,
        rf"{_TIME}{_OFFSET}",  # 12:30, 12:30:05 UTC
        r"(?P<date_digits>(?:19|20)\d{6})",  # 20261127
        # seconds since 1970, perhaps with a fraction; milli-, micro- and nanoseconds
        r"(?P<epoch>[12]\d{18}|[12]\d{15}|[12]\d{12}|[12]\d{9}(?:\.\d+)?)",
    )
)
_EPOCH_UNITS = {10: 1, 13: 1e3, 16: 1e6, 19: 1e9}  # digits of an epoch value -> units in a second
# parts that name a day; a month and day without a year are those of a day in the run
_DAY_PARTS = ("date", "year", "datetime_digits", "date_digits", "arguments")
# parts that one of two values may lack; only `offset` has a meaning here (`_choose_zones`)
_NOT_IN_SHAPE = ("fraction", "tzinfo", "offset", "zone_letters")
Parts = dict[str, str | None]  # name of a group -> its text


class Clock(msgspec.Struct, frozen=True, kw_only=True):
    """A date or time at `start` to `end` of a text.

    `form` is its index in `_FORMS`, `parts` the groups of that pattern (None: not in this value).
    """

    start: int
    end: int
    form: int
    parts: Parts

    @property
    def shape(self) -> tuple[object, ...]:
        """How the value is written: two values can be compared only if their shapes are equal.

        The shape is (form, names of the parts, colons in the time, digits of an epoch value).
        """
        written = {k: v for k, v in self.parts.items() if v and k not in _NOT_IN_SHAPE}
        colons = written.get("time", "").count(":")
        return self.form, tuple(written), colons, len(written.get("epoch", "").partition(".")[0])

    def same_time(self, other: Clock) -> bool:
        """Return whether two values have the same time of day; a bare date has midnight."""
        try:
            return _time_of_day(self.parts) == _time_of_day(other.parts)
        except ValueError:
            return False


def find_clocks(text: str) -> Iterator[Clock]:
    """Yield what may be a date or time, form after form.

    Values may overlap: "12:30" is found in "2026-11-27 12:30" too, after the longer value.
    """
    for number, form in enumerate(_FORMS):
        for match in form.finditer(text):
            yield Clock(start=match.start(), end=match.end(), form=number, parts=match.groupdict())


class Span(msgspec.Struct, frozen=True, dict=True):
    """The time of a run (epoch seconds) and its time zone.

    `zone` is an IANA name, or "" with the `offset` of local time in seconds.
    """

    began: float
    ended: float
    zone: str = ""
    offset: int = 0

    def holds(self, clock: Clock) -> bool:
        """Return whether a value is near this run."""
        return self._is_near(clock.parts)

    def holds_day(self, clock: Clock) -> bool:
        """Return whether a value names a day, and one of this run; its time is ignored."""
        day = {k: v for k, v in clock.parts.items() if k not in ("time", "am_pm", "hour")}
        if arguments := day.get("arguments"):
            day["arguments"] = ", ".join(arguments.split(", ")[:3])
        if digits := day.pop("datetime_digits", None):
            day["date_digits"] = digits[:8]
        names_day = not day.get("epoch") and next(_list_days(day), None) is not None
        return names_day and self._is_near(day)

    def may_have_aged(self, recorded: Clock, fresh: Clock) -> bool:
        """Return whether `ls -l` may have written both values for one file.

        `recorded`: in this run, with the time of a new file ("Nov 27 12:30"). `fresh`: in a replay,
        half a year later, with the year in place of the time ("Nov 27  2026").
        """
        with_time, with_year = recorded.parts, fresh.parts
        same_day = all(with_time.get(part) == with_year.get(part) for part in ("month", "day"))
        only_time = with_time.get("time") and not with_time.get("year")
        if not (same_day and only_time and not with_year.get("time")):
            return False
        try:
            year = datetime.fromtimestamp(self.began, self._local).year
        except (ValueError, OverflowError, OSError):  # a record may hold any number as its time
            return False
        # in a run in January, the file may be from the year before
        return with_year.get("year") in (str(year), str(year - 1))

    def _is_near(self, parts: Parts) -> bool:
        try:
            # the stretch touches the run, or the `TOLERANCE` seconds before or after it
            return any(
                start <= self.ended + TOLERANCE and start + length >= self.began - TOLERANCE
                for start, length in self._list_readings(parts)
            )
        except (ValueError, OverflowError, OSError):
            return False

    @cached_property
    def _local(self) -> tzinfo:
        is_known = is_zone(self.zone)
        return ZoneInfo(self.zone) if is_known else timezone(timedelta(seconds=self.offset))

    def _list_readings(self, parts: Parts) -> Iterator[tuple[float, float]]:
        """Yield the stretches of time that a value may mean: (start in epoch seconds, length)."""
        if epoch := parts.get("epoch"):
            digits = epoch.partition(".")[0]
            yield float(epoch) / _EPOCH_UNITS[len(digits)], 1.0
            return
        named_days, (seconds, length) = list(_list_days(parts)), _time_of_day(parts)
        if not named_days and any(map(parts.get, _DAY_PARTS)):
            return  # a day that does not exist
        for zone in self._choose_zones(parts.get("offset") or ""):
            for day in named_days or self._run_days(parts, zone):
                midnight = datetime(day.year, day.month, day.day, tzinfo=zone)
                yield (midnight + timedelta(seconds=seconds)).timestamp(), length

    def _run_days(self, parts: Parts, zone: tzinfo) -> list[date]:
        """Return the first and last day of the run that a value without a year may mean."""
        days = {datetime.fromtimestamp(t, zone).date() for t in (self.began, self.ended)}
        if month := parts.get("month"):
            month_day = _MONTHS.index(month) + 1, int(parts["day"] or 0)
            days = {day for day in days if (day.month, day.day) == month_day}
        return sorted(days)

    def _choose_zones(self, offset: str) -> list[tzinfo]:
        """Return the time zones in which a value with this offset ("": none) may be meant."""
        if not offset:
            return [UTC, self._local]
        if not offset[-1].isdigit():  # Z, UTC, GMT
            return [UTC]
        sign, hours, minutes = offset[0], int(offset[1:3]), int(offset[-2:])
        return [timezone((1 if sign == "+" else -1) * timedelta(hours=hours, minutes=minutes))]


def _list_days(parts: Parts) -> Iterator[date]:
    """Yield the days that a value may name; days that do not exist are left out."""
    texts = (parts.get("date"), (parts.get("datetime_digits") or "")[:8], parts.get("date_digits"))
    dates: list[Sequence[str]] = []  # year, month, day
    if text := next(filter(None, texts), None):
        digits = text.replace("-", "")
        dates = [(digits[:4], digits[4:6], digits[6:])]
    elif text := parts.get("arguments"):
        dates = [text.split(", ")[:3]]
    elif year := parts.get("year"):
        full, day = f"20{year}" if len(year) == 2 else year, parts.get("day") or ""
        if name := parts.get("month"):
            dates = [(full, str(_MONTHS.index(name) + 1), day)]
        else:
            number = parts.get("month_number") or ""
            dates = [(full, number, day), (full, day, number)]
    for year_month_day in dates:
        with suppress(ValueError, OverflowError):  # a number may have any length
            yield date(*map(int, year_month_day))


def _time_of_day(parts: Parts) -> tuple[float, float]:
    """Return (seconds since midnight, length of the smallest unit written: second, minute, day).

    Raises ValueError for a time that does not exist.
    """
    if text := parts.get("datetime_digits"):
        return _count_seconds(text[-6:-4], text[-4:-2], text[-2:]), 1.0
    if text := parts.get("arguments"):
        numbers = text.split(", ")[3:]  # none, hour and minute, or with seconds and fractions too
        length = {0: _DAY, 2: 60.0}.get(len(numbers), 1.0)
        return _count_seconds(*numbers[:3]), length
    if hour := parts.get("hour"):
        return _count_seconds(hour, parts.get("minute") or "", parts.get("second") or ""), 1.0
    text = parts.get("time")
    if text is None:
        return 0.0, _DAY
    hours, *smaller = text.split(":")
    if am_pm := parts.get("am_pm"):
        hours = str(int(hours) % 12 + (12 if am_pm[0] in "pP" else 0))
    return _count_seconds(hours, *smaller), 1.0 if len(smaller) > 1 else 60.0


def _count_seconds(*parts: str) -> float:
    """Return the seconds of hours, minutes, seconds; the missing ones are 0. Raises ValueError."""
    hours, minutes, seconds = (*map(int, parts), 0, 0, 0)[:3]
    if hours > 23 or minutes > 59 or seconds > 60:  # 60: a leap second
        raise ValueError("not a time of day")
    return hours * 3600.0 + minutes * 60.0 + seconds


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
