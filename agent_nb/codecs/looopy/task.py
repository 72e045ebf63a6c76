"""Reads the events of one Looopy task (seed 004); `read` finds the task of each event.

Rules
- If nothing was streamed, `content-complete` is a block itself. If its text differs from the
  streamed text, it replaces that (see `events.text`).
- The `end` comes with `task-complete`. Without it, a status or an open question gives the `end`
  when the task closes; an open question means `awaiting`. With `task-complete`, only a question
  about a call counts.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from ... import events
from ...events import Event
from ...wire import as_dict
from ..blocks import Blocks
from ..foreign_values import text_of
from ..passthrough import note_difference
from ..replies import StreamedAnswer
from ..run_builder import LineHandlers, RunBuilder, drawn_by
from ..times import read_epoch
from . import lines
from .lines import DRAW, NAME, SHIFTS, Obj
from .tools import KINDS, ToolEvents


class Task:
    """Reads one task, or the part of a task that a sub-agent does (`span`).

    `name`: the sub-agent. `parent`: the span around it. `call`: the id of the call that runs it.
    """

    def __init__(
        self, run: str, span: str = "", *, parent: str = "", name: str = "", call: str = ""
    ) -> None:
        self.is_over = False
        self.span = span
        self.call = call
        self.parent = parent
        self._agent = name
        self._user_questions: dict[str, None] = {}  # ids of open questions to the user
        fields_of = lines.strip_envelope
        self._run = RunBuilder(NAME, drawn_by(DRAW), self._envelope, fields_of, kind="kind")
        self._run.new_run(run)
        prefix = f"{span}/" if span else ""
        self._text = Blocks(self._run, SHIFTS, prefix)
        self.tools = ToolEvents(self._run, prefix)
        self._streamed_text = ""  # the text streamed since the last `content-complete`
        self._answer = StreamedAnswer(span)
        self._request_count = 0
        self._request_span = ""  # the span of the open model request
        self._status = lines.TaskStatus()  # the newest
        self._total = events.Counts()
        self._ts = 0.0  # the time of the newest object (epoch seconds)

    def read(self, obj: Obj) -> list[Event]:
        """Return the events of one object, whose `kind` is filled in."""
        kind = obj["kind"]
        self._ts = read_epoch(obj.get("timestamp"))
        continues = kind in ("content-delta", "content-complete")
        closing = [] if continues else self._observe(self._text.close_text())
        new = self._run.read_line(self.tools if kind in KINDS else self, obj)
        return [*closing, *self._observe(new)]

    def enter_agent(self, obj: Obj) -> list[Event]:
        """Return the start of a sub-agent's node; nothing for an outermost task."""
        self._ts = read_epoch(obj.get("timestamp"))
        return self._node("enter") if self._agent else []

    @property
    def asks(self) -> bool:
        """Whether the task waits for an answer."""
        return bool(self._user_questions or self.tools.questions)

    def _node(self, phase: Literal["enter", "exit"], result: str = "") -> list[Event]:
        data = None
        if self.call and phase == "enter":
            data = {"agent": self._agent, "call_id": self.call}
        fields: Obj = {"name": self._agent, "phase": phase, "parent": self.parent}
        return [self._derived(events.Node, **fields, result=result, data=data)]

    @property
    def has_final_status(self) -> bool:
        """Whether the newest status ends the task, so that a `task-complete` need not come."""
        return self._status.state in ("completed", "failed", "canceled")

    def close(self, *, caller_ended: bool = False, inner_asks: bool = False) -> list[Event]:
        """End the task: close open blocks; add an end if a status or an open question implies one.

        `caller_ended`: the call or run that contains the task has ended, so the task is done too;
        `inner_asks`: a task inside this one waits for an answer.
        """
        out = [*self._text.close_text(incomplete=True), *self._end_request()]
        status = self._implied_status()
        if (inner_asks or self.asks) and not caller_ended and status in ("", "awaiting"):
            status = "awaiting"
            out += self.tools.close_questions(self._derived)
        if status and not self.is_over:
            out.append(self._derived(events.End, status=status))
        if self._agent and not self.is_over:
            out += self._node("exit", status or ("ok" if caller_ended else "interrupted"))
        self.is_over = True
        return out

    def _envelope(self, obj: Obj) -> Obj:
        path = obj.get("path")
        text = "/".join(p for p in path if isinstance(p, str)) if isinstance(path, list) else ""
        return {"ts": self._ts, "path": text, "span": self.span}

    def _derived(self, cls: type[Any], **fields: Any) -> Any:
        return self._run.derived(cls, ts=self._ts, **{"span": self.span, **fields})

    def _unstreamed_text(self, text: str, rest: bool = False) -> Any:
        """Return the event of a text that was not streamed; `rest`: its beginning was."""
        note = {"derived": True, **({"rest": True} if rest else {})}
        return self._run.make(events.Respond, note, content=text, ts=self._ts, span=self.span)

    def _observe(self, new: list[Event]) -> list[Event]:
        """Record the streamed text in `new`; return `new`."""
        for event in new:
            self._answer.add(event)
        return new

    def _created(self, obj: Obj) -> list[Event]:
        names = as_dict(obj.get("metadata"))
        agent, model = text_of(names, "agentId"), text_of(names, "model")
        return [self._run.line(events.RunStart, obj, agent=agent, model=model)]

    def _read_status(self, obj: Obj) -> list[Event]:
        """Read a status; `failed` and `canceled` are also an error and an interrupt."""
        payload = lines.strip_envelope(obj)
        out: list[Event] = [self._run.line(events.State, obj, kind="status", payload=payload)]
        status = self._status = lines.read_status(payload)
        if status.state == "failed":
            out.append(self._derived(events.Error, message=status.message))
        elif status.state == "canceled":
            reason = status.cause or "user"
            out.append(self._derived(events.Interrupt, reason=reason, detail=status.message))
        return out

    def _implied_status(self) -> Any:
        """Return the end status that the newest status of the task implies, or ""."""
        status = lines.ENDED.get(self._status.state, "")
        if status == "interrupted" and self._status.cause in ("timeout", "limit"):
            return "limit"
        return status

    def _complete_task(self, obj: Obj) -> list[Event]:
        """Read the end of a task, once; its content may hold more than was streamed."""
        if self.is_over:
            return self._run.unknown(obj)
        out = self._end_request()
        text = text_of(obj, "content")
        if not self._answer.includes(text):
            out.append(self._unstreamed_text(*self._answer.find_rest(text)))
        status = self._implied_status()
        if status in ("", "awaiting", "ok"):
            status = "awaiting" if self.tools.questions else "ok"
        if status == "awaiting":
            out += self.tools.close_questions(self._derived)
        self.is_over = True
        reason = text_of(obj, "finishReason")
        exits = self._node("exit", status) if self._agent else []
        return [*out, self._run.line(events.End, obj, status=status, finish_reason=reason), *exits]

    def _checkpoint(self, obj: Obj) -> list[Event]:
        payload = lines.strip_envelope(obj)
        return [self._run.line(events.State, obj, kind="checkpoint", payload=payload)]

    def _delta(self, obj: Obj) -> list[Event]:
        text = obj.get("delta", obj.get("content"))
        if not isinstance(text, str):
            return [*self._text.close_text(), *self._run.unknown(obj)]
        self._streamed_text += text
        return self._text.add_text("respond", text, obj, lines.draw_delta(text))

    def _complete(self, obj: Obj) -> list[Event]:
        """Read the end of a text: close the block, or read the text that was not streamed."""
        streamed, self._streamed_text = self._streamed_text, ""
        text = obj.get("content")
        note = {"complete": note_difference(obj, lines.draw_complete(streamed))}
        if self._text.open_text is not None:
            out = self._text.close_text(note)
        elif not streamed and isinstance(text, str) and text:
            drawn = lines.draw_complete(text)
            whole = {"form": "whole", "complete": note_difference(obj, drawn)}
            out = [self._run.make(events.Respond, whole, content=text, **self._envelope(obj))]
        else:
            out = self._run.unknown(obj)
        # a text that differs from the streamed one replaces it
        if streamed and isinstance(text, str) and text.strip() not in ("", streamed.strip()):
            out.append(self._unstreamed_text(text))
        return [*out, *self._end_request()]

    def _thought(self, obj: Obj) -> list[Event]:
        text = obj.get("content", obj.get("thought", ""))
        content = text if isinstance(text, str) else ""
        attributes = lines.read_attributes(obj)
        return [self._run.line(events.Think, obj, content=content, attributes=attributes)]

    def _message(self, obj: Obj) -> list[Event]:
        message = as_dict(obj.get("message"))
        if message.get("role") != "user" or not isinstance(message.get("content"), str):
            return self._run.unknown(obj)
        return [self._run.line(events.User, obj, content=message["content"])]

    def _usage(self, obj: Obj) -> list[Event]:
        step = lines.read_counts(obj)
        self._total += step
        return [self._run.line(events.Metric, obj, step=step, total=self._total)]

    def _request(self, obj: Obj) -> list[Event]:
        """Read the start of a model request; it ends with the text or with the next request."""
        out = self._end_request()
        self._request_count += 1
        name = f"llm-{self._request_count}"
        self._request_span = f"{self.span}/{name}" if self.span else name
        fields: Obj = {
            "span": self._request_span,
            "parent": self.span,
            "data": {**lines.strip_envelope(obj), "internal": True},
        }
        return [*out, self._run.line(events.Node, obj, name="llm", phase="enter", **fields)]

    def _end_request(self) -> list[Event]:
        """Return the end of the open model request, if any."""
        span, self._request_span = self._request_span, ""
        if not span:
            return []
        fields: Obj = {"phase": "exit", "result": "ok", "data": {"internal": True}}
        return [self._derived(events.Node, name="llm", span=span, parent=self.span, **fields)]

    def _question(self, obj: Obj) -> list[Event]:
        self._user_questions[_question_id(obj)] = None
        return self._run.unknown(obj)

    def _question_answered(self, obj: Obj) -> list[Event]:
        self._user_questions.pop(_question_id(obj), None)
        self.tools.forget_question(text_of(obj, "inputId"))
        return self._run.unknown(obj)

    #: Type of an object -> the method that reads it; an object of any other type is an extension.
    HANDLERS: ClassVar[LineHandlers] = {
        "task-created": _created,
        "task-status": _read_status,
        "task-complete": _complete_task,
        "content-delta": _delta,
        "content-complete": _complete,
        "thought-stream": _thought,
        "message": _message,
        "llm-usage": _usage,
        "internal:llm-call": _request,
        "internal:checkpoint": _checkpoint,
        "input-required": _question,
        "input-received": _question_answered,
        "auth-required": _question,
        "auth-completed": _question_answered,
    }


def _question_id(obj: Obj) -> str:
    return text_of(obj, "inputId") or f"auth {text_of(obj, 'authId')}"
