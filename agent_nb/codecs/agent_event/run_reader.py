"""Turns thoughts, calls, texts and end of one AgentEvent run into ours (seed 003 § 3.1, § 4, § 5).

Each sub-agent has such a reader of its own, inside that of its run.

Rule: a sub-agent's events form a run inside its call, which ends with the call. Its `span` is the
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
from ..run_builder import LineHandlers, RunBuilder, UniqueIds, drawn_by
from ..times import read_epoch
from .lines import DRAW, NAME, SHIFTS, Obj, draw_stream
from .nested import OUTER, child_event
from .whole_view import ViewAnswer, WholeView

_ENDINGS = ("final", "error", "cancelled")


class RunReader:
    """Reads one run or, with a `span`, a sub-agent's part of it."""

    def __init__(self, run: str, span: str = "") -> None:
        self.outcome = ""  # how the run ended, as the result of a node; "": it goes on
        self._span = span
        self._where = {"span": span} if span else {}
        self._run = RunBuilder(
            NAME,
            drawn_by(DRAW),
            lambda obj: {"ts": read_epoch(obj.get("at")), **self._where},
            _payload_of,
        )
        self._run.new_run(run)
        prefix = f"{span}/" if span else ""
        self._text = Blocks(self._run, SHIFTS, prefix)
        self._calls = CallMatcher(prefix)
        self._view, self._view_answer = WholeView(), ViewAnswer(self._derived, prefix)
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
        out = self._text.close_text() if kind not in ("stream", "text_chunk") else []
        return [*out, *self._run.read_line(self, obj)]

    def close(self) -> list[Event]:
        """Close the sub-agents, and the answer as incomplete; end the run if it waits for input."""
        out = [*self._close_children(), *self._text.close_text(incomplete=True)]
        out += self._view_answer.close(incomplete=not self._awaits_input)
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
            return self._run.unknown(obj)
        fields = self._calls.begin_call(name, wire_id, obj.get("toolArgs"))
        return [self._run.line(events.Call, obj, **fields)]

    def _progress(self, obj: Obj) -> list[Event]:
        """Read progress of a tool, or the event of a sub-agent in it."""
        name, wire_id = text_of(obj, "toolName"), text_of(obj, "callId")
        # progress that names neither call nor tool belongs to the oldest open call
        call_id = wire_id if wire_id or name else self._calls.oldest()
        match = self._calls.match_line(name, call_id)
        implicit = self._implicit_call(match, wire_id, name)
        event = child_event(obj)
        child = self._children.get((match.call_id, event[0])) if event is not None else None
        if event is not None and not (child is not None and child.reader.is_over):
            return [*implicit, *self._read_nested(match.call_id, *event)]
        fields: Obj = {"call_id": match.call_id, **progress_fields(obj)}
        return [*implicit, self._run.line(events.Progress, obj, match.note, **fields)]

    def _result(self, obj: Obj) -> list[Event]:
        name, wire_id = text_of(obj, "toolName"), text_of(obj, "callId")
        if self._calls.state_of(wire_id) == "over":
            return self._run.unknown(obj)
        match = self._calls.match_result(name, wire_id)
        implicit = self._implicit_call(match, wire_id, name)
        fields: Obj = {"call_id": match.call_id, "name": name, **result_fields(obj)}
        child_ends = self._close_children(match.call_id)
        return [*implicit, *child_ends, self._run.line(events.Result, obj, match.note, **fields)]

    def _stream(self, obj: Obj) -> list[Event]:
        text = obj.get("content")
        if not isinstance(text, str):
            return [*self._text.close_text(), *self._run.unknown(obj)]
        return self._text.add_text("respond", text, obj, draw_stream(text))

    def _final(self, obj: Obj) -> list[Event]:
        self.outcome = "ok"
        closing = [*self._close_children(), *self._view_answer.close()]
        return [*closing, self._run.line(events.End, obj)]

    def _error(self, obj: Obj) -> list[Event]:
        self.outcome = "error"
        return [
            *self._close_children(),
            *self._view_answer.close(incomplete=True),
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
        closing = [*self._close_children(), *self._view_answer.close(incomplete=True)]
        return [*closing, stopped, end]

    def _run_view(self, obj: Obj) -> list[Event]:
        """Read a view, which repeats the whole run so far.

        The view becomes a state. What it adds to the view before becomes events.
        """
        state = self._run.line(events.State, obj, kind="run_view", payload=_payload_of(obj))
        out: list[Event] = [state]
        new_lines, end = self._view.list_new_lines(obj), None
        if new_lines and new_lines[-1]["type"] in _ENDINGS:
            end = new_lines.pop()  # read last: the answer, which has no line, comes before it
        for line in new_lines:
            out += map(_mark_derived, self.read(line))
        out += self._view_answer.read_text(text_of(obj, "content"))
        question = as_dict(obj.get("awaitingInput"))
        if question and not end:
            out += self._view_question(question)
        self._awaits_input = bool(question)
        if end is not None:
            out += map(_mark_derived, [*self._view_answer.close(), *self.read(end)])
        return out

    def _view_question(self, question: Obj) -> list[Event]:
        """Return the question in a view as an approval, unless an earlier view had it."""
        wire_id, prompt = text_of(question, "callId"), text_of(question, "message")
        if (wire_id, prompt) in self._view_questions or not wire_id:
            return []
        self._view_questions.add((wire_id, prompt))
        match = self._calls.match_line("", wire_id)
        implicit = self._implicit_call(match, wire_id, "")
        return [*implicit, self._derived(events.Approval, call_id=match.call_id, reason=prompt)]

    #: Type of an object -> the method that reads it; an object of any other type is an extension.
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
        "start": lambda self, obj: [self._run.line(events.RunStart, obj)],
        "cancelled": _cancelled,
        "run_view": _run_view,
    }


class _Child(msgspec.Struct):
    """A sub-agent of a run: its own id, its span, and its reader."""

    run: str
    span: str
    reader: RunReader


def _payload_of(obj: Obj) -> Obj:
    return {k: v for k, v in obj.items() if k not in ("type", OUTER)}


def _mark_derived(event: Event) -> Event:
    """Return an event marked as derived: the line of the view stands for it."""
    return msgspec.structs.replace(event, extra={NAME: {"derived": True}})
