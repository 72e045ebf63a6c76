"""What asks the rows of a map: here, in workers of a pool, or on other machines.

Rules: an asker returns a result for every row, whatever happened to it; only a cancellation is
raised. It stores nothing: a row is finished when the driver has stored it.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from ...record.record import Record
from .row import Row, RowResult


class Answered(msgspec.Struct, frozen=True):
    """What came of a row, and the unsigned record of its run (None: it never began)."""

    result: RowResult
    record: Record | None = None


class RowAsker(Protocol):
    """Asks rows of one map, several at once."""

    async def ask(self, row: Row) -> Answered:
        """Ask one row and return what came of it; a cancellation stops its run."""

    async def aclose(self) -> Any:
        """Release what the asker holds: connections, futures."""
