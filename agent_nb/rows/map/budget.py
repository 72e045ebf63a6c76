"""The limits that hold over a whole map: tokens and dollars (within one run, `agent.limits.Meter`).

Rows from a store or a record are free: an earlier execution paid for them.

Rule: rows under way count with their expected use, first an estimate, later the average of the
finished rows. The estimate may be wrong, and short answers finish first; so at most `FIRST_ROWS`
rows more may be under way than have finished with a known use.
"""

from __future__ import annotations

from ...agent import Limits
from ...events import Interrupt
from ...models import format_dollars
from .row import RowResult

FIRST_ROWS = 10  # the most rows under way before any has shown what it uses


class Budget:
    """Counts what the rows of a map use: `used` tokens and `spent` dollars.

    `tokens` and `cost` (dollars) are the limits over all rows; 0 or None: no limit.
    """

    def __init__(self, tokens: int = 0, cost: float | None = None) -> None:
        self.tokens = tokens
        self.cost = cost
        self.used = 0
        self.spent = 0.0
        self._rows = 0  # rows that used tokens or dollars
        self._expected = (0.0, 0.0)  # estimated tokens and dollars of one row

    def expect(self, tokens: float, cost: float | None) -> None:
        """Set the estimated use of one row; it counts until a row that used something is over.

        `cost`: dollars; None: unknown, counted as 0.
        """
        self._expected = (tokens, cost or 0.0)

    def fits(self, asking: int) -> bool:
        """Return whether a row may begin while `asking` are under way; the first always may."""
        if not asking or not (self.tokens or self.cost):
            return True
        if asking >= FIRST_ROWS + self._rows:
            return False
        tokens, cost = self._expected
        if self._rows:
            tokens, cost = self.used / self._rows, self.spent / self._rows
        rows_under_way = asking + 1  # with the row that would begin
        return (not self.tokens or self.used + tokens * rows_under_way <= self.tokens) and (
            not self.cost or self.spent + cost * rows_under_way <= self.cost
        )

    def add(self, result: RowResult) -> str:
        """Count a row that was asked; return the first limit that is used up, in words, or ""."""
        tokens, cost = result.input + result.written, result.cost or 0.0
        self._rows += bool(tokens or cost)
        self.used += tokens
        self.spent += cost
        if self.tokens and self.used >= self.tokens:
            return f"{Interrupt.AT_LIMIT}{self.tokens:,} tokens for all rows"
        if self.cost and self.spent >= self.cost:
            return f"{Interrupt.AT_LIMIT}{format_dollars(self.cost)} for all rows"
        return ""


def describe_exceeded_limit(
    rows: int, tokens: float, cost: float | None, limits: Limits | Budget
) -> str:
    """Return in words which limit ends a map of `rows`, and after how many of them; "": none.

    `tokens`, `cost`: the estimated use of all rows.
    """
    most, dollars, cost = limits.tokens, limits.cost or 0.0, cost or 0.0
    table = (
        (most, tokens, f"{most:,} tokens", f"{round(tokens):,}"),
        (dollars, cost, format_dollars(dollars), format_about(cost)),
    )
    for limit, need, name, needed in table:
        if limit and need > limit:
            return (
                f"The limit of {name} ends the map after about {int(rows * limit / need):,} of {rows:,} rows;"
                f" all of them need about {needed}."
            )
    return ""


def format_about(cost: float) -> str:
    """Return dollars as text, rounded to two significant digits."""
    return format_dollars(float(f"{cost:.2g}"))
