"""Build the requests of a run from history and log, within the model's context.

Rules
- Every request is built anew; only the dialect and a summary are kept between turns.
- What the window leaves out is logged before the request that lacks it: the first one, or the one
  after a refusal as too long.
- Every request, one for a summary included, passes `outgoing`. Instructions and grammar are built
  from tools without keys.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from .. import events
from ..dialects import Dialect, Typed
from ..errors import ModelError
from ..events import Event, EventLog
from ..models import Message, Request, ToolSpec, text_message
from . import compaction, vision
from . import history as context
from .bill import Bill
from .limits import Clock
from .outgoing import redact_request, redact_schema, redact_tool
from .run_spec import Plan
from .turn import Turn
from .typed.answer_check import Verdict
from .typed.output_way import Way, Ways

RESERVE = 1024  # tokens of the context kept free for the answer


class Prompt:
    """The requests of one run; `dialect` may change during it."""

    def __init__(self, plan: Plan, log: EventLog, history: Sequence[Sequence[Event]]) -> None:
        self.dialect = plan.dialect
        self._plan = plan
        self._log = log
        self._history = history
        self._summary = ""
        self._size = plan.model.context  # tokens, 0: unknown
        self._vision = vision.Vision(plan.model)
        self._tools = [redact_tool(spec, plan.redaction) for spec in plan.tools]
        output = plan.output.wire if plan.output is not None else None
        self.ways = Ways(output and redact_schema(output, plan.redaction), plan.model, plan.tools)

    def fall_back(self) -> None:
        """Continue in the fallback dialect, since the server accepts no tools."""
        self.dialect = self._plan.fallback

    def take_up(self, past: events.Error) -> None:
        """Ask as after an error of the run that goes on."""
        if past.code == "no_tools":
            self.fall_back()
        elif past.code == "no_images":
            self.cover()
        elif past.code == "no_schema":
            self.ways.close_schema()

    def cover(self, refusal: str = "") -> bool:
        """Send words instead of pictures from now on; see `Vision.cover`."""
        return self._vision.cover(refusal)

    def notes(self) -> list[Event]:
        """Return what is to be logged about pictures that could not be sent."""
        return self._vision.notes()

    def request(self, *, last: bool) -> Request:
        """Return the request of the next turn; `last`: the limits allow no more, and it says so."""
        plan, dialect = self._plan, self.dialect
        head = self._head()
        budget = self._budget(head)
        current = compaction.cut_results(dialect, self._current(), budget)
        window = context.choose_window(dialect, self._earlier(), current, budget)
        sent: list[Message] = [*head, *context.write_messages(dialect, [*window.runs, current])]
        way = self.way
        if last:
            sent.append(text_message("user", way.last))
        tools = (*self._tools, *way.tools)
        request = Request(
            messages=vision.keep_newest(sent),
            tools=tools,
            native_tools=dialect.native and bool(tools),
            grammar=self._grammar() if plan.model.grammar and not dialect.native else "",
            output=way.schema,
            settings=dict(plan.settings),
        )
        return redact_request(request, plan.redaction)

    @property
    def way(self) -> Way:
        """How the next request asks for the type of the answer."""
        return self.ways.way(self.dialect)

    def correction(self, verdict: Verdict) -> str:
        """Return the message about an invalid answer; what the model ignored is not asked again."""
        if verdict.ignored:
            self.ways.close_schema()
        return verdict.fault if verdict.last else f"{verdict.fault}\n{self.way.again}"

    def shrink(self, most: int) -> bool:
        """Reduce the context after a refusal as too long; return whether the next request shrinks.

        `most`: the tokens that the model accepts (0: unknown). Our counts are estimates, so the
        context is reduced in any case.
        """
        before, size = context.estimate_tokens(self.request(last=False).messages), self._size
        self._size = min(
            n for n in (size, most, (before * 3 // 4 if most else before // 2) + RESERVE) if n
        )
        if context.estimate_tokens(self.request(last=False).messages) < before:
            return True
        self._size = size
        return False

    async def remember(self, bill: Bill) -> list[Event]:
        """Return the events that note what the window leaves out, summarised if configured.

        A summary is a request like others: `bill` counts what it used.
        """
        window = context.choose_window(
            self.dialect, self._earlier(), self._current(), self._budget(self._head())
        )
        if not window.left_out:
            return []
        payload: dict[str, Any] = {"left_out": len(window.left_out), "note": window.note}
        redacted = self._plan.redaction.value
        out: list[Event] = []
        if self._plan.memory == "summary":
            try:
                out.append(await self._summarise(window.left_out, bill))
            except ModelError as fault:
                message = f"{fault} Going on without a summary of the earlier turns."
                out.append(events.Error(code="summary", message=redacted(message)))
            payload |= {"text": self._summary} if self._summary else {}
        return [*out, events.State(kind="window", payload=payload)]

    async def _summarise(self, left_out: Sequence[Sequence[Event]], bill: Bill) -> Event:
        """Have the model summarise runs; return what that used. Raises ModelError."""
        room = self._budget([]) * context.CHARS_PER_TOKEN
        request = redact_request(compaction.request_summary(left_out, room), self._plan.redaction)
        clock, turn = Clock(), Turn(0)
        text, usage = await compaction.ask_for_summary(self._plan.model, request)
        clock.stop()
        turn.feed(usage)
        self._summary = self._plan.redaction.value(text)
        sent, written = context.estimate_tokens(request.messages), len(text)
        return bill.metric(turn, clock, sent, written // context.CHARS_PER_TOKEN, whole=True)

    def _current(self) -> list[Event]:
        """Return the events of this run as they are sent, with what stands beside its prompt."""
        return self._plan.context.before(self._vision.view(self._log))

    def _earlier(self) -> list[list[Event]]:
        """Return the events of the earlier runs as they are sent."""
        return [self._vision.view(run) for run in self._history]

    def _head(self) -> list[Message]:
        """Return what precedes the conversation: instructions, system text, summary, examples."""
        plan = self._plan
        before = f"Summary of the conversation so far:\n{self._summary}" if self._summary else ""
        texts = (plan.context.system, plan.system, before)
        return write_opening(self.dialect, self._tools, self.way, texts, shots=plan.model.shots)

    def _budget(self, head: Sequence[Message]) -> int:
        """Return the tokens left for the conversation (0: the context is unknown)."""
        return max(self._size - RESERVE - context.estimate_tokens(head), 1) if self._size else 0

    def _grammar(self) -> str:
        small, answered = self._plan.model.shots, bool(self._log.of("result"))
        if self.ways.output is None:
            return self.dialect.grammar(self._tools, small=small, answered=answered)
        if not isinstance(self.dialect, Typed):
            return ""
        return self.dialect.typed_grammar(
            self._tools, self.ways.output, small=small, answered=answered
        )


def write_opening(
    dialect: Dialect, tools: Sequence[ToolSpec], way: Way, texts: Sequence[str], *, shots: bool
) -> list[Message]:
    """Return what precedes a conversation: instructions, system `texts`, if `shots` examples."""
    own = dialect.instructions(tools, small=shots)
    system = "\n\n".join(t for t in (own, way.instructions, *texts) if t)
    head = [text_message("system", system)] if system else []
    return [*head, *dialect.shots(tools)] if shots and not dialect.native else head


def digest_request(request: Request) -> str:
    """Return a short digest of a request, for the record."""
    return hashlib.sha256(msgspec.json.encode(request)).hexdigest()[:16]
