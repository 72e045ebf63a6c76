"""Turn thoughts, calls, texts and end of one AgentEvent run into ours (seed 003 § 3.1, § 4, § 5).

Why apart from `read`: each sub-agent has such a reader of its own, inside that of its run.

Rules
- `final`, `error` and `cancelled` end the run, and before it the answer of its views.
- A second call with the id of an open call, or a second result, is an extension.
- A sub-agent's events form a run inside its call, which ends with the call. Its `span` is the
  call's id, with `#2` … for further sub-agents of the call.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from ... import events
from ...events import Event, progress_fields, result_fields
from ...wire import as_dict
from ..blocks import Blocks
from ..call_matching import CallMatcher, Match
from ..foreign_values import interrupt_fields, text_of
from ..run_builder import LineHandlers, RunBuilder, UniqueIds, drawn_by, handler_of
from ..times import read_epoch
from .lines import DRAW, NAME, SHIFTS, Obj, draw_stream
from .nested import OUTER, child_event
from .whole_view import WholeView

_ENDINGS = ("final", "error", "cancelled")


class RunReader:
    """Reads one run or, with a `span`, a sub-agent's part of it."""

    def __init__(self, run: str, span: str = "") -> None:
        self.outcome = ""  # how the run ended, as the result of a node; "": it goes on
        self._span = span
        self._where = {"span": span} if span else {}
        self._run = RunBuilder(
            NAME, drawn_by(DRAW), lambda obj: {"ts": read_epoch(obj.get("at")), **self._where}
        )
        self._run.new_run(run)
        prefix = f"{span}/" if span else ""
        self._text = Blocks(self._run, SHIFTS, prefix)
        self._calls = CallMatcher(prefix)
        self._view = WholeView()
        self._rewrites = 0  # how often a view has rewritten the answer
        self._view_questions: set[tuple[str, str]] = set()  # (call id, prompt) read so far
        self._awaits_input = False  # as the newest view says
        self._spans = UniqueIds()
        self._children: dict[tuple[str, str], _Child] = {}  # by call and run

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return bool(self.outcome)

    def read(self, obj: Obj) -> list[Event]:
        """Return the events of one object."""
        kind = obj.get("type")
        out = self._text.close() if kind not in ("stream", "text_chunk") else []
        return [*out, *handler_of(self.HANDLERS, kind, RunReader._unknown)(self, obj)]

    def close(self) -> list[Event]:
        """Close the sub-agents, and the answer as incomplete; end the run if it waits for input."""
        out = [*self._close_children(), *self._text.close(incomplete=True)]
        out += self._close_view(incomplete=not self._awaits_input)
        if self._awaits_input and not self.is_over:
            self.outcome = "awaiting"
            out.append(self._derived(events.End, status="awaiting"))
        return out

    def _derived(self, cls: type[Event], **fields: Any) -> Event:
        return self._run.derived(cls, **self._where, **fields)

    def _implicit_call(self, match: Match, wire_id: str, name: str) -> list[Event]:
        return self._run.implicit_call(match, wire_id, **self._where, name=name)

    def _read_nested(self, call_id: str, child_run: str, obj: Obj) -> list[Event]:
        """Read an event of a sub-agent; the first opens its node, the last closes it."""
        out: list[Event] = []
        child = self._children.get((call_id, child_run))
        if child is None:
            span = self._spans.take(call_id)
            child = _Child(child_run, span, RunReader(self._run.run, span))
            self._children[call_id, child_run] = child
            # the lines do not name a sub-agent: the id of its run stands for the name
            data = {"agent": child_run, "run": child_run, "call_id": call_id}
            out += self._node(child, phase="enter", data=data)
        out += child.reader.read(obj)
        if child.reader.is_over:
            out += self._node(child, phase="exit", result=child.reader.outcome)
        return out

    def _node(self, child: _Child, **fields: Any) -> list[Event]:
        location = {"span": child.span, "parent": self._span}
        return [self._run.derived(events.Node, name=child.run, **location, **fields)]

    def _close_children(self, call_id: str = "") -> list[Event]:
        """Close the open sub-agents of a call that ended or, for "", of the run that ends."""
        out: list[Event] = []
        for (call, _), child in self._children.items():
            if not child.reader.is_over and call_id in ("", call):
                out += child.reader.close()
                child.reader.outcome = "ok" if call_id else "interrupted"
                out += self._node(child, phase="exit", result=child.reader.outcome)
        return out

    def _thought(self, obj: Obj) -> list[Event]:
        return [self._run.line(events.Think, obj, content=text_of(obj, "content"))]

    def _call(self, obj: Obj) -> list[Event]:
        name, wire_id = text_of(obj, "toolName"), text_of(obj, "callId")
        if self._calls.state_of(wire_id) == "open":
            return self._unknown(obj)
        fields = self._calls.begin_call(name, wire_id, obj.get("toolArgs"))
        return [self._run.line(events.Call, obj, **fields)]

    def _progress(self, obj: Obj) -> list[Event]:
        """Read progress of a tool, or the event of a sub-agent in it."""
        name, wire_id = text_of(obj, "toolName"), text_of(obj, "callId")
        # progress that names neither call nor tool belongs to the oldest open call
        call_id = wire_id if wire_id or name else self._calls.oldest()
        match = self._calls.match_line(name, call_id)
        implicit = self._implicit_call(match, wire_id, name)
        child = child_event(obj)
        if child is not None and not self._child_is_over(match.call_id, child[0]):
            return [*implicit, *self._read_nested(match.call_id, *child)]
        fields: Obj = {"call_id": match.call_id, **progress_fields(obj)}
        return [*implicit, self._run.line(events.Progress, obj, match.note, **fields)]

    def _result(self, obj: Obj) -> list[Event]:
        name, wire_id = text_of(obj, "toolName"), text_of(obj, "callId")
        if self._calls.state_of(wire_id) == "over":
            return self._unknown(obj)
        match = self._calls.match_result(name, wire_id)
        implicit = self._implicit_call(match, wire_id, name)
        fields: Obj = {"call_id": match.call_id, "name": name, **result_fields(obj)}
        child_ends = self._close_children(match.call_id)
        return [*implicit, *child_ends, self._run.line(events.Result, obj, match.note, **fields)]

    def _child_is_over(self, call_id: str, child_run: str) -> bool:
        child = self._children.get((call_id, child_run))
        return child is not None and child.reader.is_over

    def _stream(self, obj: Obj) -> list[Event]:
        text = obj.get("content")
        if not isinstance(text, str):
            return [*self._text.close(), *self._unknown(obj)]
        return self._text.delta("respond", text, obj, draw_stream(text))

    def _start(self, obj: Obj) -> list[Event]:
        return [self._run.line(events.RunStart, obj)]

    def _final(self, obj: Obj) -> list[Event]:
        self.outcome = "ok"
        return [*self._close_children(), *self._close_view(), self._run.line(events.End, obj)]

    def _error(self, obj: Obj) -> list[Event]:
        self.outcome = "error"
        return [
            *self._close_children(),
            *self._close_view(incomplete=True),
            self._run.line(events.Error, obj, message=text_of(obj, "error")),
            self._derived(events.End, status="error"),
        ]

    def _cancelled(self, obj: Obj) -> list[Event]:
        """Read the end of a run that was stopped: by the user, or by a limit."""
        self.outcome = "interrupted"
        fields = interrupt_fields(text_of(obj, "reason"))
        stopped = self._derived(events.Interrupt, **fields)
        status = "interrupted" if fields["reason"] == "user" else "limit"
        end = self._run.line(events.End, obj, status=status)
        return [*self._close_children(), *self._close_view(incomplete=True), stopped, end]

    def _run_view(self, obj: Obj) -> list[Event]:
        """Read a view, which repeats the whole run so far.

        The view becomes a state. What it adds to the view before becomes events.
        """
        payload = {k: v for k, v in obj.items() if k not in ("type", OUTER)}
        out: list[Event] = [self._run.line(events.State, obj, kind="run_view", payload=payload)]
        new_lines, before = self._view.list_new_lines(obj), self._view.content
        end = None
        if new_lines and new_lines[-1]["type"] in _ENDINGS:
            end = new_lines.pop()  # read last: the answer, which has no line, comes before it
        for line in new_lines:
            out += map(_mark_derived, self.read(line))
        text = text_of(obj, "content")
        self._view.content = text
        if text.startswith(before) and len(text) > len(before):
            out.append(self._view_delta(text[len(before) :]))
        elif text != before:
            out.append(self._view_answer(before, incomplete=True))
            self._rewrites += 1
            if text:
                out.append(self._view_delta(text))
        question = as_dict(obj.get("awaitingInput"))
        if question and not end:
            out += self._view_question(question)
        self._awaits_input = bool(question)
        if end is not None:
            out += map(_mark_derived, [*self._close_view(), *self.read(end)])
        return out

    def _view_delta(self, text: str) -> Event:
        return self._derived(events.Delta, of="respond", block=self._view_block(), text=text)

    def _view_answer(self, text: str, *, incomplete: bool = False) -> Event:
        return self._derived(
            events.Respond, content=text, block=self._view_block(), incomplete=incomplete
        )

    def _view_block(self) -> str:
        return f"{self._span}/view-{self._rewrites}" if self._span else f"view-{self._rewrites}"

    def _close_view(self, *, incomplete: bool = False) -> list[Event]:
        text, self._view.content = self._view.content, ""
        return [self._view_answer(text, incomplete=incomplete)] if text else []

    def _view_question(self, question: Obj) -> list[Event]:
        """Return the question in a view as an approval, unless an earlier view had it."""
        wire_id, prompt = text_of(question, "callId"), text_of(question, "message")
        if (wire_id, prompt) in self._view_questions or not wire_id:
            return []
        self._view_questions.add((wire_id, prompt))
        match = self._calls.match_line("", wire_id)
        implicit = self._implicit_call(match, wire_id, "")
        return [*implicit, self._derived(events.Approval, call_id=match.call_id, reason=prompt)]

    def _unknown(self, obj: Obj) -> list[Event]:
        payload = {k: v for k, v in obj.items() if k not in ("type", OUTER)}
        return [self._run.extension(obj, text_of(obj, "type"), payload)]

    #: Type of an object -> the method that reads it; any other type is read by `_unknown`.
    HANDLERS: ClassVar[LineHandlers] = {
        "thought": _thought,
        "tool_call": _call,
        "tool_progress": _progress,
        "progress": _progress,
        "tool_result": _result,
        "result": _result,
        "tool_error": _result,
        "stream": _stream,
        "text_chunk": _stream,
        "final": _final,
        "error": _error,
        "start": _start,
        "cancelled": _cancelled,
        "run_view": _run_view,
    }


class _Child(msgspec.Struct):
    """A sub-agent of a run: its own id, its span, and its reader."""

    run: str
    span: str
    reader: RunReader


def _mark_derived(event: Event) -> Event:
    """Return an event marked as derived: the line of the view stands for it."""
    return msgspec.structs.replace(event, extra={NAME: {"derived": True}})
