"""The limits of a run, the meter that counts against them, and the clock of a request.

Why apart from the loop: bills, sub-agents, resumed runs and summaries count and time requests too.

Rules
- 0, None and infinity mean unlimited.
- The meter only counts; the loop decides what happens at a limit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ..errors import UsageError, unknown_name
from ..events import Counts, Event, Execute, Interrupt, Metric, Node, Result
from ..models import format_dollars
from ..wire import plain_value

LEAST_COST = 0.0001  # dollars


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run ends; 0, None and infinity: unlimited.

    `turns`: answered requests to the model. `tool_calls`: of the whole run. `failures`: tool
    failures in a row; a turn that cannot be used counts as one. `tokens`: sent and written. `cost`:
    US dollars. `seconds`: of the run.
    """

    turns: int = 30
    tool_calls: int = 50
    failures: int = 3
    tokens: int = 200_000
    cost: float | None = None
    seconds: float = 600.0


def limits_from(values: Mapping[str, Any] | Limits | None) -> Limits:
    """Return the default limits, changed by `values`; None and infinity become 0.

    Raises UsageError for an unknown name, and for a value other than None or a number >= 0.
    """
    known = Limits.__struct_fields__
    if isinstance(values, Limits):
        values = {name: getattr(values, name) for name in find_chosen(values)}
    numbers: dict[str, Any] = plain_value(values or {})
    for name, value in numbers.items():
        if name not in known:
            raise UsageError(unknown_name("limit named", name, known))
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (is_number and value >= 0):
            raise UsageError(
                f"The limit {name!r} is a number of at least 0 (0: none), not {value!r}."
            )
    return Limits(**{k: 0 if v is None or v == math.inf else v for k, v in numbers.items()})


def find_chosen(values: Mapping[str, Any] | Limits | None) -> frozenset[str]:
    """Return the names of the limits that the user chose; of a `Limits`, those not the default."""
    if not isinstance(values, Limits):
        return frozenset(values or ())
    default = Limits()
    return frozenset(
        name for name in Limits.__struct_fields__ if getattr(values, name) != getattr(default, name)
    )


class Meter:
    """Counts what a run uses.

    `requests`: to its model, repeated ones included. `turns`: requests that were answered.
    `failures`: of tools, in a row. `total`: usage and cost, those of sub-agents included.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.requests = 0
        self.turns = 0
        self.tool_calls = 0
        self.failures = 0
        self.total = Counts()

    def add(self, step: Counts) -> None:
        """Add the usage of one model request."""
        self.total += step

    def count_outcome(self, ok: bool) -> None:
        """Count how a call ended: a success sets the failures in a row back to 0."""
        self.failures = 0 if ok else self.failures + 1

    def recount(self, log: Iterable[Event]) -> None:
        """Count what the events of a resumed run have used."""
        continued = 0  # requests that continued an answer; `event.turn` counts each turn once
        for event in log:
            # each request is a node `llm`; a sub-agent's has a parent
            if isinstance(event, Node) and event.name == "llm" and not event.parent:
                self.requests += event.phase == "enter"
                requests = (event.data or {}).get("continued")
                continued += requests if isinstance(requests, int) else 0
            if event.span:
                continue
            self.turns = max(self.turns, event.turn)
            if isinstance(event, Execute):
                self.tool_calls += len(event.calls)
            elif isinstance(event, Result):
                self.count_outcome(event.status not in ("error", "timeout"))
            elif isinstance(event, Metric):
                self.total = event.total
        self.turns += continued

    def reached_limit(self, tokens: int = 0, turns: int = 0, cost: float = 0.0) -> str:
        """Return the first of `turns`, `failures`, `tokens`, `cost` used up, in words, or "".

        `seconds` and `tool_calls` are checked elsewhere. Parameters: what the present turn adds.
        """
        limits, total = self.limits, self.total
        failures = count_noun(limits.failures, "tool failure")
        table = (  # limit, used amount, words
            (limits.turns, self.turns + turns, count_noun(limits.turns, "turn")),
            (limits.failures, self.failures, f"{failures} in a row"),
            (limits.tokens, total.input + total.output + tokens, f"{limits.tokens:,} tokens"),
            (limits.cost, (total.cost or 0.0) + cost, format_dollars(limits.cost or 0)),
        )
        reached = (words for limit, used, words in table if limit and used >= limit)
        return next((f"{Interrupt.AT_LIMIT}{words}" for words in reached), "")

    def calls_left(self) -> int | None:
        """Return how many more tool calls may run; None if their number is not limited."""
        return max(self.limits.tool_calls - self.tool_calls, 0) if self.limits.tool_calls else None

    def remaining(self) -> dict[str, float]:
        """Return, by name, the unused part of each finite limit that a sub-agent shares.

        A part is at least 1 (of `cost`: `LEAST_COST`), since 0 means unlimited.
        """
        limits, total = self.limits, self.total
        table = (  # name, limit, used amount
            ("turns", limits.turns, self.turns),
            ("tool_calls", limits.tool_calls, self.tool_calls),
            ("tokens", limits.tokens, total.input + total.output),
            ("cost", limits.cost, total.cost or 0.0),
        )
        least = {"cost": LEAST_COST}
        return {n: max(limit - used, least.get(n, 1)) for n, limit, used in table if limit}

    def near_limit(self) -> str:
        """Return the first limit that is nearly used up, in words; "" if none is.

        A limit is nearly used up if one turn, or a tenth of the tokens or dollars, is left. The
        next request then asks the model to finish.
        """
        turns, tokens, dollars = self.limits.turns, self.limits.tokens, self.limits.cost or 0
        table = (  # limit, used amount, amount from which it is nearly used up, words
            (turns, self.turns, turns - 1, count_noun(turns, "turn")),
            (tokens, self.total.input + self.total.output, 0.9 * tokens, f"{tokens:,} tokens"),
            (dollars, self.total.cost or 0.0, 0.9 * dollars, format_dollars(dollars)),
        )
        return next((words for limit, used, least, words in table if limit and used >= least), "")


def count_noun(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


class Clock:
    """Times of one request, in seconds."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._first: float | None = None
        self._end: float | None = None

    def note_first(self) -> None:
        """Note the first event of the answer."""
        if self._first is None:
            self._first = time.monotonic()

    def stop(self) -> None:
        """Note that the answer is complete."""
        self._end = time.monotonic()

    @property
    def duration(self) -> float:
        """Seconds until the answer was complete, or until now."""
        return round((self._end or time.monotonic()) - self._start, 3)

    @property
    def ttft(self) -> float | None:
        """Seconds until the first event of the answer; None before that event."""
        return None if self._first is None else round(self._first - self._start, 3)
