"""AgentEvent over SSE (seed 003): thought, tool_call, tool_progress, tool_result, stream, final, error.

Reads ToolEvents in their own spelling too (`progress`, `result`), tool arguments as JSON text or object, and the later fields of the
same system (`callId`, `at`, `start`, `cancelled`). Forms to write: `plain` as in the seed, `ids` with `callId`.

Rules
- There are no call ids in the seed: news of a tool goes to its oldest open call, marked as a guess where that was a choice; news of a
  tool that nobody called opens an implicit call once.
- `stdout_chunk` and string data are text, `percent` is a fraction (§ 5); the data as it came is kept.
- `final` and `error` are terminal: what follows is counted and ignored, unless a new run begins. An error that did not end a run of
  ours is therefore not written.
- A sub-agent's answer is progress of the call that runs it (§ 7).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from ..events import Call, End, Error, Event, Extension, Interrupt, Progress, Result, RunStart, Think
from .agent_event_lines import DRAW, NAME, SHIFTS, Obj, draw_stream, parsed, read_data
from .agent_event_write import AgentEventWriter
from .base import Codec, Item
from .correlate import GUESS, Correlator, Match
from .framing import dumps
from .losses import Losses
from .reading import Source, run_id, text_of
from .residue import diff
from .times import epoch


class AgentEventReader:
    """Events of the wire to ours."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._source = Source(NAME, losses, SHIFTS)
        self._calls = Correlator()
        self._runs = 0
        self._wire_run: Any = None
        self._over = False

    def read(self, item: Item) -> list[Event]:
        """Return the events of one object."""
        obj = item.obj
        kind = obj.get("type")
        other = self._wire_run is not None and "runId" in obj and obj["runId"] != self._wire_run
        if self._over and not other and kind != "start":
            self._losses.add("event after the end", "final and error are terminal", raw=dumps(obj))
            return []
        out: list[Event] = []
        if not self._runs or self._over or other:
            out += self._source.close(incomplete=not self._over and bool(self._runs))
            self._begin(obj)
        if kind != "stream":
            out += self._source.close()
        handler = self.HANDLERS.get(kind, AgentEventReader._unknown) if isinstance(kind, str) else AgentEventReader._unknown
        return [*out, *handler(self, obj)]

    def close(self) -> list[Event]:
        """Close the answer if it was cut off."""
        return self._source.close(incomplete=True)

    def _begin(self, obj: Obj) -> None:
        self._runs += 1
        self._over = False
        self._wire_run = obj.get("runId")
        self._source.new_run(text_of(obj, "runId") or run_id(NAME, obj, self._runs))
        self._calls.clear()

    def _make(self, cls: type[Any], obj: Obj, note: Obj | None = None, **fields: Any) -> Any:
        event = self._source.make(cls, ts=epoch(obj.get("at")), **fields)
        return msgspec.structs.replace(event, extra={NAME: {**(note or {}), **diff(obj, DRAW[cls](event))}})

    def _thought(self, obj: Obj) -> list[Event]:
        return [self._make(Think, obj, content=text_of(obj, "content"))]

    def _call(self, obj: Obj) -> list[Event]:
        name, given = text_of(obj, "toolName"), obj.get("toolArgs")
        call_id, synthetic = self._calls.call(name, text_of(obj, "callId"))
        args = parsed(given)
        raw = given if isinstance(given, str) else ""
        fields: Obj = {"call_id": call_id, "synthetic": synthetic, "name": name, "args": args if isinstance(args, dict) else {}}
        return [self._make(Call, obj, raw_args=raw, **fields)]

    def _progress(self, obj: Obj) -> list[Event]:
        match = self._calls.news(text_of(obj, "toolName"), text_of(obj, "callId"))
        implicit, note = self._news(obj, match)
        return [*implicit, self._make(Progress, obj, note, call_id=match.call_id, **read_data(obj.get("data")))]

    def _result(self, obj: Obj) -> list[Event]:
        name = text_of(obj, "toolName")
        match = self._calls.result(name, text_of(obj, "callId"))
        implicit, note = self._news(obj, match)
        status = "error" if obj.get("isError") is True or obj["type"] == "tool_error" else "ok"
        content = obj.get("output", obj.get("error", "") if obj["type"] == "tool_error" else "")
        return [*implicit, self._make(Result, obj, note, call_id=match.call_id, name=name, status=status, content=content)]

    def _news(self, obj: Obj, match: Match) -> tuple[list[Event], Obj]:
        note = {"guess": GUESS} if match.guess else {}
        if not match.implicit:
            return [], note
        synthetic = not text_of(obj, "callId")
        return [self._source.derived(Call, call_id=match.call_id, synthetic=synthetic, name=text_of(obj, "toolName"))], note

    def _stream(self, obj: Obj) -> list[Event]:
        text = obj.get("content")
        if not isinstance(text, str):
            return [*self._source.close(), *self._unknown(obj)]
        return self._source.delta("respond", text, obj, draw_stream(text), ts=epoch(obj.get("at")))

    def _start(self, obj: Obj) -> list[Event]:
        return [self._make(RunStart, obj)]

    def _final(self, obj: Obj) -> list[Event]:
        self._over = True
        return [self._make(End, obj)]

    def _error(self, obj: Obj) -> list[Event]:
        self._over = True
        return [self._make(Error, obj, message=text_of(obj, "error")), self._source.derived(End, status="error")]

    def _cancelled(self, obj: Obj) -> list[Event]:
        self._over = True
        return [self._source.derived(Interrupt, detail=text_of(obj, "reason")), self._make(End, obj, status="interrupted")]

    def _unknown(self, obj: Obj) -> list[Event]:
        payload = {k: v for k, v in obj.items() if k != "type"}
        return [self._make(Extension, obj, namespace=NAME, name=text_of(obj, "type"), payload=payload)]

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


def _score(item: Item) -> float:
    obj = item.obj
    kind = obj.get("type")
    if kind in ("tool_call", "tool_progress", "tool_result", "progress", "result") and "toolName" in obj:
        return 1.0
    fields = {"thought": "content", "stream": "content", "error": "error", "final": "type"}.get(kind) if isinstance(kind, str) else None
    return 0.7 if fields in obj and isinstance(obj.get(fields or ""), str) else 0.0


codec = Codec(
    name=NAME, title="AgentEvent", framing="sse", reader=AgentEventReader, writer=AgentEventWriter, score=_score,
    forms=("plain", "ids"), nests=True,
    carries={
        "think": frozenset({"content"}), "call": frozenset({"name", "args", "raw_args"}), "respond": frozenset({"content"}),
        "progress": frozenset({"text", "fraction", "data", "message"}), "result": frozenset({"name", "status", "content"}),
        "error": frozenset({"message"}), "end": frozenset({"status"}), "extension": frozenset({"namespace", "name", "payload"}),
    },
    lossy={
        "run_start": "there is no start of a run", "user": "the client knows what was asked", "execute": "a call is executed at once",
        "started": "a call is executed at once", "approval": "there are no approvals", "metric": "usage is not told",
        "node": "there are no nodes", "state": "there is no state", "interrupt": "a run is either final or ends in an error",
        "extension": "it belongs to another format",
    },
)  # fmt: skip

