"""The limits of a run, the meter that counts against them, and the clock of a request.

Bills, sub-agents, resumed runs and summaries count and time requests too, not the loop alone.

Rule: the meter only counts; the loop decides what happens at a limit.
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

    def count_result(self, status: str) -> None:
        """Count how a call ended: all but an error sets the failures in a row back to 0."""
        self.failures = self.failures + 1 if status in ("error", "timeout") else 0

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
                self.count_result(event.status)
            elif isinstance(event, Metric):
                self.total = event.total
        self.turns += continued

    def _list_limits(
        self, tokens: int = 0, turns: int = 0, cost: float = 0.0
    ) -> tuple[tuple[str, float, float, str], ...]:
        """Return (name, limit, used amount, limit in words); see `reached_limit`."""
        limits, total = self.limits, self.total
        failures = f"{count_noun(limits.failures, 'tool failure')} in a row"
        dollars, used_tokens = limits.cost or 0.0, total.input + total.output + tokens
        return (
            ("turns", limits.turns, self.turns + turns, count_noun(limits.turns, "turn")),
            ("failures", limits.failures, self.failures, failures),
            ("tokens", limits.tokens, used_tokens, f"{limits.tokens:,} tokens"),
            ("cost", dollars, (total.cost or 0.0) + cost, format_dollars(dollars)),
        )

    def reached_limit(self, tokens: int = 0, turns: int = 0, cost: float = 0.0) -> str:
        """Return the first of `turns`, `failures`, `tokens`, `cost` used up, in words, or "".

        `seconds` and `tool_calls` are checked elsewhere. Parameters: what the present turn adds.
        """
        for _, limit, used, words in self._list_limits(tokens, turns, cost):
            if limit and used >= limit:
                return f"{Interrupt.AT_LIMIT}{words}"
        return ""

    def near_limit(self) -> str:
        """Return the first limit that is nearly used up, in words; "" if none is.

        That is: one turn, or a tenth of tokens or dollars, is left. The model should then finish.
        """
        for name, limit, used, words in self._list_limits():
            nearly = limit - 1 if name == "turns" else 0.9 * limit
            if limit and used >= nearly and name != "failures":
                return words
        return ""

    def calls_left(self) -> int | None:
        """Return how many more tool calls may run; None if their number is not limited."""
        return max(self.limits.tool_calls - self.tool_calls, 0) if self.limits.tool_calls else None

    def remaining(self) -> dict[str, float]:
        """Return, by name, the unused part of each finite limit that a sub-agent shares.

        A part is at least 1 (of `cost`: `LEAST_COST`), since 0 means unlimited.
        """
        parts = {name: limit - used for name, limit, used, _ in self._list_limits() if limit}
        parts.pop("failures", None)  # a sub-agent counts its own
        if (calls := self.calls_left()) is not None:
            parts["tool_calls"] = calls
        return {name: max(n, LEAST_COST if name == "cost" else 1) for name, n in parts.items()}


def count_noun(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless the number is 1."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


class Clock:
    """Times of one request, in seconds."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._first: float | None = None
        self._end: float | None = None

    def mark_first_event(self) -> None:
        """Note that the first event of the answer has come; later calls do nothing."""
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
