"""Reads the chunks of the UI message stream into our events (mapping: the package's docstring).

Rules
- What does not fit becomes an extension with the original content: an end whose block is not open,
  a delta of a call that is not open, a second input of an open call, and the final output of an
  ended call.
- `tool-input-error` is a call with invalid arguments. The error is also the call's result, unless
  we wrote it ourselves for arguments that broke off (`CUT`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ... import events
from ...events import Event
from ...wire import as_dict
from ..block_reader import BlockReader, handle_blocks
from ..foreign_values import interrupt_fields, text_of, text_of_arguments
from ..framing import Item
from ..losses import Losses
from ..passthrough import note_difference
from ..run_builder import LineHandlers, Obj, RunBuilder, drawn_by
from .lines import CUT, DRAW, FORMS, NAME, TOOL, read_output

# the object that Pydantic AI yields for the frame `[DONE]`
_DONE = {"type": "done"}


class UiMessageReader(BlockReader):
    """Reads any number of messages, one after the other."""

    START = "start"
    FORMS, TOOL_NAME = FORMS, "toolName"

    def __init__(self, _losses: Losses) -> None:
        super().__init__(RunBuilder(NAME, drawn_by(DRAW)))
        self._failed = False
        self._step_count = 0
        self._step_span = ""

    def read(self, item: Item) -> list[Event]:
        """Return the events of one chunk."""
        return [] if item.obj == _DONE else self.read_object(item.obj)

    def close(self) -> list[Event]:
        """Close open blocks as incomplete; a run that had an error ends as failed."""
        out = super().close()
        if self._failed and not self._over:
            out.append(self._run.derived(events.End, status="error"))
            self._over = True
        return out

    def _begin(self, obj: Obj) -> None:
        super()._begin(obj)
        self._failed = False
        self._step_span, self._step_count = "", 0

    def _id_of_run(self, obj: Obj) -> str:
        return text_of(obj, "messageId") if obj.get("type") == self.START else ""

    def _finish(self, obj: Obj) -> list[Event]:
        """Read the end of a message."""
        out = super().close()
        reason = text_of(obj, "finishReason")
        self._over = True
        status = "error" if self._failed or reason == "error" else "ok"
        finish_reason = "" if reason == "error" else reason
        return [*out, self._run.line(events.End, obj, status=status, finish_reason=finish_reason)]

    def _abort(self, obj: Obj) -> list[Event]:
        out = super().close()
        self._over = True
        stopped = self._run.derived(events.Interrupt, **interrupt_fields(text_of(obj, "reason")))
        return [*out, stopped, self._run.line(events.End, obj, status="interrupted")]

    def _error(self, obj: Obj) -> list[Event]:
        self._failed = True
        return [self._run.line(events.Error, obj, message=text_of(obj, "errorText"))]

    def _on_step(self, obj: Obj) -> list[Event]:
        """Read the start or end of a step; an end before any start has the span `step-0`."""
        is_start = obj["type"] == "start-step"
        self._step_count += is_start
        if is_start or not self._step_span:
            self._step_span = f"step-{self._step_count}"
        fields: Obj = {"name": "llm", "span": self._step_span, "data": {"internal": True}}
        fields |= {"phase": "enter"} if is_start else {"phase": "exit", "result": "ok"}
        return [self._run.line(events.Node, obj, **fields)]

    def _metadata(self, obj: Obj) -> list[Event]:
        payload = obj.get("messageMetadata")
        return [self._run.line(events.State, obj, kind="metadata", payload=payload)]

    def _call(self, obj: Obj) -> list[Event]:
        """Read the whole input of a call; in a `tool-input-error` it is invalid or incomplete."""
        wire_id, name, args = text_of(obj, "toolCallId"), text_of(obj, "toolName"), obj.get("input")
        has_block = self._blocks.find_block(TOOL.key(obj)) is not None
        if self._calls.state_of(wire_id) == "open" and not has_block:
            return self._run.unknown(obj)
        call_id, synthetic = self._calls.open_call(name, wire_id)
        ids = {"call_id": call_id, "synthetic": synthetic}
        fields: Obj = {**ids, "name": name, "args": as_dict(args)}
        failed = obj["type"] == "tool-input-error"
        call = self._call_event(obj, fields, failed=failed)
        out = [self._run.add_note(call, {"call": note_difference(obj, DRAW[events.Call](call))})]
        reason = text_of(obj, "errorText")
        if failed and reason != CUT:
            self._calls.match_result(name, call_id)
            result: Obj = {"call_id": call_id, "name": name, "status": "error", "content": reason}
            out.append(self._run.derived(events.Result, **result))
        return out

    def _call_event(self, obj: Obj, fields: Obj, *, failed: bool) -> Event:
        """Return the call: of its open block if it has one, else of the chunk alone."""
        args, block = obj.get("input"), self._blocks.take_block(TOOL.key(obj))
        if block is not None:
            return self.complete(block, {}, **fields)
        is_object = isinstance(args, dict)
        raw = text_of_arguments(args) if failed or is_object else ""
        incomplete = failed and not is_object
        return self._run.make(events.Call, incomplete=incomplete, raw_args=raw, **fields)

    def _output(self, obj: Obj) -> list[Event]:
        """Read an output: a preliminary one is progress, any other the result."""
        wire_id = text_of(obj, "toolCallId")
        if obj.get("preliminary") is True and obj["type"] == "tool-output-available":
            match = self._calls.match_line("", wire_id)
            fields = {"call_id": match.call_id, **read_output(obj.get("output"))}
            report = self._run.line(events.Progress, obj, **fields)
            return [*self._run.implicit_call(match, wire_id), report]
        if not wire_id or self._calls.state_of(wire_id) == "over":
            return self._run.unknown(obj)
        block = self._blocks.take_block(TOOL.key(obj))  # of a call whose input broke off
        cut = [self.complete(block, {}, incomplete=True)] if block is not None else []
        name = self._calls.tool_of(wire_id)
        match = self._calls.match_result(name, wire_id)
        status, content = _OUTPUTS[obj["type"]](obj)
        fields = {"call_id": match.call_id, "name": name, "status": status, "content": content}
        implicit = self._run.implicit_call(match, wire_id)
        return [*cut, *implicit, self._run.line(events.Result, obj, **fields)]

    def _approval(self, obj: Obj) -> list[Event]:
        wire_id = text_of(obj, "toolCallId")
        match = self._calls.match_line("", wire_id)
        approval = self._run.line(events.Approval, obj, call_id=match.call_id)
        return [*self._run.implicit_call(match, wire_id), approval]

    HANDLERS: ClassVar[LineHandlers] = {
        "start": lambda self, obj: [self._run.line(events.RunStart, obj)],
        "finish": _finish,
        "abort": _abort,
        "error": _error,
        "start-step": _on_step,
        "finish-step": _on_step,
        "message-metadata": _metadata,
        **handle_blocks(FORMS),
        "tool-input-available": _call,
        "tool-input-error": _call,
        "tool-output-available": _output,
        "tool-output-error": _output,
        "tool-output-denied": _output,
        "tool-approval-request": _approval,
    }


# type -> (status of the result, its content)
_OUTPUTS: dict[str, Callable[[Obj], tuple[str, Any]]] = {
    "tool-output-available": lambda o: ("ok", o.get("output", "")),
    "tool-output-error": lambda o: ("error", text_of(o, "errorText")),
    "tool-output-denied": lambda _: ("denied", ""),
}
