"""Replay a recorded run, without a model.

Why: Run All should be free, quick and safe until something changes, and a notebook should be
testable without a key or a network.

Rules
- A replay yields the recorded events with their ids and times; the record itself is not changed.
- Calls that touch the kernel run again (`RecordedTurns.must_rerun`), one after another, so that
  later cells find their variables. Their fresh results are compared with the recorded ones, not
  logged.
- A question about such a call is shown as a live delta; the log keeps the recorded decision.
- The first difference is the drift. A replay reports it at its end or, with `RecordedTurns.live`,
  stops there and offers what the loop needs to continue (`Resume`).
- Calls whose arguments were cut or redacted never run again; `recorded_turns` has the other
  reasons.
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
    is_tool_event,
    list_missing_events,
    result_fields,
)
from ..record import normalize_value
from ..tools import (
    Job,
    Outcome,
    Report,
    Tool,
    ToolRunner,
    Update,
    find_used_variables,
    remove_chart_notes,
)
from ..wire import Redaction, encode_canonical
from . import result_pictures
from .attachments import recorded_pictures
from .clean_json import clean_value
from .dependencies import is_built_in
from .drift import Drift, Played, Resume
from .history import read_printed
from .recorded_turns import RecordedTurns
from .replay_check import Checked, ReplayCheck, compares_pictures

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
        self._rerun_ids: list[str] = []  # the calls that ran again
        self._runners: dict[str, ToolRunner] = {}  # of sub-agents, by span
        self._redact = redaction.value if redaction is not None else lambda value: value
        self._scope = scope or anyio.CancelScope()
        self._stop_detail = ""
        self._unrecorded: list[dict[str, Any]] = []  # pictures and displays that the record lacks
        self._drift: Drift | None = None
        self._resume: Resume | None = None
        self._calls = {e.call_id: e for e in turns.events if isinstance(e, Call)}
        self._results = {e.call_id: e for e in turns.events if isinstance(e, Result)}
        self._finished_calls = turns.finished_calls
        self._checked: Checked | None = None  # set once the log has ended

    @property
    def played(self) -> Played:
        """The outcome so far; `checked`, of a test, is set once the log has ended."""
        if self._checked is None and self._strict is not None and self._log.ended:
            self._checked = self._strict.make_outcome(self._rerun_ids)
        return Played(
            log=self._log,
            drift=self._drift,
            resume=self._resume,
            checked=self._checked,
            unrecorded=tuple(self._unrecorded),
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
                fresh = await self._rerun(event, self._runner)
                self._drift = self._drift or self._find_drift(event, fresh)
                if self._drift is not None and self._turns.live:
                    self._resume = self._make_resume(event, fresh, self._drift)
                    return

    async def _rerun(self, batch: Execute, runner: ToolRunner) -> _FreshOutcomes:
        """Run the kernel calls of a batch again, in start order, and return the fresh outcomes."""
        fresh = _FreshOutcomes(self._show_question)
        for call in self._finished_calls:
            # a forged record may name a call in several batches
            if call.call_id not in batch.calls or call.call_id in self._rerun_ids:
                continue
            tool = self._turns.tool_of(call, runner.toolset)
            if tool is None or not self._turns.must_rerun(tool):
                continue
            call_runner = self._runner_of(call.span, runner)
            args = self._turns.arguments(call)
            if refusal := self._why_not_rerun(call, args):
                fresh.end(call.call_id, Outcome("denied", refusal))
            else:
                self._rerun_ids.append(call.call_id)
                await call_runner.run([Job(call.call_id, call.name, args)], fresh)
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
        call = self._calls[question.call_id]
        redacted = msgspec.structs.replace(
            question, args=self._redact(question.args), extra=self._redact(question.extra)
        )
        text = encode_event(redacted).decode()
        place: dict[str, Any] = {"turn": call.turn, "span": call.span, "parent": call.parent}
        self._log.append(Delta(of=question.type, block=call.call_id, text=text, **place))

    def _why_not_rerun(self, call: Call, args: dict[str, Any]) -> str:
        """Return why the record does not have the whole arguments of a call, "" if it does."""
        if (call.seq, "args") in self._turns.cut or (call.seq, "raw_args") in self._turns.cut:
            return "Not run again: its arguments were too large to be recorded whole."
        if _REDACTED.search(encode_canonical(clean_value(args))):
            return "Not run again: its arguments hold something that was redacted."
        return ""

    def _find_drift(self, batch: Execute, fresh: _FreshOutcomes) -> Drift | None:
        """Return the first difference between fresh and recorded results of a batch, or None."""
        for call_id in batch.calls:
            outcome, result = fresh.outcomes.get(call_id), self._results.get(call_id)
            if outcome is None or result is None:
                continue
            content = self._redact(clean_value(outcome.content))
            difference: str | None = ""  # "": the statuses or texts differ; None: nothing differs
            if outcome.status == result.status:
                difference = self._describe_difference(call_id, result, content, outcome)
            if difference is None:
                continue
            recorded = _result_text(result.status, result.content)
            current = _result_text(outcome.status, content)
            if recorded == current:
                difference = difference or _describe_types(result.content, content)
            reads: list[str] = []  # variables that made an undeclared function run again
            if (tool := self._tool_of(call_id)) is not None and tool.effect == "none":
                reads = sorted(find_used_variables(tool.invoke))
            return Drift(
                seq=result.seq,
                call_id=call_id,
                name=result.name,
                how=difference,
                recorded=recorded,
                fresh=current,
                reads=reads,
            )
        return None

    def _describe_difference(
        self, call_id: str, result: Result, content: Any, outcome: Outcome
    ) -> str | None:
        """Return how a result differs in words ("": in its text), None if it does not.

        `content`: the outcome's, in the form that would be recorded.
        """
        if (result.seq, "content") in self._turns.cut:
            return None
        tool, contents = self._tool_of(call_id), [result.content]
        if is_tool_event(result.content):  # the content inside it counts too
            contents.append(result_fields(result.content)["content"])
        # pictures and display as they would be recorded
        outcome = msgspec.structs.replace(
            outcome,
            display=self._redact(clean_value(outcome.display)),
            attachments=tuple(recorded_pictures(outcome.attachments, self._redact)),
        )
        names_pictures = tool is not None and is_built_in(tool)
        outcome, cell_displays = result_pictures.split_cell_displays(
            result, outcome, names_pictures=names_pictures
        )
        self._unrecorded += cell_displays
        # the text may name pictures and charts differently; the pictures themselves are compared
        # below
        normalizers: list[Callable[[Any], Any]] = [remove_chart_notes]
        if result_pictures.is_before_pictures(result, outcome):
            normalizers.insert(0, result_pictures.unify_names)
            self._unrecorded += result_pictures.find_cell_pictures(result, outcome)
        if outcome.attachments:
            normalizers.append(result_pictures.without_sizes)
        for normalize in normalizers:
            content, contents = normalize(content), [normalize(c) for c in contents]
        if self._strict is not None and tool is not None:
            return self._strict.describe_difference(tool, contents, result, content, outcome)
        if normalize_value(content) not in map(normalize_value, contents):
            return ""
        if (result.seq, "attachments") in self._turns.cut:
            return None
        if tool and not compares_pictures(tool.compare):
            return None
        pictures = result_pictures.compare_result_pictures(result, outcome, _same_text)
        return pictures.difference or None

    def _tool_of(self, call_id: str) -> Tool | None:
        call = self._calls.get(call_id)
        if self._runner is None or call is None:
            return None
        return self._turns.tool_of(call, self._runner.toolset)

    def _make_resume(self, batch: Execute, fresh: _FreshOutcomes, drift: Drift) -> Resume:
        """Return what the loop needs to continue, with recorded outcomes where none are fresh.

        The run of a sub-agent cannot be resumed: after its drift, the loop starts at the prompt.
        """
        if batch.span:
            prompt = next((n for n, e in enumerate(self._turns.events) if isinstance(e, User)), 0)
            events = self._turns.events[: prompt + 1]
            return Resume(events=events, calls=(), outcomes={}, updates={}, drift=drift)
        outcomes = {
            c: fresh.outcomes.get(c) or _recorded_outcome(self._results.get(c)) for c in batch.calls
        }
        updates = {
            c: fresh.updates.get(c, []) if c in fresh.outcomes else self._recorded_updates(c)
            for c in batch.calls
        }
        calls = [self._calls[c] for c in batch.calls if c in self._calls]
        return Resume(
            events=list(self._log), calls=calls, outcomes=outcomes, updates=updates, drift=drift
        )

    def _recorded_updates(self, call_id: str) -> list[Update]:
        return [
            Update(text=e.text, fraction=e.fraction, data=e.data, message=e.message)
            for e in self._turns.events
            if isinstance(e, Progress) and e.call_id == call_id
        ]


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


def _same_text(recorded: str, fresh: str) -> bool:
    return normalize_value(recorded) == normalize_value(fresh)


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


def _describe_types(recorded: Any, fresh: Any) -> str:
    """Describe two results that are written alike but differ in type, such as "1" and 1."""
    old, new = (type(clean_value(value)).__name__ for value in (recorded, fresh))
    return f"it is recorded as {old} and now {new}: {_result_text('ok', fresh)}"


def _result_text(status: str, content: Any) -> str:
    text = content if isinstance(content, str) else encode_canonical(clean_value(content))
    return text if status == "ok" else f"{status}: {text}"
