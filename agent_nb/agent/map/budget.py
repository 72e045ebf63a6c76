"""The limits that hold over a whole map: tokens and dollars.

Rules: rows do not begin while those under way may use up what is left, so that a map with many rows
at once ends near its limit and not far beyond.

Why apart from `limits.Meter`: that one counts within a run; here the rows of a map add up, whatever
asks them. Turns, tool calls and seconds hold for each row.
"""

from __future__ import annotations

from ...events.interruption import AT
from ...models.prices import dollars
from .row import RowResult


class Budget:
    """Counts what the rows of a map use. 0 or None: unlimited."""

    def __init__(self, tokens: int = 0, cost: float | None = None) -> None:
        self.tokens = tokens
        self.cost = cost
        self.used = 0
        self.spent = 0.0
        self._rows = 0
        self._expected = (0.0, 0.0)

    def expect(self, tokens: float, cost: float | None) -> None:
        """Take an estimate of what one row uses; it counts until a row is over."""
        self._expected = (tokens, cost or 0.0)

    def fits(self, asking: int) -> bool:
        """Return whether one more row may begin while `asking` rows are under way.

        Those are reckoned with what the rows so far have used on average. One row may always begin.
        """
        if not asking or not (self.tokens or self.cost):
            return True
        tokens, cost = self._expected
        if self._rows:
            tokens, cost = self.used / self._rows, self.spent / self._rows
        more = asking + 1
        return (not self.tokens or self.used + tokens * more <= self.tokens) and (
            not self.cost or self.spent + cost * more <= self.cost
        )

    def add(self, result: RowResult) -> str:
        """Count a row that was asked; return the first limit that is used up, in words, or ""."""
        self._rows += 1
        self.used += result.input + result.written
        self.spent += result.cost or 0.0
        if self.tokens and self.used >= self.tokens:
            return f"{AT}{self.tokens:,} tokens for all rows"
        if self.cost and self.spent >= self.cost:
            return f"{AT}{dollars(self.cost)} for all rows"
        return ""
