"""The rows that end up in the log of a map: a few as lines, and all records of a small map.

The log becomes a record in the notebook, and must stay small. The rows of a map with more than
`MOST_ROWS` rows, or `MOST_BYTES` of records, replay from their store.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...record import InnerRecords, Record
from ...wire import cut_end, dumps, replace_surrogates
from .row import Row, RowResult
from .tally import RowLine

MOST_ROWS, MOST_BYTES = 1000, 1_000_000  # of a map whose log holds records; bytes of their JSON
END_ROWS = 3  # rows at either end of the sample, and rows that failed
LONGEST_LINE = 120  # characters of a prompt or an answer


class Sample:
    """Collects lines and records of a map of `total` rows."""

    def __init__(self, total: int) -> None:
        self._lines: dict[tuple[int, int], RowLine] = {}
        self._failed: dict[tuple[int, int], RowLine] = {}  # the first ones that failed
        self._size = 0
        self._keeps_records = total <= MOST_ROWS
        self._records: dict[str, Record] = {}

    def add(self, row: Row, result: RowResult, record: Record | None) -> RowLine:
        """Add a finished row; return its line."""
        line = RowLine(
            row.position,
            result.status,
            _one_line(row.prompt),
            _one_line(_describe_answer(result)),
            result.seconds,
        )
        self._lines[row.position, row.repeat] = line
        if result.status in ("error", "limit") and len(self._failed) < END_ROWS:
            self._failed[row.position, row.repeat] = line
        # rows finish in any order: only the first and last so far are kept, cut now and then
        if len(self._lines) > 4 * END_ROWS:
            self._lines = dict(self._first_and_last())
        if self._keeps_records and record is not None and result.status != "interrupted":
            self._size += len(msgspec.json.encode(record))
            self._records[row.key] = record
            # `_size` counts what rows share once for each of them, `MOST_BYTES` only once
            if self._size > InnerRecords.LIMIT:
                self._keeps_records, self._records = False, {}
        return line

    @property
    def records(self) -> dict[str, Any]:
        """The payload of the state that holds the records; {} without records or for too many."""
        payload = InnerRecords(self._records).to_payload() if self._records else {}
        return payload if len(msgspec.json.encode(payload)) <= MOST_BYTES else {}

    @property
    def has_records(self) -> bool:
        """Whether rows have finished that have records, in `records` or too many for it."""
        return bool(self._records) or (bool(self._lines) and not self._keeps_records)

    @property
    def lines(self) -> dict[str, Any]:
        """The payload `{"sample": […]}`: the first and last finished rows, and some that failed."""
        lines = sorted({**dict(self._first_and_last()), **self._failed}.items())
        return {"sample": [msgspec.to_builtins(line) for _, line in lines]}

    def _first_and_last(self) -> list[tuple[tuple[int, int], RowLine]]:
        lines = sorted(self._lines.items())
        return lines if len(lines) <= 2 * END_ROWS else [*lines[:END_ROWS], *lines[-END_ROWS:]]


def _describe_answer(result: RowResult) -> str:
    """Return what a row answered, the fields of a typed answer by name, or why it failed."""
    if result.status == "ok" and isinstance(result.output, dict):
        texts = ((n, v if isinstance(v, str) else dumps(v)) for n, v in result.output.items())
        return " · ".join(f"{name}: {text}" for name, text in texts)
    return result.answer or result.error


def _one_line(text: str) -> str:
    return cut_end(" ".join(replace_surrogates(text[: 4 * LONGEST_LINE]).split()), LONGEST_LINE)
