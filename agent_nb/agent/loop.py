"""The loop of one run: context -> messages -> model stream -> parts -> events -> tools, repeated.

Why it appends to the log instead of yielding: a run must continue and end properly even if nothing
reads it. `agent.Stream` is the asynchronous iterator over it.

Rules
- No protocol, provider, widget or HTTP here: model, dialect, tools and filters are in the `Plan`.
- In a text dialect, reading stops once a batch is complete. Native responses are read to the end,
  but for at most `TAIL` seconds after their finish reason.
- A request may be retried before the first part of its answer, never after it.
- Limits of tokens and turns apply within a turn too: tokens are estimated while text, reasoning and
  arguments stream in.
- Whatever happens, open blocks are closed, every call gets one result, and exactly one `end` is the
  last event.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import anyio
import anyio.lowlevel
import msgspec

from .. import events
from ..errors import Cancelled, ModelError, ToolError, UsageError
from ..events import AT, Event, EventLog
from ..models import Failures, Request
from ..wire import replace_surrogates
from . import history as context
from .bill import Bill
from .call_ids import CallIds
from .drift import Resume
from .limits import Clock, Meter
from .readiness import (
    loading_shown,
    name_of,
    open_late_tools,
    refuse_unless_live,
    wait_for_place,
)
from .request import Prompt, digest_request
from .retry import FALLBACK, Retry, retry_of
from .run_spec import Plan
from .turn import Turn
from .turn_calls import TurnCalls
from .turn_reader import Pipeline
from .typed.answer_check import NOT_ALONE, AnswerCheck
from .typed.output_type import InvalidOutput

TAIL = 2.0
MALFORMED = "malformed_execute"
EMPTY = "The batch was empty. Call a tool, or answer without one."


class Loop:
    """One run in progress; `run` is called once."""

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
        self._log = log
        self._user = user
        self._history = history
        self._scope = scope
        self._meter = Meter(plan.limits)
        self._follow(plan)
        self._ids = CallIds()
        self._why = Cancelled("user")
        self._requests = 0
        self._resume = resume
        self._answers = AnswerCheck(plan.output)

    def _follow(self, plan: Plan) -> None:
        self._plan = plan
        self._prompt = Prompt(plan, self._log, self._history)
        self._calls = TurnCalls(plan, self._log, self._meter, self.cancel)

    def cancel(self, why: Cancelled) -> None:
        """Stop the run; the first reason counts."""
        if not self._scope.cancel_called:
            self._why = why
            self._scope.cancel()

    async def run(self) -> None:
        """Run to the end. Raises nothing; errors are in the log."""
        status: events.EndStatus = "error"
        reason = ""
        seconds = self._plan.limits.seconds
        timed = anyio.current_time() + seconds if seconds else float("inf")
        self._scope.deadline = timed
        try:
            with self._scope:
                await self._begin()
                status, reason = await self._turns()
            if self._scope.cancelled_caught:
                status, reason = self._stopped(timed)
        except Cancelled as stop:
            status, reason = self._interrupted(stop)
        except ModelError as fault:
            self._error(fault.code, str(fault), raw=fault.raw, retryable=fault.retryable)
        except (UsageError, ToolError) as fault:
            self._error("tools", str(fault))
        except Exception as fault:
            self._error("internal", f"{type(fault).__name__}: {fault}")
        if not self._log.ended:
            files = self._plan.runner.files()
            self._log.append(
                events.End(
                    status=status, finish_reason=reason, extra={"files": files} if files else None
                )
            )

    async def _begin(self) -> None:
        """Log the start of the run, even if the model or its tools are not there, and the notes."""
        name = ""
        try:
            refuse_unless_live(self._plan.model)
            name = await name_of(self._plan)
            self._follow(await open_late_tools(self._plan, self._log))
        finally:
            if self._resume is not None:
                self._take_up(self._resume)
            else:
                named = (
                    {"model": self._plan.redaction.value(replace_surrogates(name))} if name else {}
                )
                self._log.append(events.RunStart(**{**self._plan.start, **named}))
                self._log.append(self._user)
                if (beside := self._plan.context.event(self._plan.redaction)) is not None:
                    self._log.append(beside)
            for note in self._plan.notes:
                self._log.append(
                    events.State(kind="conversation", payload={"note": note})
                    if isinstance(note, str)
                    else note
                )
            for warning in self._plan.warnings:
                self._log.append(events.Error(code="policy", message=warning))

    def _stopped(self, timed: float) -> tuple[events.EndStatus, str]:
        if anyio.current_time() >= timed and self._why.reason == "user" and not self._why.detail:
            self._why = Cancelled("timeout", f"{AT}{self._plan.limits.seconds:g} seconds")
        return self._interrupted(self._why)

    def _interrupted(self, why: Cancelled) -> tuple[events.EndStatus, str]:
        reason: Any = why.reason if why.reason in ("user", "timeout", "limit") else "user"
        self._log.append(events.Interrupt(reason=reason, detail=why.detail))
        return ("interrupted" if reason == "user" else "limit"), reason

    def _error(self, code: str, message: str, **fields: Any) -> None:
        value, turn = self._plan.redaction.value, self._meter.turns
        fields["raw"] = value(fields.get("raw", ""))
        self._log.append(events.Error(code=code, message=value(message), turn=turn, **fields))

    async def _turns(self) -> tuple[events.EndStatus, str]:
        await self._remember()
        while True:
            # apply a cancellation that came earlier, or during code that never awaits
            await anyio.lowlevel.checkpoint()
            if message := self._meter.hit():
                raise Cancelled("limit", message)
            turn = await self._model_turn()
            self._meter.took(1 + turn.continued)
            if turn.broken:
                self._calls.abandon(turn)
                return "error", turn.finish
            if turn.executed and turn.calls:
                await self._calls.execute(turn)
                if self._answers.beside:
                    self._error(NOT_ALONE, self._answers.beside)
                if turn.malformed:
                    self._error(MALFORMED, turn.malformed)
                continue
            self._calls.refuse(turn)
            if turn.executed and not turn.ended:
                self._error(MALFORMED, turn.malformed or EMPTY)
                self._meter.outcome(False)
                continue
            if turn.ended or not (turn.feedback or turn.calls or turn.rejected):
                if not (verdict := self._answers.verdict).fault:
                    return "ok", turn.finish or ("end" if turn.ended else "stop")
                message = self._prompt.correction(verdict)
                self._error(InvalidOutput.CODE, message, retryable=not verdict.last)
                if verdict.last:
                    return "error", turn.finish
            self._meter.outcome(False)

    async def _remember(self) -> None:
        for event in await self._prompt.remember(Bill(self._meter, self._plan)):
            self._log.append(event)

    def _take_up(self, resume: Resume) -> None:
        """Begin with the events of a replay up to its drift and the outcomes of its open batch."""
        beside = self._plan.context.event(self._plan.redaction)
        for event in resume.restamped(self._log.run, self._log.now(), beside):
            self._log.append(event)
        self._meter.recount(resume.events)
        self._answers.recount(resume.events)
        self._requests = resume.requests
        for past in resume.events:
            if isinstance(past, events.Call):
                self._ids.take(past.call_id, past.turn)
            elif isinstance(past, events.Error):
                self._prompt.take_up(past)
            elif isinstance(past, events.State) and past.kind == "model" and self._plan.spares:
                self._follow(self._plan.with_spare())
        self._log.append(
            events.Extension(
                namespace="agent_nb", name="drift", payload=msgspec.to_builtins(resume.drift)
            )
        )
        self._calls.restore(resume)

    async def _model_turn(self) -> Turn:
        """Return the next model turn, retrying the request if need be."""
        attempt, failures = 1, Failures()
        while True:
            turn = Turn(self._meter.turns + 1, self._ids)
            more = await self._request(turn, attempt, failures)
            if more is None:
                return turn
            attempt += more.counted
            if more.code == FALLBACK:
                attempt, failures = 1, Failures()
                self._next_model(more)
            else:
                self._error(more.code, more.message, raw=more.raw, retryable=True)
            if more.code in ("shortened", FALLBACK):
                await self._remember()
            await more.rest()

    def _next_model(self, more: Retry) -> None:
        """Go on with the next model of the plan, for the rest of the run. Raises ModelError."""
        before, plan = self._plan.model, self._plan.with_spare()
        refuse_unless_live(plan.model)
        payload = {"model": plan.model.name, "instead_of": before.name}
        payload |= {"why": more.message, "raw": more.raw}
        self._log.append(events.State(kind="model", payload=self._plan.redaction.value(payload)))
        self._follow(plan)

    async def _request(self, turn: Turn, attempt: int, failures: Failures) -> Retry | None:
        """Make one request; return how to repeat it, None if it was answered.

        Raises ModelError if it failed and is not retried.
        """
        last = self._meter.near() if self._meter.turns else ""
        request = self._prompt.request(last=bool(last))
        for note in self._prompt.notes():
            self._log.append(note)
        sent = context.estimate_tokens(request.messages)
        bill = Bill(self._meter, self._plan)
        if reason := bill.hit(events.Counts(input=sent)):
            raise Cancelled("limit", f"{reason} (this request alone has about {sent:,})")
        node: dict[str, Any] = {
            "name": "llm",
            "span": f"llm-{self._requests + 1}",
            "turn": turn.number,
        }
        self._requests += 1
        data = {
            "attempt": attempt,
            "messages": len(request.messages),
            "digest": digest_request(request),
            "internal": True,
            **({"last": last} if last else {}),
        }
        self._log.append(events.Node(phase="enter", data=data, **node))
        clock = Clock()
        check = self._answers.turn(turn, self._prompt.way)
        pipeline = Pipeline(self._prompt.dialect, turn, self._plan.redaction, check)
        result = "cancelled"
        more: Retry | None = None
        try:
            await self._read(request, pipeline, clock, sent, bill)
            result = "ok"
        except ModelError as fault:
            result = f"error: {fault.code} {fault.status or ''}".strip()
            if not pipeline.heard:
                more = retry_of(fault, attempt, failures, self._plan, self._prompt)
            if more is None:
                raise
        finally:
            cut = result != "ok" or turn.broken
            for event in pipeline.close(incomplete=cut):
                self._log.append(event)
            self._log.append(
                events.Node(phase="exit", result=result, data=_outcome(turn, more), **node)
            )
            if result != "ok":
                self._calls.abandon(turn)
            if pipeline.heard:
                written = pipeline.size // context.CHARS_PER_TOKEN
                self._log.append(bill.metric(turn, clock, sent, written, whole=not cut))
        return more

    async def _read(
        self, request: Request, pipeline: Pipeline, clock: Clock, sent: int, bill: Bill
    ) -> None:
        log, turn = self._log, pipeline.turn
        tail, model = anyio.CancelScope(), self._plan.model
        with tail, loading_shown(model, log):
            async with wait_for_place(model, log), aclosing(model.stream(request)) as stream:
                async for batch in stream:
                    for event in pipeline.feed(batch):
                        clock.first()
                        log.append(event)
                    so_far, _ = turn.spent(sent, pipeline.size // context.CHARS_PER_TOKEN)
                    if reason := bill.hit(so_far, turn.continued):
                        raise Cancelled("limit", reason)
                    if pipeline.stopped and (turn.broken or not pipeline.native):
                        break
                    if turn.finish and tail.deadline == float("inf"):
                        tail.deadline = anyio.current_time() + TAIL
        clock.stop()


def _outcome(turn: Turn, more: Retry | None) -> dict[str, Any]:
    """Return the data of a request's exit node: the answer's head, continuations, retry delay."""
    data = {"status": turn.head.status, "model": turn.head.model}
    data |= {"continued": turn.continued} if turn.continued else {}
    return data | ({"retry_in": round(more.wait, 3)} if more is not None and more.wait else {})
