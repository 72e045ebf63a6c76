"""The calls of a model turn: executed, refused or abandoned.

Providers refuse a conversation in which a call lacks its result. So afterwards every call of the
turn has exactly one, also if a limit or a stop ended the batch.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio
import msgspec

from .. import events
from ..errors import Cancelled
from ..events import EventLog, Interrupt
from ..tools import Job, Outcome
from .batch import LOGS_PER_SECOND, Batch
from .drift import Resume
from .limits import Meter, count_noun
from .run_spec import Plan
from .turn import Turn


class TurnCalls(msgspec.Struct, frozen=True):
    """Executes, refuses or abandons the calls of each turn of one run.

    `stop` stops the run, `find_stop_cause` returns why it was stopped.
    """

    plan: Plan
    log: EventLog
    meter: Meter
    stop: Callable[[Cancelled], None]
    find_stop_cause: Callable[[], Cancelled]

    async def execute(self, turn: Turn) -> None:
        """Run the calls of a turn; if they exceed the limit, run none and raise Cancelled."""
        batch = Batch(
            self.log,
            turn.calls,
            self.plan.redaction,
            self._count_subagent,
            find_stop_cause=self.find_stop_cause,
        )
        calls_left = self.meter.calls_left()
        if calls_left is not None and len(turn.calls) > calls_left:
            batch.end_all(Outcome("cancelled", "Not run: the limit of tool calls was reached."))
            limit = count_noun(self.plan.limits.tool_calls, "tool call")
            raise Cancelled("limit", f"{Interrupt.AT_LIMIT}{limit}")
        self.meter.tool_calls += len(turn.calls)
        faults = turn.faults_of_calls
        jobs = [Job(c.call_id, c.name, c.args, faults.get(c.call_id, "")) for c in turn.calls]
        before = self.meter.total
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_log_output_regularly, batch)
                await self.plan.runner.run(jobs, batch, remaining=self.meter.remaining)
                group.cancel_scope.cancel()
        finally:
            batch.end_all(Outcome("cancelled", Outcome.STOPPED))
            if self.meter.total != before:  # sub-agents have added their usage
                self.log.append(events.Metric(total=self.meter.total, turn=turn.number))
        for call in turn.calls:
            self.meter.count_result(batch.ended[call.call_id].status)

    def refuse(self, turn: Turn) -> None:
        """Give error results to the calls of a turn that has no complete batch."""
        batch = Batch(self.log, turn.all_calls, self.plan.redaction)
        otherwise = "Not run: the batch was never executed."
        for call in turn.all_calls:
            why = turn.faults_of_calls.get(call.call_id, otherwise)
            batch.end(call.call_id, Outcome("error", why))

    def abandon(self, turn: Turn) -> None:
        """Give cancelled results to the calls of a turn whose response broke off."""
        batch = Batch(self.log, turn.all_calls, self.plan.redaction)
        batch.end_all(Outcome("cancelled", "Not run: the response broke off."))

    def restore(self, resume: Resume) -> None:
        """Log progress and results of the batch that was open when a replay drifted."""
        batch = Batch(self.log, resume.calls, self.plan.redaction)
        for call_id, outcome in resume.outcomes.items():
            batch.started(call_id)
            for update in resume.updates.get(call_id, ()):
                batch.update(call_id, update)
            batch.end(call_id, outcome)
            self.meter.count_result(outcome.status)

    def _count_subagent(self, step: events.Counts) -> None:
        """Add a sub-agent's usage to that of the run; stop the run if that reaches a limit."""
        # the time to the first token of the run is that of its own requests
        self.meter.add(msgspec.structs.replace(step, ttft=None))
        if reason := self.meter.reached_limit():
            self.stop(Cancelled("limit", reason))


async def _log_output_regularly(batch: Batch) -> None:
    while True:
        await anyio.sleep(1 / LOGS_PER_SECOND)
        batch.flush()
