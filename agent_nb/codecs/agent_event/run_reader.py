"""Read the events of one AgentEvent run (seed 003 § 3.1, § 4, § 5).

Rules
- `final`, `error` and `cancelled` end the run (`over`); the caller decides about later events.
- A call id that is used again after its end is another call; a second call or result of one id is
  an extension.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ...events import (
    Call,
    End,
    Error,
    Event,
    Interrupt,
    Progress,
    Result,
    RunStart,
    Think,
)
from ...events.tool_events import progress_fields, result_fields
from ..blocks import Blocks
from ..call_matching import Correlator
from ..foreign_values import arguments_of, text_of
from ..run_builder import RunBuilder, drawn_by, handler_of
from ..times import epoch
from .lines import DRAW, NAME, SHIFTS, Obj, draw_stream

_CAUSES = ("user", "timeout", "limit")


class RunReader:
    """One run being read."""

    def __init__(self, run: str) -> None:
        self.over = False
        self._run = RunBuilder(NAME, drawn_by(DRAW), lambda obj: {"ts": epoch(obj.get("at"))})
        self._run.new_run(run)
        self._text = Blocks(self._run, SHIFTS)
        self._calls = Correlator()

    def read(self, obj: Obj) -> list[Event]:
        """Return the events of one object."""
        kind = obj.get("type")
        out = self._text.close() if kind not in ("stream", "text_chunk") else []
        return [*out, *handler_of(self.HANDLERS, kind, RunReader._unknown)(self, obj)]

    def close(self) -> list[Event]:
        """Close the answer if it was cut off."""
        return self._text.close(incomplete=True)

    def _thought(self, obj: Obj) -> list[Event]:
        return [self._run.line(Think, obj, content=text_of(obj, "content"))]

    def _call(self, obj: Obj) -> list[Event]:
        name, given = text_of(obj, "toolName"), text_of(obj, "callId")
        if self._calls.seen(given) == "open":
            return self._unknown(obj)
        args, raw = arguments_of(obj.get("toolArgs"))
        call_id, synthetic = self._calls.call(name, given)
        return [
            self._run.line(
                Call, obj, call_id=call_id, synthetic=synthetic, name=name, args=args, raw_args=raw
            )
        ]

    def _progress(self, obj: Obj) -> list[Event]:
        name, given = text_of(obj, "toolName"), text_of(obj, "callId")
        match = self._calls.news(name, given or ("" if name else self._calls.oldest()))
        implicit = self._run.implicit_call(match, given, name=name)
        fields: Obj = {"call_id": match.call_id, **progress_fields(obj)}
        return [*implicit, self._run.line(Progress, obj, match.note, **fields)]

    def _result(self, obj: Obj) -> list[Event]:
        name, given = text_of(obj, "toolName"), text_of(obj, "callId")
        if self._calls.seen(given) == "over":
            return self._unknown(obj)
        match = self._calls.result(name, given)
        implicit = self._run.implicit_call(match, given, name=name)
        fields: Obj = {"call_id": match.call_id, "name": name, **result_fields(obj)}
        return [*implicit, self._run.line(Result, obj, match.note, **fields)]

    def _stream(self, obj: Obj) -> list[Event]:
        text = obj.get("content")
        if not isinstance(text, str):
            return [*self._text.close(), *self._unknown(obj)]
        return self._text.delta("respond", text, obj, draw_stream(text), ts=epoch(obj.get("at")))

    def _start(self, obj: Obj) -> list[Event]:
        return [self._run.line(RunStart, obj)]

    def _final(self, obj: Obj) -> list[Event]:
        self.over = True
        return [self._run.line(End, obj)]

    def _error(self, obj: Obj) -> list[Event]:
        self.over = True
        return [
            self._run.line(Error, obj, message=text_of(obj, "error")),
            self._run.derived(End, status="error"),
        ]

    def _cancelled(self, obj: Obj) -> list[Event]:
        self.over = True
        said = text_of(obj, "reason")
        cause: Any = said if said in _CAUSES else "user"
        stopped = self._run.derived(Interrupt, reason=cause, detail="" if said == cause else said)
        return [
            stopped,
            self._run.line(End, obj, status="interrupted" if cause == "user" else "limit"),
        ]

    def _unknown(self, obj: Obj) -> list[Event]:
        return self._run.unknown(obj)

    HANDLERS: ClassVar[dict[str, Callable[[Any, Obj], list[Event]]]] = {
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
    }
