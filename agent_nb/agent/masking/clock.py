"""Finds dates and times in a text, and reads which days and which time of day they name.

A result that states the time of its run differs in every run and still means the same.

Rules
- A value's zone is the offset or UTC behind it. Other letters of a zone, such as CET, and the
  `tzinfo` of a `datetime` are ignored.
- `_FORMS` lists the longer forms first: of values that overlap, `masks` takes the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, timedelta, timezone

import msgspec

from .durations import DAY

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
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
    # 27.11.2026, 27/11/26; `Clock.list_days` also reads the month first
    r"(?P<day>\d\d?)(?P<separator>[./-])(?P<month_number>\d\d?)(?P=separator)(?P<year>\d{4}|\d\d)",
    # 2026/11/27
    r"(?P<year>\d{4})(?P<separator>[./])(?P<month_number>\d\d?)(?P=separator)(?P<day>\d\d?)",
)
_STRUCT_TIME = (
    r"tm_year=(?P<year>\d{4}), tm_mon=(?P<month_number>\d+), tm_mday=(?P<day>\d+), "
    r"tm_hour=(?P<hour>\d+), tm_min=(?P<minute>\d+), tm_sec=(?P<second>\d+), "
    r"tm_wday=\d, tm_yday=\d+, tm_isdst=-?\d"
)
# Each form with an example. The pattern around them excludes matches in longer numbers.
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
_DAY_PARTS = ("date", "year", "datetime_digits", "date_digits", "arguments")  # they name a day
# parts that one of two values may lack; only `offset` has a meaning here (`Clock.zone`)
_NOT_IN_SHAPE = ("fraction", "tzinfo", "offset", "zone_letters")


class Clock(msgspec.Struct, frozen=True, kw_only=True):
    """A date or time at `start` to `end` of a text.

    `form` is its index in `_FORMS`, `parts` the text of each named group that the value has.
    """

    start: int
    end: int
    form: int
    parts: dict[str, str]

    @property
    def shape(self) -> tuple[object, ...]:
        """How the value is written: two values can be compared only if their shapes are equal.

        The shape is (form, names of the parts, colons in the time, digits of an epoch value).
        """
        names = tuple(name for name in self.parts if name not in _NOT_IN_SHAPE)
        colons = self.parts.get("time", "").count(":")
        return self.form, names, colons, len(self.parts.get("epoch", "").partition(".")[0])

    @property
    def epoch(self) -> float | None:
        """Seconds since 1970, if the value is written as such a number; else None."""
        if text := self.parts.get("epoch"):
            return float(text) / _EPOCH_UNITS[len(text.partition(".")[0])]
        return None

    @property
    def zone(self) -> timezone | None:
        """The time zone behind the value, None without one. Raises ValueError from 24 hours on."""
        offset = self.parts.get("offset")
        if not offset:
            return None
        if not offset[-1].isdigit():  # Z, UTC, GMT
            return UTC
        distance = timedelta(hours=int(offset[1:3]), minutes=int(offset[-2:]))
        return timezone(distance if offset[0] == "+" else -distance)

    @property
    def has_date(self) -> bool:
        """True if the value names a day with its year, even a day that does not exist."""
        return any(name in self.parts for name in _DAY_PARTS)

    @property
    def month_and_day(self) -> tuple[int, int] | None:
        """Month and day if the month is written as a name, as in "Nov 27 12:30"; else None."""
        if name := self.parts.get("month"):
            return _MONTHS.index(name) + 1, int(self.parts["day"])
        return None

    def list_days(self) -> Iterator[date]:
        """Yield the days with a year that the value may name; impossible days are left out."""
        parts = self.parts
        candidates: list[Sequence[str | int]] = []  # year, month, day
        if text := parts.get("date") or parts.get("datetime_digits") or parts.get("date_digits"):
            digits = text.replace("-", "")
            candidates = [(digits[:4], digits[4:6], digits[6:8])]
        elif text := parts.get("arguments"):
            candidates = [text.split(", ")[:3]]
        elif year := parts.get("year"):
            year = f"20{year}" if len(year) == 2 else year
            if self.month_and_day is not None:
                candidates = [(year, *self.month_and_day)]
            else:
                day, month = parts["day"], parts["month_number"]
                candidates = [(year, month, day), (year, day, month)]
        for year_month_day in candidates:
            with suppress(ValueError, OverflowError):  # a number may have any length
                yield date(*map(int, year_month_day))

    def read_time(self) -> tuple[float, float]:
        """Return the time of day, and the length of the smallest unit written, in seconds.

        A bare date is a whole day from midnight. Raises ValueError for an impossible time.
        """
        if text := self.parts.get("datetime_digits"):
            return _count_seconds(text[-6:-4], text[-4:-2], text[-2:]), 1.0
        if text := self.parts.get("arguments"):
            numbers = text.split(", ")[3:]  # none, hour and minute, or with seconds and fractions
            return _count_seconds(*numbers[:3]), {0: DAY, 2: 60.0}.get(len(numbers), 1.0)
        if "hour" in self.parts:
            return _count_seconds(*(self.parts[unit] for unit in ("hour", "minute", "second"))), 1.0
        if "time" not in self.parts:
            return 0.0, DAY
        hours, *smaller = self.parts["time"].split(":")
        if am_pm := self.parts.get("am_pm"):
            hours = str(int(hours) % 12 + (12 if am_pm[0] in "pP" else 0))
        return _count_seconds(hours, *smaller), 1.0 if len(smaller) > 1 else 60.0

    def same_time(self, other: Clock) -> bool:
        """Return whether two values have the same time of day; a bare date has midnight."""
        try:
            return self.read_time() == other.read_time()
        except ValueError:
            return False


def _count_seconds(*parts: str) -> float:
    """Return the seconds of hours, minutes, seconds; the missing ones are 0. Raises ValueError."""
    hours, minutes, seconds = (*map(int, parts), 0, 0, 0)[:3]
    if hours > 23 or minutes > 59 or seconds > 60:  # 60: a leap second
        raise ValueError("not a time of day")
    return hours * 3600.0 + minutes * 60.0 + seconds


def find_clocks(text: str) -> Iterator[Clock]:
    """Yield what may be a date or time, form after form.

    Values may overlap: "12:30" is found in "2026-11-27 12:30" too, after the longer value.
    """
    for number, form in enumerate(_FORMS):
        for match in form.finditer(text):
            parts = {name: part for name, part in match.groupdict().items() if part}
            yield Clock(start=match.start(), end=match.end(), form=number, parts=parts)
