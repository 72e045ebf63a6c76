"""One map in a worker: its agent, made of the spec, and its rows under way.

Rules
- The agent is made by the first row and shared by all. What it lacks here is the error of each row.
- Every method runs in the event loop of the worker.
- Limits of requests per minute are those of the newest message.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import ExitStack

from ....agent import Basis, Configuration, enter_run
from ....models import Limiter
from ..asking import Answered, LocalRows
from ..row import Row, RowResult
from ..row_result import failed_result
from .spec import Spec, agent_of
from .work import Work

Begun = Callable[[str], Awaitable[None]]


class WorkerAgent:
    """The rows of one map in this worker."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._agent: Configuration | None = None
        self._rows: LocalRows | None = None
        self._tasks: dict[str, asyncio.Task[Answered]] = {}
        self._limits = ExitStack()
        self._issue = 0

    @property
    def idle(self) -> bool:
        """Whether no row is under way."""
        return not self._tasks

    async def ask(self, work: Work, begun: Begun | None) -> Answered:
        """Ask a row; `begun(ticket)` is awaited just before. Raises nothing."""
        task = asyncio.create_task(self._asked(work, begun))
        self._tasks[work.ticket] = task
        try:
            return await task
        except asyncio.CancelledError:
            return Answered(stopped_result(work.row))
        except Exception as fault:  # whatever it is, it is the row's
            return Answered(failed_result(fault, position=work.row.position, key=work.row.key))
        finally:
            del self._tasks[work.ticket]

    async def _asked(self, work: Work, begun: Begun | None) -> Answered:
        enter_run()
        rows = self._made()
        if work.issue > self._issue:
            self._limit(work)
        if begun is not None:
            await begun(work.ticket)
        return await rows.ask(work.row)

    def stop(self, tickets: Collection[str] | None) -> None:
        """Stop rows, all if None."""
        for ticket, task in self._tasks.items():
            if tickets is None or ticket in tickets:
                task.cancel()

    async def aclose(self) -> None:
        """Stop all rows and close the connections."""
        self.stop(None)
        if self._tasks:
            await asyncio.wait(self._tasks.values())
        self._limits.close()
        if self._rows is not None:
            await self._rows.aclose()
        if self._agent is not None:
            await self._agent.aclose()

    def _made(self) -> LocalRows:
        """Return what asks rows. Raises UsageError for what is missing in this worker."""
        if self._rows is None:
            self._agent = self._agent or agent_of(self._spec)
            self._rows = LocalRows(self._agent, Basis.of(self._agent, self._agent.redaction()))
        return self._rows

    def _limit(self, work: Work) -> None:
        assert self._agent is not None
        fresh = ExitStack()
        fresh.enter_context(Limiter.limit_endpoints(self._agent.choice.models, rpm=work.rpm))
        self._limits.close()  # after the new limit holds
        self._limits, self._issue = fresh, work.issue


def stopped_result(row: Row, attempts: int = 1) -> RowResult:
    """Return the result of a row that was stopped."""
    return RowResult(
        position=row.position, key=row.key, status="interrupted", kind="user", attempts=attempts
    )
