"""What asks the rows of a map: here, in workers of a pool, or on other machines.

Rules
- An asker returns a result for every row, whatever happened to it; only a cancellation is raised.
- It stores nothing: a row is finished when the driver has stored it.
- `LocalRows` asks here. What the rows share (`assembly.Basis`) is made once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Protocol

import anyio
import msgspec

from ... import events
from ...events.completion import missing
from ...events.log import EventLog
from ...models.http.limiter import tightened
from ...models.http.waits import stopping
from ...record.record import Record, run_record
from ...tools.base import Decision, Question
from ..assembly import Basis, plan
from ..attachments import without_text
from ..configuration import Configuration
from ..context import Context
from ..loop import Loop
from .row import Row, RowResult
from .row_clock import RowClock
from .row_result import failed, result_of

STOPPED = "stopped with its map"


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


class LocalRows:
    """Asks rows in this event loop: each is a run with a log of its own.

    A row whose task is cancelled is returned as interrupted, so that what it has cost is counted.
    """

    def __init__(
        self,
        agent: Configuration,
        basis: Basis,
        *,
        rpm: int | None = None,
        notes: Sequence[events.State] = (),
    ) -> None:
        """`rpm`: requests per minute at the endpoints while this is open; None: as configured.

        `notes`: what each run logs at its start. The tools of the `basis` may be more than those of
        the `agent`, which are inputs of the runs.
        """
        self._alone = agent.given_of(basis.redaction, "", (), ())
        self._basis = basis
        self._notes = notes
        self._limits = ExitStack()
        self._limits.enter_context(tightened([model for model, _ in basis.models], rpm=rpm))

    async def ask(self, row: Row) -> Answered:
        """Ask one row; see `RowAsker`."""
        log = EventLog()
        user = events.User(
            content=row.prompt, attachments=without_text(row.attachments), origin="user"
        )
        try:
            given = msgspec.structs.replace(
                self._alone, prompt=row.prompt, attachments=row.attachments
            )
            made = plan(self._basis, log, given, self._notes, ask=_nobody, context=Context())
            scope = anyio.CancelScope()
            clock, loop = RowClock(scope), Loop(made, log, user, (), scope)
        except Exception as fault:  # whatever it is, the other rows are asked
            return Answered(failed(fault, place=row.place, key=row.key))
        try:
            with stopping(clock):
                await loop.run()
        except asyncio.CancelledError:  # the driver sees that its task was cancelled
            if not log:
                raise
        for event in missing(log, STOPPED):
            log.append(event)
        result = result_of(log, place=row.place, key=row.key, waited=clock.waited)
        return Answered(result, run_record(log))

    async def aclose(self) -> None:
        """Give up the limits; the connections are the agent's."""
        self._limits.close()


async def _nobody(question: Question) -> Decision | None:
    """Answer a question of a row: nobody can be asked."""
    return None
