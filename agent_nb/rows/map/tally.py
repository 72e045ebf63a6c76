"""Counts the rows of a map in progress: finished, failed, rows per second, cost.

A map may take hours and dollars, so its card shows early how long it takes and what it costs. A
tally reads no clock; its caller passes the time.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping

import msgspec

from ...events import Counts
from .budget import Budget, describe_exceeded_limit
from .row import RowResult

RATE_WINDOW = 20.0  # s over which rows count for the rate
ENOUGH_ROWS = 3  # asked rows before rate and forecast are shown
STOPPED = "stopped"  # the kind in `failures` of rows that the end of the map interrupted
LAST_ROWS = 5  # rows that a snapshot shows


class RowLine(msgspec.Struct, frozen=True):
    """A row as the card shows it: the beginnings of its prompt and its answer.

    `name=` keeps the field names that older records have.
    """

    position: int = msgspec.field(name="place")
    status: str
    prompt: str = msgspec.field(default="", name="said")
    answered: str = ""
    seconds: float = 0.0


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A map at one moment; it is recorded, and shown live.

    `total` rows, of which `done` are over: `ok`, or failed (`failures` by kind); `known` of them
    were in the store or the record. `asking` are under way. `rate`: rows per second. `left`: the
    seconds until the end. `tokens` and `cost` (dollars): used by the asked rows. `forecast`: the
    dollars of the whole map. `limit`: the limit that the map is expected to reach, in words ("":
    none). `last`: the rows that ended last. None: unknown, or not known yet.
    """

    total: int
    done: int = 0
    ok: int = 0
    known: int = msgspec.field(default=0, name="found")
    asking: int = 0
    failures: Mapping[str, int] = {}
    tokens: int = 0
    rate: float | None = None
    left: float | None = None
    cost: float | None = None
    forecast: float | None = None
    limit: str | None = None
    last: tuple[RowLine, ...] = ()


class Tally:
    """Counts the rows of one map of `total` rows; times are seconds of one clock.

    Known rows (store, record) count as done, but not for rate and cost. `budget`: limits over all.
    """

    def __init__(self, total: int, now: float, budget: Budget | None = None) -> None:
        self._budget = budget or Budget()
        self._total = total
        self._began = now
        self._end_times: deque[float] = deque()
        self._asking = self._answered = self._ok = self._known = 0
        self._input = self._written = 0
        self._failures: Counter[str] = Counter()
        self._cost: float | None = None
        self._priced = 0  # rows of known cost
        self._last: deque[RowLine] = deque(maxlen=LAST_ROWS)

    def begin_row(self) -> None:
        """Count a row that is asked now."""
        self._asking += 1

    def end_row(self, result: RowResult, line: RowLine, now: float) -> None:
        """Count a finished row; `begin_row` was called before for one that was asked (`live`)."""
        if result.origin == "live":
            self._asking -= 1
            self._answered += 1
            self._end_times.append(now)
            self._input += result.input
            self._written += result.written
            if result.cost is not None:
                self._cost = (self._cost or 0.0) + result.cost
            # a row that used no tokens, such as a refused one, cost nothing
            self._priced += result.cost is not None or not (result.input or result.written)
        else:
            self._known += 1
        if result.status == "ok":
            self._ok += 1
        else:
            kind = STOPPED if result.status == "interrupted" else result.failure
            self._failures[kind] += 1
        self._last.append(line)

    @property
    def done(self) -> int:
        """The number of rows that are over."""
        return self._answered + self._known

    @property
    def used(self) -> Counts:
        """The tokens and the cost of the rows that were asked."""
        return Counts(input=self._input, output=self._written, cost=self._cost)

    def snapshot(self, now: float) -> Snapshot:
        """Return the counts at the time `now`, in seconds.

        Rate, forecast and expected limit are None until `ENOUGH_ROWS` asked rows are over. The
        forecast assumes the average known cost for each row that is left, or whose cost is unknown.
        """
        while self._end_times and now - self._end_times[0] > RATE_WINDOW:
            self._end_times.popleft()
        span = min(now - self._began, RATE_WINDOW)
        enough = self._answered >= ENOUGH_ROWS
        rate = len(self._end_times) / span if span > 0 and enough else None
        remaining = self._total - self.done
        row_cost = self._cost / self._priced if enough and self._cost is not None else None
        return Snapshot(
            total=self._total,
            done=self.done,
            ok=self._ok,
            known=self._known,
            asking=self._asking,
            failures=dict(self._failures.most_common()),
            tokens=self._input + self._written,
            rate=rate,
            left=remaining / rate if rate else None,
            cost=self._cost,
            forecast=None if row_cost is None else row_cost * (self._answered + remaining),
            limit=self._expect_limit(remaining) if enough else None,
            last=tuple(self._last),
        )

    def _expect_limit(self, more: int) -> str:
        """Return in words the limit that the map reaches if `more` more rows use the average.

        A row of unknown cost counts as free, as it does in `Budget`, which enforces the limit.
        """
        rows = self._answered + more
        tokens = (self._input + self._written) / self._answered * rows
        cost = (self._cost or 0.0) / self._answered * rows
        return describe_exceeded_limit(rows, tokens, cost, self._budget)
