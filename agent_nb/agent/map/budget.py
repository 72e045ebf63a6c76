"""The limits that hold over a whole map: tokens and dollars.

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

    def add(self, result: RowResult) -> str:
        """Count a row that was asked; return the first limit that is used up, in words, or ""."""
        self.used += result.input + result.written
        self.spent += result.cost or 0.0
        if self.tokens and self.used >= self.tokens:
            return f"{AT}{self.tokens:,} tokens for all rows"
        if self.cost and self.spent >= self.cost:
            return f"{AT}{dollars(self.cost)} for all rows"
        return ""
