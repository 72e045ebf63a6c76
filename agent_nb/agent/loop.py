"""The loop of one run: request -> stream of the model -> parts -> events -> tools, repeated.

It appends to the log instead of yielding events, because a run must continue and end properly even
if nothing reads it. However a run ends, its open blocks are closed, every call has one result, and
`end` is the last event.

Rule: no protocol, provider, widget or HTTP here; the `Plan` (`run_spec`) has what the run needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import anyio.lowlevel
import msgspec

from .. import events
from ..errors import Cancelled, ModelError, ToolError, UsageError
from ..events import Event, EventLog, Interrupt
from ..models import Failures, Limiter
from ..wire import replace_surrogates
from .biller import Biller
from .drift import Resume
from .limits import Meter
from .readiness import refuse_unless_live, resolve_model_name
from .request import RequestBuilder
from .run_spec import Plan
from .sender import FALLBACK, RequestSender, Retry
from .turn import CallIds, Turn
from .turn_calls import TurnCalls
from .typed.answer_check import NOT_ALONE, AnswerCheck
from .typed.output_type import InvalidOutput

MALFORMED = "malformed_execute"  # the code of an error event
EMPTY = "The batch was empty. Call a tool, or answer without one."  # the model reads this


class Loop:
    """One live run; `run` is called once.

    `user`: the event of the prompt. `history`: the events of earlier runs of the conversation.
    `scope`: cancelling it stops the run. `resume`: a replay to continue, in place of a new run.
    """

    def __init__(
        self,
        plan: Plan,
        log: EventLog,
        user: events.User,
        history: Sequence[Sequence[Event]],
        scope: anyio.CancelScope,
        *,
        resume: Resume | None = None,
    ) -> None:
        self._log, self._user, self._history, self._scope = log, user, history, scope
        self._meter = Meter(plan.limits)
        self._answers = AnswerCheck(plan.output)
        self._ids = CallIds()
        self._stop_cause = Cancelled("user")  # until `cancel` gives a reason
        self._resume = resume
        self._use_plan(plan)

    def _use_plan(self, plan: Plan) -> None:
        """Use `plan` from now on; a later plan has other tools, or another model."""
        self._plan = plan
        self._builder = RequestBuilder(plan, self._log, self._history)
        self._calls = TurnCalls(plan, self._log, self._meter, self.cancel, self._find_stop_cause)
        self._sender = RequestSender(
            plan, self._log, self._meter, self._builder, self._answers, self._calls
        )

    def cancel(self, why: Cancelled) -> None:
        """Stop the run; the first reason counts."""
        if not self._scope.cancel_called:
            self._stop_cause = why
            self._scope.cancel()

    async def run(self) -> None:
        """Run to the end. Errors go to the log; only cancelling the task itself raises."""
        status: events.EndStatus = "error"
        reason = ""
        seconds = self._plan.limits.seconds
        self._scope.deadline = anyio.current_time() + seconds if seconds else float("inf")
        try:
            with self._scope:
                await self._log_beginning()
                status, reason = await self._run_turns()
            if self._scope.cancelled_caught:
                status, reason = self._log_stop(self._find_stop_cause())
        except Cancelled as stop:
            status, reason = self._log_stop(stop)
        except ModelError as fault:
            self._log_error(fault.code, str(fault), raw=fault.raw, retryable=fault.retryable)
        except (UsageError, ToolError) as fault:  # raised by `add_late_tools` (MCP servers)
            self._log_error("tools", str(fault))
        except Exception as fault:
            while isinstance(fault, ExceptionGroup):  # of the tasks of a batch
                fault = fault.exceptions[0]
            self._log_error("internal", f"{type(fault).__name__}: {fault}")
        if not self._log.ended:
            files = self._plan.runner.files()
            extra = {"files": files} if files else None
            self._log.append(events.End(status=status, finish_reason=reason, extra=extra))

    async def _log_beginning(self) -> None:
        """Log the start of the run and its notes, even if the model or its tools are missing."""
        name = ""
        try:
            refuse_unless_live(self._plan.model)
            name = await resolve_model_name(self._plan)
            add_tools = self._plan.add_late_tools  # which starts MCP servers
            # even the same plan: while its name was asked for, the model may have learned more
            log_status = self._sender.log_status
            self._use_plan(self._plan if add_tools is None else await add_tools(log_status))
        finally:
            if self._resume is not None:
                self._log_replayed(self._resume)
            else:
                self._log_start(name)
            for note in self._plan.notes:
                if isinstance(note, str):
                    note = events.State(kind="conversation", payload={"note": note})  # noqa: PLW2901
                payload = self._plan.redaction.value(note.payload)
                self._log.append(msgspec.structs.replace(note, payload=payload))
            for warning in self._plan.warnings:
                self._log.append(events.Error(code="policy", message=warning))

    def _log_start(self, model_name: str) -> None:
        """Log start, prompt and context; `model_name`: as the server names it, "" if unknown."""
        redacted = self._plan.redaction.value(replace_surrogates(model_name))
        changes = {"model": redacted} if model_name else {}
        self._log.append(events.RunStart(**{**self._plan.start, **changes}))
        self._log.append(self._user)
        if (context := self._plan.context.make_event(self._plan.redaction)) is not None:
            self._log.append(context)

    def _find_stop_cause(self) -> Cancelled:
        """Return why the scope was cancelled: its deadline, or the reason given to `cancel`."""
        # the initial cause, "user" without detail, says nothing: the deadline may be the cause
        has_reason = self._stop_cause.reason != "user" or self._stop_cause.detail
        if anyio.current_time() >= self._scope.deadline and not has_reason:
            return Cancelled(
                "timeout", f"{Interrupt.AT_LIMIT}{self._plan.limits.seconds:g} seconds"
            )
        return self._stop_cause

    def _log_stop(self, cause: Cancelled) -> tuple[events.EndStatus, str]:
        """Log why the run was stopped; return status and reason for its `end`."""
        reason: Any = cause.reason if cause.reason in ("user", "timeout", "limit") else "user"
        self._log.append(events.Interrupt(reason=reason, detail=cause.detail))
        return ("interrupted" if reason == "user" else "limit"), reason

    def _log_error(self, code: str, message: str, **fields: Any) -> None:
        value, turn = self._plan.redaction.value, self._meter.turns
        fields["raw"] = value(fields.get("raw", ""))
        self._log.append(events.Error(code=code, message=value(message), turn=turn, **fields))

    async def _run_turns(self) -> tuple[events.EndStatus, str]:
        """Run turns until one answers or breaks; return status and reason for the run's `end`.

        Raises Cancelled at a limit, and ModelError.
        """
        await self._log_left_out()
        while True:
            # apply a cancellation that came earlier, or during code that never awaits
            await anyio.lowlevel.checkpoint()
            if message := self._meter.reached_limit():
                raise Cancelled("limit", message)
            turn = await self._request_turn()
            self._meter.turns += 1 + turn.continued
            if (ending := await self._finish_turn(turn)) is not None:
                return ending

    async def _finish_turn(self, turn: Turn) -> tuple[events.EndStatus, str] | None:
        """Run the calls of a turn, or judge its answer.

        Return status and reason for the run's `end`; None if the model is to continue.
        """
        if turn.broken:
            self._calls.abandon(turn)
            return "error", turn.finish
        if turn.executed and turn.calls:  # a complete batch: its results go back to the model
            await self._calls.execute(turn)
            if self._answers.beside_calls:
                self._log_error(NOT_ALONE, self._answers.beside_calls)
            if turn.malformed:
                self._log_error(MALFORMED, turn.malformed)
            return None
        self._calls.refuse(turn)
        if turn.executed and not turn.ended:  # an empty batch
            self._log_error(MALFORMED, turn.malformed or EMPTY)
        # without the end marker, a turn is an answer unless something goes back to the model
        elif turn.ended or not (turn.feedback or turn.all_calls):
            verdict = self._answers.verdict
            if not verdict.fault:
                return "ok", turn.finish or ("end" if turn.ended else "stop")
            message = self._builder.write_correction(verdict)
            self._log_error(InvalidOutput.CODE, message, retryable=not verdict.final)
            if verdict.final:
                return "error", turn.finish
        self._meter.count_result("error")
        return None

    async def _log_left_out(self) -> None:
        """Log which earlier runs do not fit into the model's context."""
        for event in await self._builder.report_left_out(Biller(self._meter, self._plan)):
            self._log.append(event)

    def _log_replayed(self, resume: Resume) -> None:
        """Begin with the events of a replay up to its drift and the outcomes of its open batch."""
        context = self._plan.context.make_event(self._plan.redaction)
        for event in resume.rebase_events(self._log.run, self._log.now(), context):
            self._log.append(event)
        self._meter.recount(resume.events)
        self._answers.recount(resume.events)
        for past in resume.events:
            if isinstance(past, events.Call):
                self._ids.assign(past.call_id, past.turn)
            elif past.span:  # what a sub-agent met changes nothing for this run
                continue
            elif isinstance(past, events.Error):
                self._builder.repeat_fallback(past)
            elif self._plan.fallback_models and getattr(past, "kind", "") == "model":
                self._use_plan(self._plan.with_next_model())
        drift = msgspec.to_builtins(resume.drift)
        self._log.append(events.Extension(namespace="agent_nb", name="drift", payload=drift))
        self._calls.restore(resume)

    async def _request_turn(self) -> Turn:
        """Return the next turn of the model, retrying the request if need be. Raises ModelError."""
        attempt, failures = 1, Failures()
        while True:
            turn = Turn(self._meter.turns + 1, self._ids)
            retry = await self._sender.send(turn, attempt, failures)
            if retry is None:
                return turn
            attempt += retry.counted
            if retry.code == FALLBACK:
                attempt, failures = 1, Failures()
                self._use_next_model(retry)
            else:
                self._log_error(retry.code, retry.message, raw=retry.raw, retryable=True)
            if retry.code in ("shortened", FALLBACK):  # the context may be smaller than before
                await self._log_left_out()
            await Limiter.wait_before_retry(retry.wait)

    def _use_next_model(self, retry: Retry) -> None:
        """Continue with the next model of the plan. Raises ModelError if it cannot be used."""
        before, plan = self._plan.model, self._plan.with_next_model()
        refuse_unless_live(plan.model)
        payload = {"model": plan.model.name, "instead_of": before.name}
        payload |= {"why": retry.message, "raw": retry.raw}
        self._log.append(events.State(kind="model", payload=self._plan.redaction.value(payload)))
        self._use_plan(plan)
