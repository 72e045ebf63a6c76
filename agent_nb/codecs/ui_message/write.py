"""Writes our events as chunks of the UI message stream (mapping: the package's docstring).

Rule: progress of a running tool is a preliminary output; the last output is the result.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ... import events
from ...events import Event
from ..block_writer import BlockWriter
from ..contract import Options
from ..foreign_values import CAUSES
from ..framing import RAW, Item
from ..losses import Losses
from ..passthrough import restore_object
from ..run_builder import EventHandlers, Obj
from ..value_losses import count_answer_loss, count_result_losses
from ..writing import split_block
from .lines import CUT, DRAW, FORM_OF, NAME, TOOL, draw_result, progress_output, read_output


class UiMessageWriter(BlockWriter):
    """Writes events of any number of runs, one after the other."""

    NAME, FORM_OF, DRAW, WRITES_EMPTY_DELTAS = NAME, FORM_OF, DRAW, True

    def __init__(self, losses: Losses, options: Options) -> None:
        super().__init__()
        self._losses = losses
        self._sse = options.framing == "sse"
        self._abort_reason = ""
        self._has_written = False

    def write(self, event: Event) -> list[Item]:
        """Return the chunks of one event."""
        objects = self.write_objects(event)
        self._has_written = self._has_written or bool(objects)
        return [Item(obj) for obj in objects]

    def close(self) -> list[Item]:
        """Return the end of the stream."""
        return [Item("[DONE]", RAW)] if self._sse and self._has_written else []

    def _imported(self, event: Event, note: Obj) -> list[Obj]:
        if not isinstance(event, events.Call):
            return super()._imported(event, note)
        # `tool-input-available` ends the block of a call, and its note is in "call"
        lines = super()._imported(event, {k: v for k, v in note.items() if k != "end"})
        call_note = note.get("call")
        if isinstance(call_note, dict):
            lines.append(restore_object(DRAW[events.Call](event), call_note))
        return lines

    def _start(self, event: events.RunStart) -> list[Obj]:
        return [{"type": "start", **({"messageId": event.run} if event.run else {})}]

    def _new_id(self, _event: Any) -> str:
        self._count += 1
        return f"block-{self._count}"

    def _call(self, event: events.Call) -> list[Obj]:
        """Write a call; an incomplete one is an input error."""
        if event.incomplete:
            ids = {"toolCallId": event.call_id, "toolName": event.name}
            return [{"type": "tool-input-error", **ids, "input": event.raw_args, "errorText": CUT}]
        if not event.chunks:
            return [DRAW[events.Call](event)]
        ids = {"toolCallId": event.call_id}
        start = {"type": TOOL.start, **ids, "toolName": event.name}
        texts = [{"type": TOOL.delta, **ids, TOOL.text: text} for text, _ in split_block(event)]
        return [start, *texts, DRAW[events.Call](event)]

    def _approval(self, event: events.Approval) -> list[Obj]:
        if event.stage != "requested":
            count_answer_loss(self._losses, event, "a chunk")
            return []
        ids = {"approvalId": event.call_id, "toolCallId": event.call_id}
        return [{"type": "tool-approval-request", **ids}]

    def _progress(self, event: events.Progress) -> list[Obj]:
        """Write progress as a preliminary output; count a loss if it reads back differently."""
        copy = events.Progress(call_id=event.call_id, **read_output(progress_output(event)))
        fields = ("text", "fraction", "message", "data")
        if any(getattr(copy, field) != getattr(event, field) for field in fields):
            self._losses.add("progress.data", "this shape of output reads back as something else")
        return [DRAW[events.Progress](event)]

    def _on_result(self, event: events.Result) -> list[Obj]:
        name = "" if event.status in ("ok", "denied") else "an error"
        reason = "only errors and denials are distinguished"
        statuses = ("ok", "error", "denied")
        count_result_losses(self._losses, event, statuses=statuses, why=reason, content_name=name)
        if event.status == "denied" and event.content:
            self._losses.add("result.content", "a denial says nothing")
        return [draw_result(event)]

    def _node(self, event: events.Node) -> list[Obj]:
        return [DRAW[events.Node](event)] if event.name == "llm" and not event.parent else []

    def _state(self, event: events.State) -> list[Obj]:
        if event.kind != "metadata":
            self._losses.add("state", "only the metadata of the message has a chunk")
            return []
        return [DRAW[events.State](event)]

    def _interrupt(self, event: events.Interrupt) -> list[Obj]:
        self._abort_reason = event.detail or event.reason
        if event.detail and (event.reason != "user" or event.detail in CAUSES):
            self._losses.add("interrupt.reason", "an abort has one text for reason and detail")
        return []

    def _end(self, event: events.End) -> list[Obj]:
        """Write `abort` for a run that was stopped, else `finish`."""
        abort_reason, self._abort_reason = self._abort_reason, ""
        if event.status in ("interrupted", "limit"):
            if event.status == "limit":
                self._losses.add("end.status", "a run that met a limit is aborted here")
            if event.finish_reason not in ("", abort_reason):
                self._losses.add("end.finish_reason", "an abort has a reason of its own")
            return [{"type": "abort", **({"reason": abort_reason} if abort_reason else {})}]
        if event.status == "error" and event.finish_reason not in ("", "error"):
            self._losses.add("end.finish_reason", "that the run failed takes its place")
        if event.status == "awaiting":
            self._losses.add("end.status", "a message that waits for an answer just finishes")
        reason = "error" if event.status == "error" else event.finish_reason
        return [{"type": "finish", **({"finishReason": reason} if reason else {})}]

    HANDLERS: ClassVar[EventHandlers] = {
        events.RunStart: _start,
        events.Delta: BlockWriter.delta,
        events.Think: BlockWriter.block,
        events.Respond: BlockWriter.block,
        events.Call: _call,
        events.Approval: _approval,
        events.Progress: _progress,
        events.Result: _on_result,
        events.Node: _node,
        events.State: _state,
        events.Extension: BlockWriter.extension,
        events.Error: lambda _, error: [DRAW[events.Error](error)],
        events.Interrupt: _interrupt,
        events.End: _end,
    }
