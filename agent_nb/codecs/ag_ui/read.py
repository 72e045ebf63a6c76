"""Reads AG-UI's events into ours (mapping: the package's docstring).

Servers of AG-UI differ in the lines they send: some send texts and calls as blocks, others only in
their last snapshot of the messages.

Rule: a text of `…_CHUNK` lines ends at the first line that is not its next chunk, the calls of
`TOOL_CALL_CHUNK` lines at the first line of another type.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ... import events
from ...events import Event
from ...wire import as_dict, as_list
from ..block_reader import BlockReader, handle_blocks
from ..foreign_values import text_of
from ..framing import Item
from ..losses import Losses
from ..run_builder import LineHandlers, Obj, RunBuilder, drawn_by
from ..times import read_epoch
from ..usage import read_usage
from .incoming import content_text, read_last_turn, use_wire_names
from .lines import DRAW, FORMS, NAME, OUTCOMES, REASONING, STATE_TYPES, TEXT, TOOL

_STATUS = {outcome: status for status, outcome in OUTCOMES.items()}
_USAGE = {  # field of Counts -> its name in a usage
    "input": "inputTokens",
    "output": "outputTokens",
    "cached": "cachedInputTokens",
    "cache_written": "cacheWriteTokens",
    "reasoning": "reasoningTokens",
    "total": "totalTokens",
}
_STATE_KINDS = {line: kind for kind, line in STATE_TYPES.items()}


class AgUiReader(BlockReader):
    """Reads any number of runs, one after the other."""

    START = "RUN_STARTED"
    FORMS, TOOL_NAME = FORMS, "toolCallName"
    #: Type of a chunk's line -> the kind of its block.
    CHUNKS: ClassVar = {"TEXT_MESSAGE_CHUNK": "respond", "REASONING_MESSAGE_CHUNK": "think"}

    # `_losses` is not needed: a line that has no event of ours becomes an extension
    def __init__(self, _losses: Losses) -> None:
        super().__init__(RunBuilder(NAME, drawn_by(DRAW), _envelope))
        self._has_user_text = self._has_answer = False  # whether this run's lines held one so far
        self._snapshot: list[Obj] = []  # this run's messages in the newest snapshot
        self._chunked_calls: list[str] = []  # keys of the open calls of `TOOL_CALL_CHUNK` lines

    def read(self, item: Item) -> list[Event]:
        """Return the events of one object."""
        obj = use_wire_names(item.obj)
        ended = self._end_chunked_calls(obj) if self._chunked_calls else ()
        out = [*ended, *self.read_object(obj)] if ended else self.read_object(obj)
        for event in out:
            self._has_user_text |= isinstance(event, events.User)
            self._has_answer |= isinstance(event, events.Respond) and bool(event.content.strip())
        return out

    def close(self) -> list[Event]:
        """Close open blocks as incomplete; add events that only the snapshot holds."""
        out = super().close()
        return [*out, *self._read_snapshot(out)]

    def _begin(self, obj: Obj) -> None:
        super()._begin(obj)
        self._has_user_text = self._has_answer = False
        self._snapshot, self._chunked_calls = [], []

    def _id_of_run(self, obj: Obj) -> str:
        return text_of(obj, "runId")

    def _finished(self, obj: Obj) -> list[Event]:
        """Read the end of a run, with its outcome and usage."""
        out = [*self.close(), *self._usage(obj)]
        outcome = as_dict(obj.get("outcome"))
        status = _STATUS.get(text_of(outcome, "type"), "ok")
        if status == "interrupted":
            out.append(self._run.derived(events.Interrupt))
        self._over = True
        return [*out, self._run.line(events.End, obj, status=status)]

    def _read_snapshot(self, out: list[Event]) -> list[Event]:
        """Return the calls, results and answer that only the newest snapshot holds; then drop it.

        `out`: the events that closing the blocks yielded; one may be the answer.
        """
        messages, self._snapshot = self._snapshot, []
        has_answer = self._has_answer or any(isinstance(event, events.Respond) for event in out)
        added: list[Event] = []
        for message in messages:
            text = content_text(message.get("content"))
            if message["role"] == "tool":
                added += self._snapshot_result(message, text)
            elif text.strip() and not has_answer:
                added.append(self._run.derived(events.Respond, content=text))
            added += self._snapshot_calls(message.get("toolCalls"))
        return added

    def _snapshot_calls(self, calls: Any) -> list[Event]:
        """Return the calls of a snapshot's message that no line has opened."""
        added: list[Event] = []
        for call in as_list(calls):
            wire_id = text_of(as_dict(call), "id")
            if not isinstance(call, dict) or self._calls.state_of(wire_id):
                continue
            function = as_dict(call.get("function"))
            name = text_of(function, "name")
            fields = self._calls.begin_call(name, wire_id, function.get("arguments"))
            added.append(self._run.derived(events.Call, **fields))
        return added

    def _snapshot_result(self, message: Obj, text: str) -> list[Event]:
        """Return the result in a snapshot's message, unless its call has a result already."""
        wire_id = text_of(message, "toolCallId")
        if self._calls.state_of(wire_id) == "over":
            return []
        name, error = self._calls.tool_of(wire_id), text_of(message, "error")
        match = self._calls.match_result(name, wire_id)
        fields: Obj = {"call_id": match.call_id, "name": name, "content": error or text}
        return [
            *self._run.implicit_call(match, wire_id, name=name),
            self._run.derived(events.Result, status="error" if error else "ok", **fields),
        ]

    def _failed(self, obj: Obj) -> list[Event]:
        out = [*self.close(), *self._usage(obj)]
        self._over = True
        reason: Obj = {"message": text_of(obj, "message"), "code": text_of(obj, "code")}
        error = self._run.line(events.Error, obj, **reason)
        return [*out, error, self._run.derived(events.End, status="error")]

    def _usage(self, obj: Obj) -> list[Event]:
        """Return the usage in the last line of a run as a metric, [] without usage."""
        totals = [usage for usage in as_list(obj.get("usage")) if isinstance(usage, dict)]
        if not totals:
            return []
        total = sum((read_usage(u, _USAGE) for u in totals), events.Counts())
        return [self._run.derived(events.Metric, step=total, total=total)]

    def _text_start(self, obj: Obj) -> list[Event]:
        of = {"user": "user", "assistant": "respond"}.get(str(obj.get("role", "assistant")), "")
        return self.start(obj, of) if of else self._run.unknown(obj)

    def _chunk(self, obj: Obj) -> list[Event]:
        """Read a `…_CHUNK` line: it opens its text, or continues the open one."""
        of = self.CHUNKS[obj["type"]]
        text, form = obj.get("delta"), TEXT if of == "respond" else REASONING
        if not isinstance(text, str) or obj.get("role", "assistant") != "assistant":
            return [*self._blocks.close_text(), *self._run.unknown(obj)]
        drawn = {"type": form.delta, form.text: text}
        block = self._blocks.open_text  # which a chunk without an id continues
        open_key = block.key if block is not None and block.of == of else ""
        key = text_of(obj, "messageId") or open_key
        return self._blocks.add_text(of, text, obj, drawn, key=key)

    def _call_chunk(self, obj: Obj) -> list[Event]:
        """Read a `TOOL_CALL_CHUNK`: it opens or continues its call; without an id the newest."""
        wire_id, name = text_of(obj, "toolCallId"), text_of(obj, "toolCallName")
        key = TOOL.key(obj) if wire_id else next(reversed(self._chunked_calls), "")
        text = obj.get("delta") or ""
        if not key or not isinstance(text, str):
            return self._run.unknown(obj)
        block = self._blocks.find_block(key)
        if block is None:
            self.open_call(name, wire_id)
            self._chunked_calls.append(key)
            block = self._blocks.open_block("call", key, obj, name)
        return [self._blocks.add_delta(block, text, obj, {"type": TOOL.delta, TOOL.text: text})]

    def _end_chunked_calls(self, obj: Obj) -> list[Event]:
        """Return the calls of chunks, which `obj` ends, unless it is one or closes all blocks."""
        if obj.get("type") in ("TOOL_CALL_CHUNK", self.START):
            return []
        blocks, self._chunked_calls = map(self._blocks.take_block, self._chunked_calls), []
        return [self.complete(block, {}) for block in blocks if block is not None]

    def _result(self, obj: Obj) -> list[Event]:
        """Read a result; if its call lacks an end line, the arguments end here."""
        wire_id = text_of(obj, "toolCallId")
        if self._calls.state_of(wire_id) == "over":
            return self._run.unknown(obj)
        name = self._calls.tool_of(wire_id)
        block = self._blocks.take_block(TOOL.key(obj))
        open_call = [self.complete(block, {})] if block is not None else []
        match = self._calls.match_result(name, wire_id)
        span = {k: v for k, v in _envelope(obj).items() if k == "span"}
        fields: Obj = {"call_id": match.call_id, "name": name, "content": obj.get("content", "")}
        return [
            *open_call,
            *self._run.implicit_call(match, wire_id, **span),
            self._run.line(events.Result, obj, **fields),
        ]

    def _step(self, obj: Obj) -> list[Event]:
        name = text_of(obj, "stepName")
        fields: Obj = {"name": name, "span": f"step-{name}"}
        is_start = obj["type"] == "STEP_STARTED"
        fields |= {"phase": "enter"} if is_start else {"phase": "exit", "result": "ok"}
        return [self._run.line(events.Node, obj, **fields)]

    def _subagent(self, obj: Obj) -> list[Event]:
        """Read the start, end or error of a sub-agent as its node."""
        fields: Obj = {"name": text_of(obj, "name"), "data": {"subagent": True}}
        if obj["type"] == "SUBAGENT_STARTED":
            return [self._run.line(events.Node, obj, phase="enter", **fields)]
        failed = obj["type"] == "SUBAGENT_ERROR"
        result = f"error: {text_of(obj, 'message')}" if failed else "ok"
        return [self._run.line(events.Node, obj, phase="exit", result=result, **fields)]

    def _state(self, obj: Obj) -> list[Event]:
        """Read a state; a snapshot of the messages also yields the prompt, if that is missing."""
        kind = _STATE_KINDS[obj["type"]]
        state = self._run.line(events.State, obj, kind=kind, payload=obj.get(kind))
        if kind != "messages" or state.span:
            return [state]
        prompt, self._snapshot = read_last_turn(obj.get("messages"))
        if not prompt or self._has_user_text:
            return [state]
        return [state, self._run.derived(events.User, content=prompt)]

    HANDLERS: ClassVar[LineHandlers] = {
        "RUN_STARTED": lambda self, obj: [self._run.line(events.RunStart, obj)],
        "RUN_FINISHED": _finished,
        "RUN_ERROR": _failed,
        **handle_blocks(FORMS),
        "TEXT_MESSAGE_START": _text_start,
        "TEXT_MESSAGE_CHUNK": _chunk,
        "REASONING_MESSAGE_CHUNK": _chunk,
        "TOOL_CALL_CHUNK": _call_chunk,
        "TOOL_CALL_RESULT": _result,
        "STEP_STARTED": _step,
        "STEP_FINISHED": _step,
        "SUBAGENT_STARTED": _subagent,
        "SUBAGENT_FINISHED": _subagent,
        "SUBAGENT_ERROR": _subagent,
        "STATE_SNAPSHOT": _state,
        "STATE_DELTA": _state,
        "MESSAGES_SNAPSHOT": _state,
    }


def _envelope(obj: Obj) -> Obj:
    """Return the event fields that any line may set: its time, and the span of its sub-agent."""
    span = text_of(obj, "subagentRunId")
    return {"ts": read_epoch(obj.get("timestamp")), **({"span": span} if span else {})}
