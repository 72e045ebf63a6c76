"""Ends a map whose first rows all fail alike.

Why: with a wrong key or model name, every one of a thousand rows would fail.

Rule: the map ends if the first `ALIKE` finished rows have the same code and message. Any other
result ends the check; interrupted rows do not count.
"""

from __future__ import annotations

from .row import RowResult

ALIKE = 10  # rows that fail alike before the map ends


class RepeatedFailure:
    """Compares the errors of the first rows of a map as they end."""

    def __init__(self) -> None:
        self._first: tuple[str, str] | None = None
        self._count = 0
        self._differs = False  # a row ended well, or with another error: never end the map

    def add(self, result: RowResult) -> str:
        """Count the result of a row; return why the map should end, or ""."""
        if self._differs or result.status == "interrupted":
            return ""
        error = (result.kind, result.error)
        self._first = self._first or error
        self._differs = result.status != "error" or error != self._first
        self._count += 1
        if self._differs or self._count < ALIKE:
            return ""
        return (
            f"The first {self._count} rows all failed alike, so no more are asked: {result.error}"
        )
