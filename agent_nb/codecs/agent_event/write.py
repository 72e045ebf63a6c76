"""Writes our events as AgentEvents (mapping: the package's docstring).

Rules
- The newest error of ours is held until the run ends, and lost unless the run failed, because an
  error ends a run of this format.
- A run after the first begins with `start`, without which its events would count as late ones.
"""

from __future__ import annotations

from typing import ClassVar

from ... import events
from ...events import Event, progress_fields
from ...wire import as_dict
from ..contract import Options
from ..framing import Item
from ..losses import Losses
from ..passthrough import restore_object
from ..provenance import note_of
from ..run_builder import EventHandlers
from ..value_losses import LastError, count_result_losses
from ..writing import LiveBlocks, restore_block, restore_line, split_arguments, split_block
from .lines import DRAW, NAME, SHIFTS, Obj, draw_stream, make_progress_data
from .nested import restore_outer_lines


class AgentEventWriter:
    """Writes imported events of any number of runs; runs of ours one after the other."""

    def __init__(self, losses: Losses, options: Options) -> None:
        self._losses = losses
        self._writes_ids = options.form == "ids"
        self._live = LiveBlocks()
        self._last_error = LastError(losses)
        self._follows_end = False  # the next line of ours begins another run
        self._interrupt_reason = ""  # why the run was stopped, for its end
        self._tools: dict[str, str] = {}  # call id -> tool, of open calls

    def write(self, event: Event) -> list[Item]:
        """Return the objects of one event."""
        note = note_of(event, NAME)
        if note is not None:
            lines = self._imported(event, note)
            return [Item(restore_outer_lines(obj) if event.span else obj) for obj in lines]
        if event.span:
            return [Item(obj) for obj in self._nested(event)]
        handler = self.HANDLERS.get(type(event))
        lines = handler(self, event) if handler else []
        if lines and self._follows_end:
            self._follows_end, lines = False, [DRAW[events.RunStart](event), *lines]
        self._follows_end = self._follows_end or isinstance(event, events.End)
        return [Item(obj) for obj in lines]

    def close(self) -> list[Item]:
        """Return nothing; an error that is still held back counts as lost."""
        self._last_error.count_as_lost()
        return []

    def _imported(self, event: Event, note: Obj) -> list[Obj]:
        """Write an event that was read from this format as it came."""
        if note.get("derived"):
            return []
        if isinstance(event, events.Delta):
            self._live.add_delta(event)
            return [restore_object(draw_stream(event.text), note)]
        if isinstance(event, events.Respond):
            return restore_block(event, note, SHIFTS, self._live, draw_stream)
        return restore_line(event, note, DRAW)

    def _name_tool(self, call_id: str, name: str = "") -> Obj:
        """Return the fields of a line that name its tool and, in the form `ids`, its call."""
        names = {"toolName": name or self._tools.get(call_id, "")}
        return {**names, "callId": call_id} if self._writes_ids else names

    def _nested(self, event: Event) -> list[Obj]:
        """Write a piece of a sub-agent's answer; count any other event of it as lost."""
        tool = self._tools.get(event.span, "")
        text = ""
        if isinstance(event, events.Delta):
            if tool and event.of == "respond":  # others are counted when their block is complete
                self._live.add_delta(event)
                text = event.text
        elif not isinstance(event, events.Node) and not self._live.end_block(event):
            text = event.content if tool and isinstance(event, events.Respond) else ""
            if not text:
                reason = "of a sub-agent only the answer travels, as progress of its call"
                self._losses.add("nested events", reason)
        line = {"type": "tool_progress", **self._name_tool(event.span, tool), "data": text}
        return [line] if text else []

    def _delta(self, event: events.Delta) -> list[Obj]:
        if event.of != "respond":
            return []
        self._live.add_delta(event)
        return [draw_stream(event.text)]

    def _respond(self, event: events.Respond) -> list[Obj]:
        if self._live.end_block(event):
            return []
        return [draw_stream(text) for text, _ in split_block(event)]

    def _call(self, event: events.Call) -> list[Obj]:
        self._tools[event.call_id] = event.name
        arguments = {"toolArgs": "".join(split_arguments(event))}
        names = self._name_tool(event.call_id, event.name)
        return [{**DRAW[events.Call](event), **arguments, **names}]

    def _progress(self, event: events.Progress) -> list[Obj]:
        data = make_progress_data(event)
        if event.data is not None and progress_fields({"data": data}) != {"data": event.data}:
            reason = "receivers take this shape of data for text or a fraction"
            self._losses.add("progress.data", reason)
        if event.data is not None and event.message:
            self._losses.add("progress.message", "beside other data there is no place for it")
        return [{"type": "tool_progress", **self._name_tool(event.call_id), "data": data}]

    def _result(self, event: events.Result) -> list[Obj]:
        count_result_losses(self._losses, event, content_name="an output")
        drawn = {**DRAW[events.Result](event), **self._name_tool(event.call_id, event.name)}
        self._tools.pop(event.call_id, None)
        return [drawn]

    def _interrupt(self, event: events.Interrupt) -> list[Obj]:
        self._interrupt_reason = event.detail or event.reason
        return []

    def _end(self, event: events.End) -> list[Obj]:
        """Write the end; a run that was stopped ends with an error that names the reason."""
        reason, self._interrupt_reason = self._interrupt_reason, ""
        if event.status == "error":
            return [DRAW[events.Error](self._last_error.take_cause(event))]
        self._last_error.count_as_lost()
        if event.status == "ok":
            return [DRAW[events.End](event)]
        self._losses.add("end.status", "a run is either final or ends in an error")
        message = f"{event.status}: {reason}" if reason else event.status
        return [DRAW[events.Error](events.Error(message=message))]

    def _extension(self, event: events.Extension) -> list[Obj]:
        if event.namespace != NAME:
            return []
        if "type" in as_dict(event.payload):
            self._losses.add("extension.payload", "the name of the extension takes its `type`")
        return [DRAW[events.Extension](event)]

    #: Kind of event -> the method that writes it; events of other kinds are not written.
    HANDLERS: ClassVar[EventHandlers] = {
        events.Think: lambda _, thought: [DRAW[events.Think](thought)],
        events.Delta: _delta,
        events.Respond: _respond,
        events.Call: _call,
        events.Progress: _progress,
        events.Result: _result,
        events.Error: lambda self, event: self._last_error.add(event),
        events.Interrupt: _interrupt,
        events.End: _end,
        events.Extension: _extension,
    }
