"""Builds the requests of a run from history and log, within the model's context.

Rules
- Every request is built anew. Between turns `RequestBuilder` keeps a summary, and what a server's
  refusal or an answer without JSON has changed: dialect, tools, pictures, schema, context size.
- Every request, also one for a summary, passes `outgoing`, which removes keys.
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
from .biller import Biller
from .history import CHARS_PER_TOKEN, choose_window, estimate_tokens, write_messages
from .limits import Clock
from .outgoing import redact_request, redact_schema, redact_tool
from .run_spec import Plan
from .turn import Turn
from .typed.answer_check import Verdict
from .typed.output_way import OutputWay, OutputWayChooser

RESERVED_TOKENS = 1024  # tokens of the context that are kept free for the answer


class RequestBuilder:
    """Builds the requests of one run.

    `history`: the events of earlier runs of the conversation, oldest first. `dialect` may change
    during the run. `vision` prepares the pictures.
    """

    def __init__(self, plan: Plan, log: EventLog, history: Sequence[Sequence[Event]]) -> None:
        self.dialect = plan.dialect
        self._plan = plan
        self._log = log
        self._history = history
        self._summary = ""
        self._context_size = plan.model.context  # tokens, 0: unknown
        self.vision = vision.Vision(plan.model)
        self._tools = [redact_tool(spec, plan.redaction) for spec in plan.tools]
        output = plan.output.wire if plan.output is not None else None
        self.way_chooser = OutputWayChooser(
            output and redact_schema(output, plan.redaction), plan.model, plan.tools
        )

    def send_no_tools(self) -> str:
        """Continue without native tools, which the server refuses; return how, in words.

        Tools that the user chose are described in the fallback dialect; default tools are dropped.
        """
        if self._plan.default_tools and self._tools:
            self._tools = []
            return "without tools"
        self.dialect = self._plan.fallback_dialect
        return f"with the {self.dialect.name} dialect"

    def repeat_fallback(self, error: events.Error) -> None:
        """Build requests from now on as the resumed run did after this error."""
        if error.code == "no_tools":
            self.send_no_tools()
        elif error.code == "no_images":
            self.vision.omit()
        elif error.code == "no_schema":
            self.way_chooser.disable_schema()

    def build(self, *, last: bool) -> Request:
        """Return the request of the next turn; a `last` one asks the model to finish."""
        plan, dialect = self._plan, self.dialect
        opening = self._write_opening()
        budget = self._count_free_tokens(opening)
        current = compaction.cut_results(dialect, self._current_run(), budget)
        window = choose_window(dialect, self._earlier_runs(), current, budget)
        messages: list[Message] = [*opening, *write_messages(dialect, [*window.runs, current])]
        output_way = self.output_way
        if last:
            messages.append(text_message("user", output_way.last_turn))
        tools = (*self._tools, *output_way.tools)
        request = Request(
            messages=vision.keep_newest(messages),
            tools=tools,
            native_tools=dialect.native and bool(tools),
            grammar=self._choose_grammar() if plan.model.grammar and not dialect.native else "",
            output=output_way.schema,
            settings=dict(plan.settings),
        )
        return redact_request(request, plan.redaction)

    @property
    def output_way(self) -> OutputWay:
        """How the next request asks for a typed answer."""
        return self.way_chooser.choose(self.dialect)

    def write_correction(self, verdict: Verdict) -> str:
        """Return the message about an invalid answer.

        If the answer is not even JSON, the server ignores the schema: it is not sent again.
        """
        if verdict.not_json:
            self.way_chooser.disable_schema()
        return verdict.fault if verdict.final else f"{verdict.fault}\n{self.output_way.correction}"

    def shrink(self, max_tokens: int) -> bool:
        """Use less context after a refusal as too long; return whether the next request shrinks.

        `max_tokens`: what the model accepts (0: unknown). Our token counts are estimates, so the
        context then fits at most three quarters of the refused request, or half if that is unknown.
        """
        before, size = estimate_tokens(self.build(last=False).messages), self._context_size
        reduced = (before * 3 // 4 if max_tokens else before // 2) + RESERVED_TOKENS
        self._context_size = min(n for n in (size, max_tokens, reduced) if n)
        if estimate_tokens(self.build(last=False).messages) < before:
            return True
        self._context_size = size
        return False

    async def report_left_out(self, biller: Biller) -> list[Event]:
        """Return events about the earlier runs that do not fit into the context.

        With memory "summary", the model first summarises them; `biller` counts its request.
        """
        budget = self._count_free_tokens(self._write_opening())
        window = choose_window(self.dialect, self._earlier_runs(), self._current_run(), budget)
        if not window.left_out:
            return []
        payload: dict[str, Any] = {"left_out": len(window.left_out), "note": window.note}
        redacted = self._plan.redaction.value
        out: list[Event] = []
        if self._plan.memory == "summary":
            try:
                out.append(await self._summarise(window.left_out, biller))
            except ModelError as fault:
                message = f"{fault} Going on without a summary of the earlier turns."
                out.append(events.Error(code="summary", message=redacted(message)))
            if self._summary:
                payload["text"] = self._summary
        return [*out, events.State(kind="window", payload=payload)]

    async def _summarise(self, runs: Sequence[Sequence[Event]], biller: Biller) -> Event:
        """Have the model summarise `runs`; return the metric of this request. Raises ModelError."""
        max_chars = self._count_free_tokens([]) * CHARS_PER_TOKEN
        request = redact_request(compaction.request_summary(runs, max_chars), self._plan.redaction)
        clock, turn = Clock(), Turn(0)
        text, usage = await compaction.ask_for_summary(self._plan.model, request)
        clock.stop()
        turn.feed(usage)
        self._summary = self._plan.redaction.value(text)
        sent, written = estimate_tokens(request.messages), len(text)
        return biller.charge_request(turn, clock, sent, written // CHARS_PER_TOKEN, complete=True)

    def _current_run(self) -> list[Event]:
        """Return the events of this run as they are sent, with its context before its prompt."""
        return self._plan.context.prepend_to(self.vision.view(self._log))

    def _earlier_runs(self) -> list[list[Event]]:
        return [self.vision.view(run) for run in self._history]

    def _write_opening(self) -> list[Message]:
        plan = self._plan
        summary = f"Summary of the conversation so far:\n{self._summary}" if self._summary else ""
        texts = (plan.context.system_text(tools=bool(self._tools)), plan.system, summary)
        return write_opening(
            self.dialect, self._tools, self.output_way, texts, shots=plan.model.shots
        )

    def _count_free_tokens(self, opening: Sequence[Message]) -> int:
        """Return the tokens left for the conversation, at least 1 (0: the context is unknown)."""
        if not self._context_size:
            return 0
        return max(self._context_size - RESERVED_TOKENS - estimate_tokens(opening), 1)

    def _choose_grammar(self) -> str:
        """Return the grammar that the next turn must follow, "" for none."""
        small, answered = self._plan.model.shots, bool(self._log.of("result"))
        output = self.way_chooser.output
        if output is None:
            return self.dialect.grammar(self._tools, small=small, answered=answered)
        if not isinstance(self.dialect, Typed):
            return ""
        return self.dialect.typed_grammar(self._tools, output, small=small, answered=answered)


def write_opening(
    dialect: Dialect,
    tools: Sequence[ToolSpec],
    output_way: OutputWay,
    texts: Sequence[str],
    *,
    shots: bool,
) -> list[Message]:
    """Return what precedes a conversation: the system message, perhaps with examples.

    The system message joins the instructions of the dialect and of `output_way`, and `texts`.
    `shots`: the model is small, so a text dialect writes brief instructions and adds examples.
    """
    protocol = dialect.instructions(tools, small=shots)
    system = "\n\n".join(t for t in (protocol, output_way.instructions, *texts) if t)
    opening = [text_message("system", system)] if system else []
    return [*opening, *dialect.shots(tools)] if shots and not dialect.native else opening


def digest_request(request: Request) -> str:
    """Return a short digest of a request, for the record."""
    return hashlib.sha256(msgspec.json.encode(request)).hexdigest()[:16]
