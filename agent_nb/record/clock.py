"""Clock values in a text, and whether they are the time of a run.

Why: a result that says when it was made differs each time and means the same. A date in the data
keeps its meaning.

Rules
- A value counts if it falls within the run, five seconds around it, in UTC or in the run's local
  time; a value to the minute if that minute touches the run; a bare date if it is a day of the run;
  a time with an offset only at that offset.
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
MARK = "‹clock›"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAY = 86_400
_ISO = r"(?P<date>\d{4}-\d\d-\d\d)"
_TIME = r"(?P<time>\d{1,2}:\d\d(?::\d\d)?)(?P<part>[.,]\d+)?(?: ?(?P<half>[AaPp]\.?[Mm])\b)?"
_OFFSET = r"(?: ?(?P<offset>Z|UTC|GMT|[+-]\d\d:?\d\d)\b)?"
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})[a-z]*"
_FORMS = tuple(
    re.compile(rf"(?<![\d.:]){form}(?![\d:]|\.\d)")
    for form in (
        rf"{_ISO}[T ]{_TIME}{_OFFSET}",
        r"(?P<compact>\d{8}[T_-]?\d{6})(?P<offset>Z)?",
        rf"(?:[A-Z][a-z]{{2}} )?{_MONTH} +(?P<day>\d{{1,2}}) {_TIME}(?: [A-Z]{{3,5}})? (?P<year>\d{{4}})",
        rf"(?:[A-Z][a-z]{{2}}, )?(?P<day>\d{{1,2}}) {_MONTH} (?P<year>\d{{4}}) {_TIME}{_OFFSET}",
        r"datetime\.datetime\((?P<parts>\d{4}(?:, \d+){4,6})(?P<zone>, tzinfo=[^()]*(?:\([^()]*\))?[^()]*)?\)",
        r"datetime\.date\((?P<parts>\d{4}, \d+, \d+)\)",
        rf"{_ISO}",
        rf"{_MONTH} (?P<day>\d{{1,2}}), (?P<year>\d{{4}})",
        rf"(?P<day>\d{{1,2}}) {_MONTH} (?P<year>\d{{4}})",
        rf"{_TIME}{_OFFSET}",
        r"(?P<epoch>[12]\d{18}|[12]\d{15}|[12]\d{12}|[12]\d{9}(?:\.\d+)?)",
    )
)
_UNIT = {10: 1, 13: 1e3, 16: 1e6, 19: 1e9}  # digits of an epoch value -> parts of a second


class Span(msgspec.Struct, frozen=True, dict=True):
    """The time of a run (epoch seconds) and its time zone.

    `zone` is an IANA name, or "" with the `offset` of local time in seconds.
    """

    began: float
    ended: float
    zone: str = ""
    offset: int = 0

    def masked(self, text: str) -> tuple[str, list[str]]:
        """Return `text` with a mark for each clock value of this run, and these values."""
        found: list[str] = []

        def mark(match: re.Match[str]) -> str:
            if not self._is_of_run(match):
                return match[0]
            found.append(match[0])
            return MARK

        for form in _FORMS:
            text = form.sub(mark, text)
        return text, found

    @cached_property
    def _local(self) -> tzinfo:
        try:
            return ZoneInfo(self.zone)
        except (OSError, ValueError):  # empty, or unknown on this machine
            return timezone(timedelta(seconds=self.offset))

    def _is_of_run(self, match: re.Match[str]) -> bool:
        try:
            return any(
                self._holds(moment, length) for moment, length in self._moments(match.groupdict())
            )
        except (ValueError, OverflowError, OSError):
            return False

    def _holds(self, moment: float, length: float) -> bool:
        """Return whether the `length` seconds from `moment` touch the run."""
        return moment <= self.ended + AROUND and moment + length >= self.began - AROUND

    def _moments(self, parts: dict[str, str | None]) -> Iterator[tuple[float, float]]:
        """Yield what a value may mean: (epoch seconds, length of that unit in seconds)."""
        if epoch := parts.get("epoch"):
            whole = epoch.partition(".")[0]
            yield float(epoch) / _UNIT[len(whole)], 1.0
            return
        day, clock, length = _day(parts), *_clock(parts)
        for zone in self._zones(parts.get("offset") or ""):
            days = (
                [day]
                if day is not None
                else sorted(
                    {datetime.fromtimestamp(t, zone).date() for t in (self.began, self.ended)}
                )
            )
            for each in days:
                start = datetime(each.year, each.month, each.day, tzinfo=zone) + timedelta(
                    seconds=clock
                )
                yield start.timestamp(), length

    def _zones(self, offset: str) -> list[tzinfo]:
        if not offset:
            return [UTC, self._local]
        if not offset[-1].isdigit():
            return [UTC]
        sign, hours, minutes = offset[0], int(offset[1:3]), int(offset[-2:])
        return [timezone((1 if sign == "+" else -1) * timedelta(hours=hours, minutes=minutes))]


def _day(parts: dict[str, str | None]) -> date | None:
    """Return the day of a value, None if it names none. Raises ValueError if it does not exist."""
    if text := parts.get("date"):
        return date.fromisoformat(text)
    if text := parts.get("compact"):
        return date.fromisoformat(text[:8])
    if text := parts.get("parts"):
        year, month, day = map(int, text.split(", ")[:3])
        return date(year, month, day)
    if parts.get("year"):
        return date(
            int(parts["year"] or 0), _MONTHS.index(parts["month"] or "") + 1, int(parts["day"] or 0)
        )
    return None


def _clock(parts: dict[str, str | None]) -> tuple[float, float]:
    """Return (seconds since midnight, length of the value's unit): a second, minute or day."""
    if text := parts.get("compact"):
        return _seconds(text[-6:-4], text[-4:-2], text[-2:]), 1.0
    if text := parts.get("parts"):
        numbers = text.split(", ")[3:]
        return _seconds(*numbers[:3]), [_DAY, 0, 60.0, 1.0, 1.0][len(numbers)]
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


def here() -> tuple[str, int]:
    """Return this machine's time zone: IANA name ("" if unknown) and current offset in seconds."""
    return _named(), int(datetime.now().astimezone().utcoffset().total_seconds())  # type: ignore[union-attr]  # an aware time has one


def _named() -> str:
    import os

    asked = os.environ.get("TZ", "").lstrip(":")
    linked = os.path.realpath("/etc/localtime").partition("zoneinfo/")[2]
    return next(
        (name for name in (asked, linked) if not asked or name == asked if is_zone(name)), ""
    )


def is_zone(name: str) -> bool:
    """Return whether a name is a time zone that this machine knows."""
    try:
        return bool(name) and ZoneInfo(name) is not None
    except (OSError, ValueError):  # not a file, or an invalid name
        return False
