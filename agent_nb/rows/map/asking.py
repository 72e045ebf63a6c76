"""Askers: each asks rows of a map, in this process (`LocalRows`) or on a cluster (`cluster`).

The driver calls all of them as `RowAsker`, so that it schedules and stores rows alike.

Rule: a row whose answer breaks off in the middle is asked again in a new run, up to twice, because
nobody has read the answer yet. After a tool call it is not: the tool would run twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Protocol

import anyio
import msgspec

from ... import events
from ...agent import Basis, Configuration, Context, Loop, without_text
from ...events import EventLog, list_missing_events
from ...models import Limiter, watch_waits
from ...record import Record, run_record
from ...tools import Decision, Question
from .row import Row, RowResult
from .row_clock import RowClock
from .row_result import Overhead, failed_result, result_of

STOPPED = "stopped with its map"  # why events of a run are missing
BREAKING_CODES = ("cut", "timeout")  # of errors that end an answer in the middle
RETRY_PAUSES = (1.0, 4.0)  # seconds before the second and the third attempt at an answer


class RowAnswer(msgspec.Struct, frozen=True):
    """The result of a row, and the unsigned record of its run (None: no run began)."""

    result: RowResult
    record: Record | None = None


class RowAsker(Protocol):
    """Asks rows of one map, several at once."""

    async def ask(self, row: Row) -> RowAnswer:
        """Ask one row and return its result, an error included; raises only CancelledError."""

    async def aclose(self) -> Any:
        """Release what the asker holds: connections, futures."""


class LocalRows:
    """Asks rows in this event loop: each is a run with a log of its own.

    If a row is cancelled after its run began, its result is `interrupted`, so that the map counts
    its cost; before, CancelledError is raised.
    """

    def __init__(
        self,
        agent: Configuration,
        basis: Basis,
        *,
        rpm: int | None = None,
        notes: Sequence[events.State] = (),
    ) -> None:
        """`rpm`: see `limit_rate`. `notes`: states that each run logs at its start.

        The `basis` may have tools of MCP servers too; the inputs name only the `agent`'s.
        """
        self._shared_inputs = agent.make_redacted_inputs(basis.redaction, "", (), ())
        self._basis = basis
        self._notes = notes
        self._limits = ExitStack()
        self.limit_rate(rpm)

    def limit_rate(self, rpm: int | None) -> None:
        """Limit the endpoints to `rpm` requests a minute (0, None: no added limit).

        The limit holds until the next call or `aclose`.
        """
        limits = ExitStack()
        limits.enter_context(
            Limiter.limit_endpoints([model for model, _ in self._basis.models], rpm=rpm)
        )
        self._limits.close()  # the new limit holds already, so that no request slips through
        self._limits = limits

    async def ask(self, row: Row) -> RowAnswer:
        """Ask one row; see `RowAsker`."""
        overhead = Overhead()
        for pause in RETRY_PAUSES:
            answer, log = await self._ask_once(row, overhead)
            if not broke_off(log):
                return answer
            overhead = overhead.add_broken(answer.result)
            try:
                await Limiter.wait_before_retry(pause)
            except asyncio.CancelledError:
                return answer  # with the cost so far
        return (await self._ask_once(row, overhead))[0]

    async def _ask_once(
        self, row: Row, overhead: Overhead
    ) -> tuple[RowAnswer, Sequence[events.Event]]:
        """Ask a row once; return its result, and the events of its run."""
        log = EventLog()
        user = events.User(
            content=row.prompt, attachments=without_text(row.attachments), origin="user"
        )
        try:
            inputs = msgspec.structs.replace(
                self._shared_inputs, prompt=row.prompt, attachments=row.attachments
            )
            plan = self._basis.plan(
                log, inputs, self._notes, ask=_answer_nothing, context=Context()
            )
            scope = anyio.CancelScope()
            clock, loop = RowClock(scope), Loop(plan, log, user, (), scope)
        except Exception as fault:  # any fault: the other rows are still asked
            return RowAnswer(failed_result(row, fault)), log
        try:
            with watch_waits(clock):
                await loop.run()
        except asyncio.CancelledError:  # the driver sees that its task was cancelled
            if not log:
                raise
        for event in list_missing_events(log, STOPPED):
            log.append(event)
        overhead = msgspec.structs.replace(overhead, waited=round(clock.waited, 6))
        result = result_of(log, row, beside=overhead)
        return RowAnswer(result, run_record(log, beside=msgspec.to_builtins(overhead))), log

    async def aclose(self) -> None:
        """Lift the limits; the connections stay open, because the agent owns them."""
        self._limits.close()


def broke_off(log: Sequence[events.Event]) -> bool:
    """Return whether a run's last answer broke off in the middle, and no tool has run."""
    fault = next((e for e in reversed(log) if isinstance(e, events.Error) and not e.span), None)
    if fault is None or fault.code not in BREAKING_CODES or events.End.status_in(log) != "error":
        return False
    if any(isinstance(event, events.Execute) for event in log):
        return False
    texts = (events.Think, events.Respond, events.Call)
    return any(  # a turn counts when it ends: a fault inside it has the previous turn's number
        isinstance(event, texts)
        and (event.turn > fault.turn or (event.turn == fault.turn and event.incomplete))
        for event in log
    )


async def _answer_nothing(question: Question) -> Decision | None:
    """Leave a question of a row undecided: nobody watches the rows of a map."""
    return None
