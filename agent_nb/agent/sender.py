"""Sends one request to the model, reads its answer into the log, and decides about a retry.

Rules
- A request is repeated only before the first part of its answer.
- In a text dialect, reading stops at the end of a batch or at the end marker. Native responses are
  read to the end, but for at most `LONGEST_TAIL` seconds after their finish reason.
- What a server refuses is replaced at once: tools by a text dialect (default tools are dropped),
  pictures by words, the schema of the answer by a final tool, a long history by a shorter one.
- A wrong key or request is for the user to correct: no other model takes over.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

import anyio
import msgspec

from .. import events
from ..errors import Cancelled, ModelError
from ..events import EventLog
from ..models import Failures, Limiter, Request
from .biller import Biller
from .history import CHARS_PER_TOKEN, estimate_tokens
from .limits import Clock, Meter
from .readiness import show_loading
from .request import RequestBuilder, digest_request
from .run_spec import Plan
from .turn import Turn
from .turn_calls import TurnCalls
from .turn_reader import TurnReader
from .typed.answer_check import AnswerCheck

LONGEST_TAIL = 2.0  # seconds of a native response after its finish reason

FALLBACK = "fallback"  # the code of a retry with the next model
FALLBACK_ATTEMPTS = 3
FALLBACK_WAIT = 5.0  # s
ADVICE = 'If you name a second model, it goes on in such a case: -m a,b or Agent("a,b").'


class Retry(msgspec.Struct, frozen=True):
    """A decision to repeat a request after `wait` seconds.

    `counted`: the failed request was an attempt. `code`, `message`, `raw`: of the error event.
    """

    wait: float
    code: str
    message: str
    raw: str = ""
    counted: bool = True


def choose_retry(
    fault: ModelError, attempt: int, failures: Failures, plan: Plan, builder: RequestBuilder
) -> Retry | None:
    """Return how to repeat the failed request number `attempt`, or None to give up.

    Side effects: adds the fault to `failures`, changes how `builder` builds the next request, adds
    advice to the message of a fault that ends the run.
    """
    if fault.code == "no_tools" and builder.dialect.native:
        return Retry(0.0, "no_tools", f"{fault} Going on {builder.send_no_tools()}.", fault.raw)
    if fault.code == "no_images" and builder.vision.omit(f"{fault} {fault.raw}"):
        message = f"{fault} Going on with words in place of the pictures."
        return Retry(0.0, "no_images", message, fault.raw)
    if fault.code == "no_schema" and builder.way_chooser.disable_schema():
        return Retry(0.0, "no_schema", f"{fault} Asking for the answer with a tool.", fault.raw)
    if fault.code == "context" and builder.shrink(fault.context):
        return Retry(0.0, "shortened", "Asking again with less of what came before.", str(fault))
    wait = None if failures.add(fault) else plan.retry_delay(fault, attempt)
    # with another model to turn to, only a rate limit is waited out
    impatient = bool(plan.fallback_models) and fault.status != 429
    if wait is None or (impatient and (attempt >= FALLBACK_ATTEMPTS or wait > FALLBACK_WAIT)):
        return _switch_model(fault, plan)
    next_attempt = attempt if fault.shared else attempt + 1
    message = f"{fault.brief}. Trying again in {wait:.1f} s (attempt {next_attempt})."
    return Retry(wait, "retry", message, fault.raw or str(fault), counted=not fault.shared)


def _switch_model(fault: ModelError, plan: Plan) -> Retry | None:
    """Return a retry with the next model; None without one, or if `fault` is not an outage."""
    if not Failures.is_outage(fault):
        return None
    if not plan.fallback_models:
        # codes other than `provider`, such as a wrong address, are for the user to correct
        if not plan.is_fallback and fault.code == "provider":
            fault.advise(ADVICE)
        return None
    details = str(fault) if str(fault).rstrip(".") != fault.brief else ""
    return Retry(0.0, FALLBACK, f"{fault.brief}.", fault.raw or details)


class RequestSender(msgspec.Struct, frozen=True):
    """Sends the requests of one run while its plan stays the same.

    `answers` checks the answers of a type, `calls` ends the calls of an answer that broke off.
    """

    plan: Plan
    log: EventLog
    meter: Meter
    builder: RequestBuilder
    answers: AnswerCheck
    calls: TurnCalls

    async def send(self, turn: Turn, attempt: int, failures: Failures) -> Retry | None:
        """Make request number `attempt` of a turn; return how to repeat it if it failed.

        The answer goes into `turn` and the log. Raises ModelError if the request failed and is not
        repeated, Cancelled at a limit.
        """
        # a first request has nothing to finish yet, even with a limit of one turn
        near_limit = self.meter.near_limit() if self.meter.turns else ""
        request = self.builder.build(last=bool(near_limit))
        for error in self.builder.vision.take_errors():
            self.log.append(error)
        sent = estimate_tokens(request.messages)
        biller = Biller(self.meter, self.plan)
        if reason := biller.reached_limit(events.Counts(input=sent)):
            raise Cancelled("limit", f"{reason} (this request alone has about {sent:,})")
        node = self._enter_node(turn, attempt, request, near_limit)
        clock = Clock()
        check = self.answers.begin_turn(turn, self.builder.output_way)
        reader = TurnReader(self.builder.dialect, turn, self.plan.redaction, check)
        result, retry = "cancelled", None
        try:
            await self._read_answer(request, reader, clock, sent, biller)
            result = "ok"
        except ModelError as fault:
            result = f"error: {fault.code} {fault.status or ''}".strip()
            if not reader.received:
                retry = choose_retry(fault, attempt, failures, self.plan, self.builder)
            if retry is None:
                raise
        finally:
            incomplete = result != "ok" or turn.broken
            for event in reader.close(incomplete=incomplete):
                self.log.append(event)
            data = _describe_exit(turn, retry)
            self.log.append(events.Node(phase="exit", result=result, data=data, **node))
            if result != "ok":
                self.calls.abandon(turn)
            if reader.received:
                written = reader.size // CHARS_PER_TOKEN
                metric = biller.charge_request(turn, clock, sent, written, complete=not incomplete)
                self.log.append(metric)
        return retry

    def _enter_node(self, turn: Turn, attempt: int, request: Request, limit: str) -> dict[str, Any]:
        """Log that a request begins; return the fields that the node of its end has too.

        `limit`: the one that makes this the last request, in words, or "".
        """
        self.meter.requests += 1
        span = f"llm-{self.meter.requests}"
        node: dict[str, Any] = {"name": "llm", "span": span, "turn": turn.number}
        data = {
            "attempt": attempt,
            "messages": len(request.messages),
            "digest": digest_request(request),
            "internal": True,
            **({"last": limit} if limit else {}),
        }
        self.log.append(events.Node(phase="enter", data=data, **node))
        return node

    async def _read_answer(
        self, request: Request, reader: TurnReader, clock: Clock, sent: int, biller: Biller
    ) -> None:
        """Read the answer into the log; `sent`: the estimated tokens of the request."""
        turn = reader.turn
        tail, model = anyio.CancelScope(), self.plan.model
        with tail, show_loading(model, self.log_status):
            # a model with a limiter of its own waits in `stream`, inside this block
            slot = Limiter.wait_for_slot(model, self.log_status)
            async with slot, aclosing(model.stream(request)) as stream:
                async for batch in stream:
                    for event in reader.feed(batch):
                        clock.mark_first_event()
                        self.log.append(event)
                    so_far, _ = turn.count_usage(sent, reader.size // CHARS_PER_TOKEN)
                    if reason := biller.reached_limit(so_far, turn.continued):
                        raise Cancelled("limit", reason)
                    # the dialect needs no more text; a native response goes on, unless it broke
                    if reader.stopped and (turn.broken or not reader.native):
                        break
                    # after the finish reason only usage may come; some servers never close
                    if turn.finish and tail.deadline == float("inf"):
                        tail.deadline = anyio.current_time() + LONGEST_TAIL
        clock.stop()

    def log_status(self, text: str) -> None:
        """Log what the run waits for ("": nothing) as a delta, which is not recorded."""
        self.log.append(events.Delta(of="status", text=text))


def _describe_exit(turn: Turn, retry: Retry | None) -> dict[str, Any]:
    """Return the `data` of the node that ends a request: its status, model and retry delay."""
    data: dict[str, Any] = {"status": turn.head.status, "model": turn.head.model}
    if turn.continued:
        data["continued"] = turn.continued
    if retry is not None and retry.wait:
        data["retry_in"] = round(retry.wait, 3)
    return data
