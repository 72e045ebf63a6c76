"""Durations and rates in a result, and where they may differ.

Why apart from the clock: how long something took differs each time, but "worked 7.5 hours" and
"900 rows/s" are results. So a difference is tolerated only where something measures.

Rules
- In results of code that reads a clock (`Measures.clock`): numbers with a unit of time, and rates.
- In what a shell prints (`Measures.commands`): `in 0.42s`, `real 0m0.005s` and the like.
- In every result (`Measures.lines`): the lines of test runners and progress bars, in their own
  forms only. A sentence with a number and a unit is none of them.
- Two durations are alike within a factor of ten, and below a second; two rates within the factor.
- Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

FACTOR = 10.0
LEAST = 1.0  # shorter durations (s) count as this
_SECONDS = {
    **dict.fromkeys(("ns",), 1e-9),
    **dict.fromkeys(("us", "µs", "μs"), 1e-6),
    **dict.fromkeys(("ms",), 1e-3),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
}
_ALONE, _BEHIND = r"(?<![\w.])", r"(?![\w/]|\.\d)"
_NUMBER = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_DECIMAL = r"\d+\.\d+(?:e[+-]?\d+)?"
_SHORT = r"(?:ns|µs|μs|us|ms|s|min|m|h)"
_LONG = r"(?:s|sec|secs|seconds?|min|mins|minutes?|h|hours?)"
_TIME = rf"(?P<time>{_NUMBER} ?{_SHORT}(?: ?{_NUMBER} ?{_SHORT}){{0,3}})"
_END = r"[ \t]*(?=[=,;)\n]|\Z)"
_CLOCK = (
    # a timedelta; a clock has two digits
    rf"{_ALONE}(?P<time>\d:\d\d:\d\d\.\d+){_BEHIND}",
    rf"{_ALONE}(?P<rate>{_NUMBER}) ?(?P<unit>(?:it|[kKMG]?i?B|rows?|tokens?|tok|requests?|req)/s)\b",
    rf"{_ALONE}(?P<rate>{_DECIMAL}) ?(?P<unit>\w+/s)\b",
    rf"{_ALONE}(?P<time>(?:\d+ ?(?:h|min|m) ?){{1,3}}{_NUMBER} ?s){_BEHIND}",
    rf"{_ALONE}(?P<time>{_NUMBER} ?(?:ns|µs|μs|us|ms)){_BEHIND}",
    rf"{_ALONE}(?P<time>{_DECIMAL} ?{_LONG}){_BEHIND}",
)
_SHELL = (
    rf"\b(?:in|took|after) {_TIME}{_END}",
    rf"\btime[=:] ?{_TIME}{_BEHIND}",
    r"(?m)^(?P<time>[\d.]+)user (?P<time2>[\d.]+)system (?P<time3>[\d:.]+)elapsed (?:\d+|\?)%CPU",
    rf"{_ALONE}(?P<rate>{_NUMBER}) ?(?P<unit>[kKMG]?i?B/s)\b",
)
_LINES = (
    # pytest, unittest
    rf"(?m)^=*[ \t]*(?:\d+ [a-z]+,? ){{1,12}}in {_TIME}(?: \([\d:]+\))?(?=[ \t]*=*$)",
    rf"(?m)^Ran \d+ tests? in {_TIME}$",
    # `time` of a shell
    r"(?m)^(?:real|user|sys)[ \t]+(?P<time>(?:\d+m)?\d+[.,]\d+s?)$",
    # joblib, scikit-learn
    rf"\b(?:elapsed|remaining|ETA|eta): *{_TIME}{_BEHIND}",
    rf"\btotal time= *{_TIME}{_BEHIND}",
    # Keras, tqdm and their like
    rf"{_ALONE}(?P<time>(?:\d+s )?\d+(?:\.\d+)?(?:ns|µs|μs|us|ms|s|min))/(?:step|epoch|sample|it|batch)\b",
    rf"{_ALONE}(?P<rate>{_NUMBER})(?P<unit>it/s)\b",
)
_PART = re.compile(rf"({_NUMBER}) ?([a-zµμ]*)")


class Measures(msgspec.Struct, frozen=True, kw_only=True):
    """Where durations and rates of a result may differ."""

    lines: bool = True
    commands: bool = False
    clock: bool = False

    @property
    def patterns(self) -> Iterator[re.Pattern[str]]:
        """The forms that count, the most exact ones first."""
        for listed, counts in ((_LINES, self.lines), (_SHELL, self.commands), (_CLOCK, self.clock)):
            yield from (re.compile(form) for form in listed if counts)


LINES, EXACT = Measures(), Measures(lines=False)


class Quantity(msgspec.Struct, frozen=True, kw_only=True):
    """A duration (in seconds) or rate at `start` to `end` of a text; `unit` is the rate's."""

    start: int
    end: int
    value: float
    unit: str = ""

    def is_like(self, other: Quantity) -> bool:
        """Return whether both mean about the same: within the factor, and above the floor."""
        small, large = sorted((max(self.value, LEAST), max(other.value, LEAST)))
        return self.unit == other.unit and large <= small * FACTOR


def find_quantities(text: str, measures: Measures) -> Iterator[Quantity]:
    """Yield the durations and rates of a text; later ones may lie in earlier ones."""
    for pattern in measures.patterns:
        for match in pattern.finditer(text):
            for name, number in match.groupdict().items():
                if number is None or name == "unit":
                    continue
                rate, (start, end) = name == "rate", match.span(name)
                yield Quantity(
                    start=start,
                    end=match.end("unit") if rate else end,
                    value=float(number) if rate else _seconds(number),
                    unit=match["unit"] if rate else "",
                )


def read_quantity(text: str, measures: Measures) -> Quantity | None:
    """Return the duration or rate that a text is, None if it is more or something else."""
    return next(
        (q for q in find_quantities(text, measures) if (q.start, q.end) == (0, len(text))), None
    )


def _seconds(text: str) -> float:
    """Return the seconds of `1:02:03.4`, `0m0.005s`, `1min 3s` or `900 µs`."""
    if ":" in text:
        hours, minutes, seconds = map(float, ("0:" * (2 - text.count(":")) + text).split(":"))
        return hours * 3600 + minutes * 60 + seconds
    parts = _PART.findall(text.replace(",", "."))
    return sum(float(number) * _SECONDS.get(unit, 1.0) for number, unit in parts)
