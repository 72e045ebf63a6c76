"""Ends a map whose first `ALIKE` finished rows all fail with the same code and message.

With a wrong key or model name, every one of a thousand rows would fail. A map that asked all its
rows ends with an error if each of them failed, alike or not.
"""

from __future__ import annotations

from collections.abc import Sequence

from .row import RowResult

ALIKE = 10  # rows that fail alike before the map ends


class RepeatedFailure:
    """Compares the errors of the first rows of a map as they end; interrupted rows do not count."""

    def __init__(self) -> None:
        self._outcomes: list[tuple[str, str, str]] = []  # of the first rows

    def add(self, result: RowResult) -> str:
        """Count the result of a row; return why the map should end, or ""."""
        if result.status == "interrupted" or len(self._outcomes) == ALIKE:
            return ""
        self._outcomes.append((result.status, result.kind, result.error))
        if self._outcomes != [("error", result.kind, result.error)] * ALIKE:
            return ""
        return f"The first {ALIKE} rows all failed alike, so no more are asked: {result.error}"


def describe_whole_failure(results: Sequence[RowResult]) -> str:
    """Return why a map whose rows are all over failed; "" if a row did not."""
    if not results or any(r.status != "error" for r in results):
        return ""
    alike = len({(result.kind, result.error) for result in results}) == 1
    rows = "The only row" if len(results) == 1 else f"All {len(results)} rows"
    return f"{rows} failed{' alike' if alike and len(results) > 1 else ''}: {results[0].error}"
