"""Finds durations and rates in a result, and decides whether two of them are alike.

How long something took differs each time, but "worked 7.5 hours" and "900 rows/s" may be results.
So a difference is tolerated only where something measures (`Measures`): in results of code that
reads a clock, in phrases such as `in 0.42s` of a shell's output, and in the exact forms of lines
that test runners and progress bars print.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

DAY = 86_400.0  # seconds
LARGEST_RATIO = 10.0  # of two values that are alike
SMALLEST = 1.0  # seconds, or the unit of a rate
_SECONDS = {  # unit -> seconds; any other unit is a second
    "ns": 1e-9,
    **dict.fromkeys(("us", "µs", "μs"), 1e-6),
    "ms": 1e-3,
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
}
# Pieces of the forms below. A number stands alone: not within a word, a version or a unit such as
# m/s. In a form, the group `time` (or `time2`, `time3`) is a duration; `rate` a number of `unit`.
_ALONE, _BEHIND = r"(?<![\w.])", r"(?![\w/]|\.\d)"
_NUMBER = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_DECIMAL = r"\d+\.\d+(?:e[+-]?\d+)?"
_SHORT = r"(?:ns|µs|μs|us|ms|s|min|m|h)"
_LONG = r"(?:s|sec|secs|seconds?|min|mins|minutes?|h|hours?)"
_TIME = rf"(?P<time>{_NUMBER} ?{_SHORT}(?: ?{_NUMBER} ?{_SHORT}){{0,3}})"
_END = r"[ \t]*(?=[=,;)\n]|\Z)"
# The exact forms first: of two that overlap, the first one is taken.
_CLOCK_FORMS = (
    # a timedelta, 0:00:01.5; a time of day has two digits for the hour
    rf"{_ALONE}(?P<time>\d:\d\d:\d\d\.\d+){_BEHIND}",
    # 900 rows/s; 12.5 pages/s: units that are not listed need a decimal point
    rf"{_ALONE}(?P<rate>{_NUMBER}) ?(?P<unit>(?:it|[kKMG]?i?B|rows?|tokens?|tok|requests?|req)/s)\b",
    rf"{_ALONE}(?P<rate>{_DECIMAL}) ?(?P<unit>[^\W\d]\w*/s)\b",
    # 1min 3s; 900 µs; 1.5 seconds
    rf"{_ALONE}(?P<time>(?:\d+ ?(?:h|min|m) ?){{1,3}}{_NUMBER} ?s){_BEHIND}",
    rf"{_ALONE}(?P<time>{_NUMBER} ?(?:ns|µs|μs|us|ms)){_BEHIND}",
    rf"{_ALONE}(?P<time>{_DECIMAL} ?{_LONG}){_BEHIND}",
)
_SHELL_FORMS = (
    # "Finished in 0.42s", time=12.3 ms (ping), the output of /usr/bin/time, 3.5 MB/s
    rf"\b(?:in|took|after) {_TIME}{_END}",
    rf"\btime[=:] ?{_TIME}{_BEHIND}",
    rf"(?m)^(?P<time>{_NUMBER})user (?P<time2>{_NUMBER})system (?P<time3>(?:\d+:){{0,2}}{_NUMBER})elapsed (?:\d+|\?)%CPU",
    rf"{_ALONE}(?P<rate>{_NUMBER}) ?(?P<unit>[kKMG]?i?B/s)\b",
)
_LINE_FORMS = (
    # "== 3 passed in 0.12s ==" of pytest; "Ran 3 tests in 0.001s" of unittest
    rf"(?m)^=*[ \t]*(?:\d+ [a-z]+,? ){{1,12}}in {_TIME}(?: \([\d:]+\))?(?=[ \t]*=*$)",
    rf"(?m)^Ran \d+ tests? in {_TIME}$",
    # `time` of a shell: "real 0m0.005s"
    r"(?m)^(?:real|user|sys)[ \t]+(?P<time>(?:\d+m)?\d+[.,]\d+s?)$",
    # joblib: "elapsed: 1.2s"; scikit-learn: "total time= 0.1s"
    rf"\b(?:elapsed|remaining|ETA|eta): *{_TIME}{_BEHIND}",
    rf"\btotal time= *{_TIME}{_BEHIND}",
    # Keras: "3ms/step"; tqdm: "12.5it/s"
    rf"{_ALONE}(?P<time>(?:\d+s )?\d+(?:\.\d+)?(?:ns|µs|μs|us|ms|s|min))/(?:step|epoch|sample|it|batch)\b",
    rf"{_ALONE}(?P<rate>{_NUMBER})(?P<unit>it/s)\b",
)
_PART = re.compile(rf"({_NUMBER}) ?([a-zµμ]*)")


class Measures(msgspec.Struct, frozen=True, kw_only=True):
    """Where durations and rates of a result may differ."""

    lines: bool = True  # in lines of test runners and progress bars
    commands: bool = False  # in the output of a shell
    clock: bool = False  # wherever a number has a unit of time: the code reads a clock

    @property
    def patterns(self) -> Iterator[re.Pattern[str]]:
        """The patterns that apply, the most exact ones first."""
        if self.lines:
            yield from map(re.compile, _LINE_FORMS)
        if self.commands:
            yield from map(re.compile, _SHELL_FORMS)
        if self.clock:
            yield from map(re.compile, _CLOCK_FORMS)


# LINES: what may differ in every result; EXACT: no duration may differ
LINES, EXACT = Measures(), Measures(lines=False)


class Quantity(msgspec.Struct, frozen=True, kw_only=True):
    """A duration (in seconds) or a rate at `start` to `end` of a text.

    `unit`: the unit of a rate, such as `it/s`; "" for a duration.
    """

    start: int
    end: int
    value: float
    unit: str = ""

    def is_like(self, other: Quantity) -> bool:
        """Return whether both are durations, or rates of one unit, of about the same size.

        The larger is at most `LARGEST_RATIO` times the smaller; those below `SMALLEST` count as it.
        """
        small, large = sorted((max(self.value, SMALLEST), max(other.value, SMALLEST)))
        return self.unit == other.unit and large <= small * LARGEST_RATIO


def find_quantities(text: str, measures: Measures) -> Iterator[Quantity]:
    """Yield the durations and rates of a text, pattern by pattern; they may overlap."""
    for pattern in measures.patterns:
        for match in pattern.finditer(text):
            for name, number in match.groupdict().items():
                if number is None or name == "unit":
                    continue
                rate, (start, end) = name == "rate", match.span(name)
                yield Quantity(
                    start=start,
                    end=match.end("unit") if rate else end,
                    value=float(number) if rate else _read_seconds(number),
                    unit=match["unit"] if rate else "",
                )


def read_quantity(text: str, measures: Measures) -> Quantity | None:
    """Return the text as a duration or rate, None if it is not exactly one."""
    return next(
        (q for q in find_quantities(text, measures) if (q.start, q.end) == (0, len(text))), None
    )


def _read_seconds(text: str) -> float:
    """Return the seconds of `1:02:03.4`, `0m0.005s`, `1min 3s` or `900 µs`."""
    if ":" in text:
        hours, minutes, seconds = map(float, ("0:" * (2 - text.count(":")) + text).split(":"))
        return hours * 3600 + minutes * 60 + seconds
    quantities = _PART.findall(text.replace(",", "."))
    return sum(float(number) * _SECONDS.get(unit, 1.0) for number, unit in quantities)
