"""Reads the tool events of one Looopy task.

Rules
- A call may be reported twice, by a public event and by an `internal:*` one: of a call with an id
  only the first start and the first end count; a later one is an extension.
- A question about a call is open until it is answered or the call has a result. If the task ends
  as `awaiting` first, the call gets a result that repeats the question.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Container
from typing import Any, ClassVar

from ...events import Approval, Call, Event, Progress, Result, Started
from ...wire import as_dict
from ..call_matching import CallMatcher, Match
from ..foreign_values import arguments_of, fraction_of, is_number, text_of
from ..run_builder import LineHandlers, RunBuilder
from .lines import Obj, plain_prompt

_REMEMBERED = 256  # started calls, whose second start is recognised


class ToolEvents:
    """Reads the tool events of one task. `prefix` makes the ids of its calls unique in the run."""

    def __init__(self, run: RunBuilder, prefix: str) -> None:
        self._run = run
        self._calls = CallMatcher(prefix)
        self._started_calls: OrderedDict[str, None] = OrderedDict()  # ids of calls that started
        self.questions: dict[str, Obj] = {}  # the line of each open question, by call id

    def find_caller(self, agent: str, tool: str, used: Container[str]) -> str:
        """Return the id of the open call that runs an agent, or "".

        First comes the oldest call to a tool with the agent's name (alone, or between `__`), then
        the oldest call to `tool`, then the only open call. Calls in `used`, which run an agent
        already, come last.
        """
        calls = sorted(self._calls.list_open().items(), key=lambda call: call[0] in used)
        of_agent = [call_id for call_id, name in calls if agent in name.split("__")]
        of_tool = [call_id for call_id, name in calls if tool and name == tool]
        only_one = [call_id for call_id, _ in calls] if len(calls) == 1 else []
        return next(iter(of_agent or of_tool or only_one), "")

    def forget_question(self, input_id: str) -> None:
        """Forget the open question that an answer with `input_id` belongs to."""
        for call_id, obj in list(self.questions.items()):
            if input_id and text_of(obj, "inputId") == input_id:
                del self.questions[call_id]

    def close_questions(self, make_event: Callable[..., Event]) -> list[Event]:
        """Return a result, from `make_event`, for each call with an open question."""
        out: list[Event] = []
        for call_id, obj in self.questions.items():
            name, prompt = self._calls.tool_of(call_id), text_of(obj, "prompt")
            text = f"It waits for an answer: {prompt}" if prompt else "It waits for an answer."
            fields = {"name": name, "status": "cancelled", "content": text}
            out.append(make_event(Result, call_id=call_id, **fields))
        self.questions = {}
        return out

    def _call(self, obj: Obj) -> list[Event]:
        name, wire_id = text_of(obj, "toolName"), text_of(obj, "toolCallId")
        if self._calls.state_of(wire_id) == "open":
            return self._run.unknown(obj)
        fields = self._calls.begin_call(name, wire_id, obj.get("arguments"))
        return [self._run.line(Call, obj, **fields)]

    def _about_call(self, cls: type[Event], obj: Obj, match: Match, **fields: Any) -> list[Event]:
        """Return the event of an object about a call, after the call itself if that is new."""
        location = {k: v for k, v in self._run.envelope(obj).items() if k != "path"}
        args = arguments_of(obj.get("arguments", obj.get("toolArguments")))
        name, wire_id = text_of(obj, "toolName"), text_of(obj, "toolCallId")
        implicit = self._run.implicit_call(match, wire_id, **location, name=name, args=args)
        return [*implicit, self._run.line(cls, obj, call_id=match.call_id, **fields)]

    def _started(self, obj: Obj) -> list[Event]:
        """Read the start of a call; a second one is an extension."""
        name, wire_id = text_of(obj, "toolName"), text_of(obj, "toolCallId")
        if self._calls.state_of(wire_id) == "over":
            return self._run.unknown(obj)
        match = self._calls.match_line(name, wire_id)
        if wire_id:
            if match.call_id in self._started_calls:
                return self._run.unknown(obj)
            self._started_calls[match.call_id] = None
            if len(self._started_calls) > _REMEMBERED:
                self._started_calls.popitem(last=False)
        return self._about_call(Started, obj, match, name=name)

    def _progress(self, obj: Obj) -> list[Event]:
        match = self._calls.match_line(text_of(obj, "toolName"), text_of(obj, "toolCallId"))
        data = obj.get("metadata")
        fields: Obj = {
            "fraction": fraction_of(obj.get("progress")),
            "message": text_of(obj, "message"),
            "data": data if isinstance(data, dict) else None,
        }
        return self._about_call(Progress, obj, match, **fields)

    def _ended(self, obj: Obj) -> list[Event]:
        """Read a result; without `success`, an `error` without a `result` means failure."""
        name, wire_id = text_of(obj, "toolName"), text_of(obj, "toolCallId")
        if self._calls.state_of(wire_id) == "over":
            return self._run.unknown(obj)
        match = self._calls.match_result(name, wire_id)
        self.questions.pop(match.call_id, None)
        only_error = "success" not in obj and "error" in obj and "result" not in obj
        succeeded = obj.get("success") is not False and not only_error
        ms = as_dict(obj.get("metadata")).get("duration")
        fields: Obj = {
            "name": name,
            "status": "ok" if succeeded else "error",
            "content": obj.get("result" if succeeded else "error", obj.get("result", "")),
            "duration": ms / 1000 if is_number(ms) and ms > 0 else 0.0,
        }
        return self._about_call(Result, obj, match, **fields)

    def _question(self, obj: Obj) -> list[Event]:
        if self._calls.state_of(text_of(obj, "toolCallId")) == "over":
            return self._run.unknown(obj)
        match = self._calls.match_line(text_of(obj, "toolName"), text_of(obj, "toolCallId"))
        self.questions[match.call_id] = obj
        prompt = text_of(obj, "prompt")
        reason = "" if prompt == plain_prompt(text_of(obj, "toolName")) else prompt
        args = as_dict(obj.get("toolArguments"))
        return self._about_call(Approval, obj, match, args=args, reason=reason)

    #: Kind of an object -> the method that reads it.
    HANDLERS: ClassVar[LineHandlers] = {
        "tool-call": _call,
        "tool-start": _started,
        "internal:tool-start": _started,
        "tool-progress": _progress,
        "tool-complete": _ended,
        "internal:tool-complete": _ended,
        "tool-input-required": _question,
    }


KINDS = frozenset(ToolEvents.HANDLERS)
