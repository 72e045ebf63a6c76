"""Replays a recorded run, without a model.

Run All should be free, quick and safe until something changes; tests need neither key nor network.

Rules
- A replay logs the recorded events with their ids and times.
- Calls that touch the kernel run again (`RecordedTurns.must_rerun`), one after another, so that
  later cells find their variables. Their fresh results are compared with the recorded ones, not
  logged. A call whose arguments were cut or redacted does not run again.
- The first difference is the drift. A replay reports it at its end or, with `RecordedTurns.live`,
  stops there and offers what the loop needs to continue (`Resume`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import msgspec

from ..errors import Cancelled
from ..events import (
    LOST,
    Approval,
    Call,
    Delta,
    EventLog,
    Execute,
    Progress,
    Result,
    User,
    encode_event,
    list_missing_events,
)
from ..tools import Job, Outcome, Report, ToolRunner, Update
from ..wire import Redaction, encode_canonical
from .clean_json import clean_value
from .drift import Drift, DriftFinder, Played, Resume
from .history import read_printed
from .recorded_turns import RecordedTurns
from .replay_check import Checked, ReplayCheck

EVENTS_AT_ONCE = 32  # events of a record between two checkpoints, where other tasks run
_REDACTED = re.compile(r"\[redacted [^\]\n]*\]")


class Player:
    """Plays one recorded run into one log; the driver of a replay.

    `runner` runs the kernel calls again (None: their results too come from the record). `scope`:
    cancelling it stops the replay. `strict` adds the stricter comparison of tests.
    `make_agent_runner` takes a sub-agent and returns the runner of its tools.
    """

    def __init__(
        self,
        turns: RecordedTurns,
        log: EventLog,
        runner: ToolRunner | None = None,
        redaction: Redaction | None = None,
        scope: anyio.CancelScope | None = None,
        *,
        strict: ReplayCheck | None = None,
        make_agent_runner: Callable[[Any], ToolRunner] | None = None,
    ) -> None:
        self._turns = turns
        self._log = log
        self._runner = runner
        self._strict = strict
        self._make_agent_runner = make_agent_runner
        # the calls that may still run again, by id, numbered in start order
        self._pending = {c.call_id: (n, c) for n, c in enumerate(turns.finished_calls)}
        self._rerun: dict[str, bool] = {}  # id of a call to run again -> whether it was allowed to
        self._runners: dict[str, ToolRunner] = {}  # of sub-agents, by span
        self._redact = redaction.value if redaction is not None else lambda value: value
        self._scope = scope or anyio.CancelScope()
        self._stop_detail = ""
        self._drift: Drift | None = None
        self._finder = DriftFinder(turns, self._redact, strict)
        self._resume: Resume | None = None
        self._checked: Checked | None = None  # set once the log has ended

    @property
    def played(self) -> Played:
        """The outcome so far; `checked`, of a test, is set once the log has ended."""
        if self._checked is None and self._strict is not None and self._log.ended:
            self._checked = self._strict.make_outcome(self._rerun)
        return Played(
            log=self._log,
            drift=self._drift,
            resume=self._resume,
            checked=self._checked,
            unrecorded=tuple(self._finder.unrecorded),
        )

    def cancel(self, why: Cancelled) -> None:
        """Stop the replay; the log is closed as interrupted."""
        self._stop_detail = self._stop_detail or why.detail
        self._scope.cancel()

    async def run(self) -> None:
        """Play to the end or to the drift, and end the log. Exceptions of tools are results."""
        with self._scope:
            await self._play()
        for event in list_missing_events(self._log, self._stop_detail or LOST):
            self._log.append(event)

    async def _play(self) -> None:
        """Log the recorded events; after each batch, run its kernel calls again and compare."""
        for number, event in enumerate(self._turns.events):
            self._log.append(event)
            if number % EVENTS_AT_ONCE == 0:
                await anyio.lowlevel.checkpoint()
            if isinstance(event, Execute) and self._runner is not None:
                fresh = await self._run_again(event, self._runner)
                toolset = self._runner.toolset
                self._drift = self._drift or self._finder.find(event, fresh.outcomes, toolset)
                if self._drift is not None and self._turns.live:
                    self._resume = self._make_resume(event, fresh, self._drift)
                    return

    async def _run_again(self, batch: Execute, runner: ToolRunner) -> _FreshOutcomes:
        """Run the kernel calls of a batch again, in start order, and return the fresh outcomes."""
        fresh = _FreshOutcomes(self._show_question)
        # a forged record may name a call in several batches
        calls = [self._pending.pop(c) for c in dict.fromkeys(batch.calls) if c in self._pending]
        for _, call in sorted(calls):
            tool = self._turns.tool_of(call, runner.toolset)
            if tool is None or not self._turns.must_rerun(tool):
                continue
            call_runner = self._runner_of(call.span, runner)
            args = self._turns.arguments(call)
            if refusal := self._why_not_rerun(call, args):
                fresh.end(call.call_id, Outcome("denied", refusal))
            else:
                self._rerun[call.call_id] = False
                (outcome,) = await call_runner.run([Job(call.call_id, call.name, args)], fresh)
                self._rerun[call.call_id] = outcome.status != "denied"
        return fresh

    def _runner_of(self, span: str, runner: ToolRunner) -> ToolRunner:
        """Return the runner of calls in `span`: the sub-agent's, or `runner` without one."""
        agent = self._turns.agent_of(span, runner.toolset)
        if agent is None or self._make_agent_runner is None:
            return runner
        if span not in self._runners:
            self._runners[span] = self._make_agent_runner(agent)
        return self._runners[span]

    def _show_question(self, question: Approval) -> None:
        """Show a question about a call, or its answer, as a delta beside the call."""
        call = self._turns.calls[question.call_id]
        redacted = msgspec.structs.replace(
            question, args=self._redact(question.args), extra=self._redact(question.extra)
        )
        text = encode_event(redacted).decode()
        place: dict[str, Any] = {"turn": call.turn, "span": call.span, "parent": call.parent}
        self._log.append(Delta(of=question.type, block=call.call_id, text=text, **place))

    def _why_not_rerun(self, call: Call, args: dict[str, Any]) -> str:
        """Return why the record does not have the whole arguments of a call, "" if it does."""
        sources = (call, self._turns.approval(call.call_id))
        fields = {(e.seq, name) for e in sources if e is not None for name in ("args", "raw_args")}
        if fields & self._turns.cut:
            return "Not run again: its arguments were too large to be recorded whole."
        if _REDACTED.search(encode_canonical(clean_value(args))):
            return "Not run again: its arguments hold something that was redacted."
        return ""

    def _make_resume(self, batch: Execute, fresh: _FreshOutcomes, drift: Drift) -> Resume:
        """Return what the loop needs to continue, with recorded outcomes where none are fresh.

        The run of a sub-agent cannot be resumed: after its drift, the loop starts at the prompt.
        """
        if batch.span:
            prompt = next((n for n, e in enumerate(self._turns.events) if isinstance(e, User)), 0)
            events = self._turns.events[: prompt + 1]
            return Resume(events=events, calls=(), outcomes={}, updates={}, drift=drift)
        calls = {c: self._turns.calls[c] for c in batch.calls if c in self._turns.calls}
        recorded = self._turns.results
        outcomes = {c: fresh.outcomes.get(c) or _recorded_outcome(recorded.get(c)) for c in calls}
        updates = {c: fresh.updates.get(c, []) for c in calls}
        recorded_only = calls.keys() - fresh.outcomes.keys()
        for event in self._turns.events:
            if isinstance(event, Progress) and event.call_id in recorded_only:
                update = Update(event.text, event.fraction, event.data, event.message)
                updates[event.call_id].append(update)
        return Resume(
            events=list(self._log),
            calls=list(calls.values()),
            outcomes=outcomes,
            updates=updates,
            drift=drift,
        )


class _FreshOutcomes(Report):
    """Collects the outcomes and updates of calls that run again.

    `show` receives questions and their answers, which are not logged.
    """

    def __init__(self, show: Callable[[Approval], None]) -> None:
        self.outcomes: dict[str, Outcome] = {}
        self.updates: dict[str, list[Update]] = {}
        self._show = show
        self._open_question = ""  # the id of its call

    def approval(self, call_id: str, **fields: Any) -> None:
        """Show a question and its answer; a decision without a question is in the log already."""
        if fields["stage"] == "requested" or self._open_question == call_id:
            self._show(Approval(call_id=call_id, **fields))
            self._open_question = call_id if fields["stage"] == "requested" else ""

    def started(self, call_id: str) -> None:
        """Ignore the start, which the log already has."""

    def relay(self, call_id: str, event: Any) -> None:
        """Ignore the events of sub-agents, which the log already has."""

    def update(self, call_id: str, news: Update) -> None:
        """Keep an update, in case the run continues live."""
        self.updates.setdefault(call_id, []).append(news)

    def end(self, call_id: str, outcome: Outcome) -> None:
        """Keep the outcome."""
        self.outcomes[call_id] = outcome


def _recorded_outcome(result: Result | None) -> Outcome:
    """Return a recorded result as the outcome of its call; a call without one was not run."""
    if result is None:
        return Outcome("cancelled", "Not run.")
    return Outcome(
        result.status,
        result.content,
        result.display,
        result.duration,
        read_printed(result),
        result.attachments,
    )
