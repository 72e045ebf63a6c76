"""Writes our events as AG-UI's (mapping: the package's docstring).

Rules
- Blocks that form one text (see `events.text`) share a message id.
- Only the error that ended the run is written (RUN_ERROR is terminal).
"""

from __future__ import annotations

from typing import Any, ClassVar

from ... import events
from ...events import Event
from ..block_form import BlockForm
from ..block_writer import BlockWriter
from ..contract import Options
from ..framing import Item
from ..losses import Losses
from ..provenance import note_of
from ..run_builder import EventHandlers, Obj
from ..times import read_epoch
from ..value_losses import LastError, count_result_losses
from ..writing import split_arguments
from .lines import DRAW, FORM_OF, NAME, OUTCOMES, REASONING, STATE_TYPES, TEXT, TOOL, draw_node


class AgUiWriter(BlockWriter):
    """Writes runs one after the other; overrides `_new_id`, `_start_block` and `_end_block`."""

    NAME, FORM_OF, DRAW, WRITES_EMPTY_DELTAS = NAME, FORM_OF, DRAW, False

    def __init__(self, losses: Losses, options: Options) -> None:
        super().__init__()
        self._losses = losses
        self._thread = options.conversation
        self._user_is_known = options.asked
        self._last_error = LastError(losses)
        self._forget_run()

    def _forget_run(self) -> None:
        """Set the state of a run to that before its first event; "" is the span of the run."""
        self._texts: dict[str, events.Texts] = {}  # span -> its texts
        self._messages: dict[str, str] = {}  # span -> message id of its newest text
        self._step: events.Step = ""  # how the event being written relates to the text before it
        self._agents: set[str] = set()  # the spans of sub-agents that have begun and not ended
        self._total: events.Counts | None = None  # the newest

    def write(self, event: Event) -> list[Item]:
        """Return the objects of one event."""
        if note_of(event, NAME) is not None:
            return [Item(obj) for obj in self.write_objects(event)]
        # a node belongs to the run around it
        outer = event.parent if isinstance(event, events.Node) else event.span
        self._step = self._texts.setdefault(outer, events.Texts()).add(event)
        return [Item(self._wrap(obj, event)) for obj in self.write_objects(event)]

    def close(self) -> list[Item]:
        """Return nothing; an error that is still held back counts as lost."""
        self._last_error.count_as_lost()
        return []

    def _wrap(self, obj: Obj, event: Event) -> Obj:
        """Return an object of `event` with its sub-agent and time."""
        envelope: Obj = {}
        if event.span and event.span in self._agents and "subagentRunId" not in obj:
            envelope["subagentRunId"] = event.span
        if seconds := read_epoch(event.ts * 1000):  # 0.0: unknown, or beyond every date
            envelope["timestamp"] = round(seconds * 1000)
        return {**obj, **envelope}

    def _name_run(self, event: Event) -> Obj:
        return {"threadId": self._thread or event.run, "runId": event.run}

    def _start(self, event: events.RunStart) -> list[Obj]:
        if event.span:
            return []
        return [{"type": "RUN_STARTED", **self._name_run(event)}]

    def _new_id(self, event: Any) -> str:
        """Return the id of the message that a block belongs to.

        A block that continues the text before it (`_step`) belongs to that text's message.
        """
        message_id = self._messages.get(event.span, "") if self._step == "go_on" else ""
        message_id = message_id or self._new_message_id(event)
        if self._step:
            self._messages[event.span] = message_id
        return message_id

    def _new_message_id(self, event: Event) -> str:
        self._count += 1
        return f"{event.run or 'run'}-{self._count}"

    def _user(self, event: events.User) -> list[Obj]:
        if event.span or self._user_is_known:
            return []
        ids = {"messageId": self._new_message_id(event)}
        content = [{"type": TEXT.delta, **ids, "delta": event.content}] if event.content else []
        return [{"type": TEXT.start, **ids, "role": "user"}, *content, {"type": TEXT.end, **ids}]

    def _start_block(self, form: BlockForm, ids: Obj) -> list[Obj]:
        role = {"role": "assistant" if form is TEXT else "reasoning"}
        wrap = [{"type": "REASONING_START", **ids}] if form is REASONING else []
        return [*wrap, {"type": form.start, **ids, **role}]

    def _end_block(self, form: BlockForm, ids: Obj) -> list[Obj]:
        wrap = [{"type": "REASONING_END", **ids}] if form is REASONING else []
        return [{"type": form.end, **ids}, *wrap]

    def _call(self, event: events.Call) -> list[Obj]:
        ids = {"toolCallId": event.call_id}
        texts = filter(None, split_arguments(event))
        args = [{"type": TOOL.delta, **ids, "delta": text} for text in texts]
        return [
            {"type": TOOL.start, **ids, "toolCallName": event.name},
            *args,
            {"type": TOOL.end, **ids},
        ]

    def _result(self, event: events.Result) -> list[Obj]:
        reason = "a result does not say whether the tool failed"
        count_result_losses(self._losses, event, statuses=("ok",), why=reason)
        drawn = DRAW[events.Result](event)
        return [{"type": drawn.pop("type"), "messageId": f"{event.call_id}-result", **drawn}]

    def _node(self, event: events.Node) -> list[Obj]:
        """Write a sub-agent's node as a sub-agent, others as steps; a model request has no line."""
        if event.name == "llm":
            self._losses.add("node", "a model request has no event")
            return []
        if (event.data and "agent" in event.data) or event.span in self._agents:
            return [self._draw_subagent(event)]
        if event.result not in ("", "ok"):
            self._losses.add("node.result", "a step does not say how it ended")
        return [draw_node(event)]

    def _draw_subagent(self, event: events.Node) -> Obj:
        """Draw the start or end of a sub-agent, whose span is the id of the call that runs it."""
        ids = {"subagentRunId": event.span}
        if event.phase == "enter":
            self._agents.add(event.span)
            names = {"name": event.name, "parentToolCallId": event.span}
            return {"type": "SUBAGENT_STARTED", **ids, **names}
        self._agents.discard(event.span)
        if event.result in ("", "ok"):
            return {"type": "SUBAGENT_FINISHED", **ids}
        return {"type": "SUBAGENT_ERROR", **ids, "message": event.result}

    def _state(self, event: events.State) -> list[Obj]:
        if event.kind not in STATE_TYPES:
            self._losses.add("state", "only snapshots, patches and messages have events")
            return []
        return [DRAW[events.State](event)]

    def _metric(self, event: events.Metric) -> list[Obj]:
        if not event.span:  # a sub-agent's total is its own
            self._total = event.total
        return []

    def _end(self, event: events.End) -> list[Obj]:
        """Write RUN_ERROR for a failed run, else RUN_FINISHED with the outcome."""
        if event.span:
            return []
        total = self._total
        self._forget_run()
        usage = {"usage": [_draw_usage(total)]} if total is not None else {}
        if event.status == "error":
            return [{**DRAW[events.Error](self._last_error.take_cause(event)), **usage}]
        self._last_error.count_as_lost()
        if event.status == "limit":
            self._losses.add("end.status", "a run that met a limit is cancelled here")
            outcome: Obj = {"type": "cancelled"}
        elif event.status == "awaiting":
            outcome = {"type": OUTCOMES["awaiting"], "interrupts": []}
        else:
            outcome = {"type": OUTCOMES.get(event.status, "success")}
        return [{"type": "RUN_FINISHED", **self._name_run(event), "outcome": outcome, **usage}]

    HANDLERS: ClassVar[EventHandlers] = {
        events.RunStart: _start,
        events.User: _user,
        events.Delta: BlockWriter.delta,
        events.Think: BlockWriter.block,
        events.Respond: BlockWriter.block,
        events.Call: _call,
        events.Result: _result,
        events.Node: _node,
        events.State: _state,
        events.Extension: BlockWriter.extension,
        events.Error: lambda self, event: self._last_error.add(event),
        events.Metric: _metric,
        events.End: _end,
    }


def _draw_usage(total: events.Counts) -> Obj:
    """Draw the token counts of a run; optional ones only if they are not 0."""
    counts = {
        "inputTokens": total.input,
        "outputTokens": total.output,
        "totalTokens": total.input + total.output,
    }
    optional = {
        "reasoningTokens": total.reasoning,
        "cachedInputTokens": total.cached,
        "cacheWriteTokens": total.cache_written,
    }
    return {**counts, **{k: v for k, v in optional.items() if v}}
