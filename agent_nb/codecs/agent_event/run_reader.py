"""The events of one AgentEvent run to ours (seed 003 § 3.1, § 4, § 5).

Rules
- `final`, `error` and `cancelled` end the run (`over`); who reads on is the caller's matter.
- A call id that is used again after its end is another call; a second call or result of one id is
  an extension.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from ...events import (
    Call,
    End,
    Error,
    Event,
    Extension,
    Interrupt,
    Progress,
    Result,
    RunStart,
    Think,
)
from ...events.tool_events import progress_fields, result_fields
from ..call_matching import GUESS, Correlator, Match
from ..losses import Losses
from ..passthrough import diff
from ..run_builder import Source, arguments_of, text_of
from ..times import epoch
from .lines import DRAW, NAME, SHIFTS, Obj, draw_stream

_CAUSES = ("user", "timeout", "limit")


class RunReader:
    """One run being read."""

    def __init__(self, losses: Losses, run: str) -> None:
        self.over = False
        self._source = Source(NAME, losses, SHIFTS)
        self._source.new_run(run)
        self._calls = Correlator()

    def read(self, obj: Obj) -> list[Event]:
        """Return the events of one object."""
        kind = obj.get("type")
        out = self._source.close() if kind != "stream" else []
        handler = (
            self.HANDLERS.get(kind, RunReader._unknown)
            if isinstance(kind, str)
            else RunReader._unknown
        )
        return [*out, *handler(self, obj)]

    def close(self) -> list[Event]:
        """Close the answer if it was cut off."""
        return self._source.close(incomplete=True)

    def _make(self, cls: type[Any], obj: Obj, note: Obj | None = None, **fields: Any) -> Any:
        event = self._source.make(cls, ts=epoch(obj.get("at")), **fields)
        return msgspec.structs.replace(
            event, extra={NAME: {**(note or {}), **diff(obj, DRAW[cls](event))}}
        )

    def _thought(self, obj: Obj) -> list[Event]:
        return [self._make(Think, obj, content=text_of(obj, "content"))]

    def _call(self, obj: Obj) -> list[Event]:
        name, given = text_of(obj, "toolName"), text_of(obj, "callId")
        if self._calls.seen(given) == "open":
            return self._unknown(obj)
        args, raw = arguments_of(obj.get("toolArgs"))
        call_id, synthetic = self._calls.call(name, given)
        return [
            self._make(
                Call, obj, call_id=call_id, synthetic=synthetic, name=name, args=args, raw_args=raw
            )
        ]

    def _progress(self, obj: Obj) -> list[Event]:
        match = self._calls.news(text_of(obj, "toolName"), text_of(obj, "callId"))
        implicit, note = self._news(obj, match)
        return [
            *implicit,
            self._make(Progress, obj, note, call_id=match.call_id, **progress_fields(obj)),
        ]

    def _result(self, obj: Obj) -> list[Event]:
        name, given = text_of(obj, "toolName"), text_of(obj, "callId")
        if self._calls.seen(given) == "over":
            return self._unknown(obj)
        match = self._calls.result(name, given)
        implicit, note = self._news(obj, match)
        return [
            *implicit,
            self._make(Result, obj, note, call_id=match.call_id, name=name, **result_fields(obj)),
        ]

    def _news(self, obj: Obj, match: Match) -> tuple[list[Event], Obj]:
        note = {"guess": GUESS} if match.guess else {}
        if not match.implicit:
            return [], note
        synthetic = not text_of(obj, "callId")
        return [
            self._source.derived(
                Call, call_id=match.call_id, synthetic=synthetic, name=text_of(obj, "toolName")
            )
        ], note

    def _stream(self, obj: Obj) -> list[Event]:
        text = obj.get("content")
        if not isinstance(text, str):
            return [*self._source.close(), *self._unknown(obj)]
        return self._source.delta("respond", text, obj, draw_stream(text), ts=epoch(obj.get("at")))

    def _start(self, obj: Obj) -> list[Event]:
        return [self._make(RunStart, obj)]

    def _final(self, obj: Obj) -> list[Event]:
        self.over = True
        return [self._make(End, obj)]

    def _error(self, obj: Obj) -> list[Event]:
        self.over = True
        return [
            self._make(Error, obj, message=text_of(obj, "error")),
            self._source.derived(End, status="error"),
        ]

    def _cancelled(self, obj: Obj) -> list[Event]:
        self.over = True
        said = text_of(obj, "reason")
        cause: Any = said if said in _CAUSES else "user"
        stopped = self._source.derived(
            Interrupt, reason=cause, detail="" if said == cause else said
        )
        return [stopped, self._make(End, obj, status="interrupted" if cause == "user" else "limit")]

    def _unknown(self, obj: Obj) -> list[Event]:
        payload = {k: v for k, v in obj.items() if k != "type"}
        return [
            self._make(Extension, obj, namespace=NAME, name=text_of(obj, "type"), payload=payload)
        ]

    HANDLERS: ClassVar[dict[str, Callable[[Any, Obj], list[Event]]]] = {
        "thought": _thought,
        "tool_call": _call,
        "tool_progress": _progress,
        "progress": _progress,
        "tool_result": _result,
        "result": _result,
        "tool_error": _result,
        "stream": _stream,
        "final": _final,
        "error": _error,
        "start": _start,
        "cancelled": _cancelled,
    }
