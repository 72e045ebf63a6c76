"""Clock values in a text, and whether they are the time of a run.

Why: a result that says when it was made differs each time and means the same. A date in the data
keeps its meaning, so one side alone never decides: `masks` compares two values, each with its run.

Rules
- A value is near a run if it falls within it, five seconds around it, in UTC or in the run's local
  time; a value to the minute if that minute touches the run; a bare date, or midnight, if it is a
  day of the run; a time with an offset only at that offset.
- Two values have the same shape if they were written in the same way.
- Every form stands once in `_FORMS`, the longer ones first. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import cached_property
from zoneinfo import ZoneInfo

import msgspec

AROUND = 5.0  # seconds before and after a run
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAY = 86_400
_ISO = r"(?P<date>\d{4}-\d\d-\d\d)"
_TIME = r"(?P<time>\d{1,2}:\d\d(?::\d\d)?)(?P<part>[.,]\d+)?(?: ?(?P<half>[AaPp]\.?[Mm])\b)?"
_OFFSET = r"(?: ?(?P<offset>Z|UTC|GMT|[+-]\d\d:?\d\d)\b| (?P<local>[A-Z]{1,4}T)\b)?"
_MONTH_NAME = rf"(?P<month>{'|'.join(_MONTHS)})[a-z]*"
_WEEKDAY = r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?"
_MONTH_DAY_YEAR = rf"{_WEEKDAY}{_MONTH_NAME} (?P<day>\d{{1,2}}), (?P<year>\d{{4}})"
_DAY_MONTH_YEAR = rf"{_WEEKDAY}(?P<day>\d{{1,2}})[ -]{_MONTH_NAME}[ -](?P<year>\d{{4}})"
_NUMBER_DATES = (
    r"(?P<day>\d\d?)(?P<dot>[./-])(?P<number>\d\d?)(?P=dot)(?P<year>\d{4}|\d\d)",  # or month first
    r"(?P<year>\d{4})(?P<dot>[./])(?P<number>\d\d?)(?P=dot)(?P<day>\d\d?)",
)
_STRUCT = ", ".join(
    rf"tm_{name}={number}"
    for name, number in (
        ("year", r"(?P<year>\d{4})"),
        ("mon", r"(?P<number>\d+)"),
        ("mday", r"(?P<day>\d+)"),
        ("hour", r"(?P<hour>\d+)"),
        ("min", r"(?P<minute>\d+)"),
        ("sec", r"(?P<second>\d+)"),
        ("wday", r"\d"),
        ("yday", r"\d+"),
        ("isdst", r"-?\d"),
    )
)
# The groups name what `Clock.parts` holds: `number` is the month as digits, `half` is am or pm,
# `part` the fraction of a second, `compact` all digits of a time, `plain` those of a date, `parts`
# the arguments of a `datetime` call, `local` a time zone's letters.
_FORMS = tuple(
    re.compile(rf"(?<![\d.:]){form}(?![\d:]|\.\d)")
    for form in (
        rf"{_ISO}[T ]{_TIME}{_OFFSET}",
        r"(?P<compact>\d{8}[T_-]?\d{6})(?P<offset>Z)?",
        rf"{_WEEKDAY}{_MONTH_NAME} +(?P<day>\d{{1,2}}) {_TIME}(?: [A-Z]{{3,5}})? (?P<year>\d{{4}})",
        *(
            rf"{named},? {_TIME}{_OFFSET}"
            for named in (_DAY_MONTH_YEAR, _MONTH_DAY_YEAR, *_NUMBER_DATES)
        ),
        rf"{_WEEKDAY}{_MONTH_NAME} +(?P<day>\d{{1,2}}) +{_TIME}",  # of a file that is new
        rf"{_MONTH_NAME} +(?P<day>\d{{1,2}})  (?P<year>\d{{4}})",  # of one that is older
        r"datetime\.datetime\((?P<parts>\d{4}(?:, \d+){4,6})(?P<zone>, tzinfo=[^()]*(?:\([^()]*\))?[^()]*)?\)",
        r"datetime\.date\((?P<parts>\d{4}, \d+, \d+)\)",
        rf"time\.struct_time\({_STRUCT}\)",
        rf"{_ISO}",
        _MONTH_DAY_YEAR,
        _DAY_MONTH_YEAR,
        *_NUMBER_DATES,
        rf"{_TIME}{_OFFSET}",
        r"(?P<plain>(?:19|20)\d{6})",
        r"(?P<epoch>[12]\d{18}|[12]\d{15}|[12]\d{12}|[12]\d{9}(?:\.\d+)?)",
    )
)
_EPOCH_UNITS = {10: 1, 13: 1e3, 16: 1e6, 19: 1e9}  # digits of an epoch value -> parts of a second
_DAY_PARTS = ("date", "number", "compact", "plain", "parts")  # parts that name a day
_NOT_IN_SHAPE = ("part", "zone", "offset", "local")  # an offset has its own check
Parts = dict[str, str | None]


class Clock(msgspec.Struct, frozen=True, kw_only=True):
    """A clock value at `start` to `end` of a text: its form, and the named parts of it."""

    start: int
    end: int
    form: int
    parts: Parts

    @property
    def shape(self) -> tuple[object, ...]:
        """How the value is written, whatever it is."""
        written = {k: v for k, v in self.parts.items() if v and k not in _NOT_IN_SHAPE}
        time = written.get("time", "").count(":")
        return self.form, tuple(written), time, len(written.get("epoch", "").partition(".")[0])

    def same_time(self, other: Clock) -> bool:
        """Return whether two values of one day have the same time of day, if any."""
        try:
            return _time_of_day(self.parts) == _time_of_day(other.parts)
        except ValueError:
            return False


def find_clocks(text: str) -> Iterator[Clock]:
    """Yield what may be a clock value, form after form; later ones may lie in earlier ones."""
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
        """Return whether a clock value is near this run."""
        return self._is_near(clock.parts)

    def holds_day(self, clock: Clock) -> bool:
        """Return whether the day that a clock value names is a day of this run."""
        bare = {k: v for k, v in clock.parts.items() if k not in ("time", "half", "hour")}
        if parts := bare.get("parts"):
            bare["parts"] = ", ".join(parts.split(", ")[:3])
        if compact := bare.pop("compact", None):
            bare["plain"] = compact[:8]
        return not bare.get("epoch") and next(_days(bare), None) is not None and self._is_near(bare)

    def is_aged(self, new: Clock, old: Clock) -> bool:
        """Return whether `ls` writes the time `new`, read in this run, as the date `old` later."""
        same = all(new.parts.get(part) == old.parts.get(part) for part in ("month", "day"))
        plain = new.parts.get("time") and not new.parts.get("year") and not old.parts.get("time")
        if not (same and plain):
            return False
        try:
            year = datetime.fromtimestamp(self.began, self._local).year
        except (ValueError, OverflowError, OSError):  # a record may say anything
            return False
        return old.parts.get("year") in (str(year), str(year - 1))

    def _is_near(self, parts: Parts) -> bool:
        try:
            return any(self._touches(moment, length) for moment, length in self._moments(parts))
        except (ValueError, OverflowError, OSError):
            return False

    @cached_property
    def _local(self) -> tzinfo:
        try:
            return ZoneInfo(self.zone)
        except (OSError, ValueError):  # empty, or unknown on this machine
            return timezone(timedelta(seconds=self.offset))

    def _touches(self, moment: float, length: float) -> bool:
        """Return whether the `length` seconds from `moment` touch the run."""
        return moment <= self.ended + AROUND and moment + length >= self.began - AROUND

    def _moments(self, parts: Parts) -> Iterator[tuple[float, float]]:
        """Yield what a value may mean: (epoch seconds, length of that unit in seconds)."""
        if epoch := parts.get("epoch"):
            whole = epoch.partition(".")[0]
            yield float(epoch) / _EPOCH_UNITS[len(whole)], 1.0
            return
        named, (clock, length) = list(_days(parts)), _time_of_day(parts)
        if not named and any(map(parts.get, _DAY_PARTS)):
            return  # a day that does not exist
        for zone in self._zones(parts.get("offset") or ""):
            days = named or sorted(
                day
                for day in {
                    datetime.fromtimestamp(t, zone).date() for t in (self.began, self.ended)
                }
                if not parts.get("month")
                or (day.month, day.day)
                == (_MONTHS.index(parts["month"] or "") + 1, int(parts["day"] or 0))
            )
            for each in days:
                start = datetime(each.year, each.month, each.day, tzinfo=zone)
                yield (start + timedelta(seconds=clock)).timestamp(), length

    def _zones(self, offset: str) -> list[tzinfo]:
        if not offset:
            return [UTC, self._local]
        if not offset[-1].isdigit():
            return [UTC]
        sign, hours, minutes = offset[0], int(offset[1:3]), int(offset[-2:])
        return [timezone((1 if sign == "+" else -1) * timedelta(hours=hours, minutes=minutes))]


def _days(parts: Parts) -> Iterator[date]:
    """Yield the days that a value may name, none if it names none or one that does not exist."""
    texts = (parts.get("date"), (parts.get("compact") or "")[:8], parts.get("plain"))
    numbers: list[tuple[int, ...]] = []
    if text := next(filter(None, texts), None):
        digits = text.replace("-", "")
        numbers = [(int(digits[:4]), int(digits[4:6]), int(digits[6:]))]
    elif text := parts.get("parts"):
        numbers = [tuple(map(int, text.split(", ")[:3]))]
    elif year := parts.get("year"):
        full, day = int(year) + (2000 if len(year) == 2 else 0), int(parts.get("day") or 0)
        if name := parts.get("month"):
            numbers = [(full, _MONTHS.index(name) + 1, day)]
        else:
            number = int(parts.get("number") or 0)
            numbers = [(full, number, day), (full, day, number)]
    for day_numbers in numbers:
        try:
            yield date(*day_numbers)
        except ValueError:
            continue


def _time_of_day(parts: Parts) -> tuple[float, float]:
    """Return (seconds since midnight, length of the value's unit): a second, minute or day."""
    if text := parts.get("compact"):
        return _seconds(text[-6:-4], text[-4:-2], text[-2:]), 1.0
    if text := parts.get("parts"):
        numbers = text.split(", ")[3:]
        return _seconds(*numbers[:3]), [_DAY, 0, 60.0, 1.0, 1.0][len(numbers)]
    if hour := parts.get("hour"):
        return _seconds(hour, parts.get("minute") or "", parts.get("second") or ""), 1.0
    text = parts.get("time")
    if text is None:
        return 0.0, _DAY
    hours, *rest = text.split(":")
    half = (parts.get("half") or "")[:1].lower()
    if half:
        hours = str(int(hours) % 12 + (12 if half == "p" else 0))
    return _seconds(hours, *rest), 1.0 if len(rest) > 1 else 60.0


def _seconds(*parts: str) -> float:
    hours, minutes, seconds = (*map(int, parts), 0, 0, 0)[:3]
    if hours > 23 or minutes > 59 or seconds > 60:
        raise ValueError("not a time of day")
    return hours * 3600.0 + minutes * 60.0 + seconds


def read_time_zone() -> tuple[str, int]:
    """Return this machine's time zone: IANA name ("" if unknown) and current offset in seconds."""
    return _zone_name(), int(datetime.now().astimezone().utcoffset().total_seconds())  # type: ignore[union-attr]  # an aware time has one


def _zone_name() -> str:
    import os

    configured = os.environ.get("TZ", "").lstrip(":")
    linked = os.path.realpath("/etc/localtime").partition("zoneinfo/")[2]
    return next(
        (
            name
            for name in (configured, linked)
            if not configured or name == configured
            if is_zone(name)
        ),
        "",
    )


def is_zone(name: str) -> bool:
    """Return whether a name is a time zone that this machine knows."""
    try:
        return bool(name) and ZoneInfo(name) is not None
    except (OSError, ValueError):  # not a file, or an invalid name
        return False
