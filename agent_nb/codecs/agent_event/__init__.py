"""AgentEvent over SSE: thoughts, calls, streamed text, final, error (seed 003: see each §).

The reader also takes ToolEvents in their own spelling (`progress`, `result`), tool arguments as
JSON text or object, and later fields of the same system (`callId`, `at`, `start`, `cancelled`).
Forms to write: `plain` as in the seed, `ids` with `callId`.

Rules
- The seed has no call ids: an event of a tool belongs to the tool's oldest open call. The match is
  marked as a guess if several are open; if none is, the event opens an implicit call.
- `final` and `error` end a run: later events are counted and ignored, unless a new run begins. So
  only the error that ended a run of ours is written.
- A sub-agent's answer is progress of the call that runs it (§ 7). If all of its events come, as
  `{childRunId, event}`, they form a run inside that call.
"""

from __future__ import annotations

from ..base import Codec
from ..framing import Item
from .lines import NAME
from .read import AgentEventReader
from .write import AgentEventWriter

#: Type of a line -> fields that, with this type, occur only in this format.
_SURE = {
    **dict.fromkeys(("tool_call", "tool_result", "progress", "result"), frozenset({"toolName"})),
    "tool_error": frozenset({"toolName", "callId"}),
    "run_view": frozenset({"messageId", "runId", "steps"}),
    **dict.fromkeys(("conversation_usage", "loop_usage"), frozenset({"used", "total"})),
    "hook": frozenset({"hookId"}),
}
#: Type that other formats may have too -> a field of the line that has to be text.
_LIKELY = {
    **dict.fromkeys(("thought", "stream", "text_chunk"), "content"),
    "error": "error",
    **dict.fromkeys(("final", "connected", "session_replaced"), "type"),
}


def _score(item: Item) -> float:
    """Return how likely an object is an AgentEvent, from 0 to 1."""
    obj = item.obj
    kind = obj.get("type")
    if not isinstance(kind, str):
        return 0.0
    if kind in _SURE and obj.keys() >= _SURE[kind]:
        return 1.0
    if kind == "tool_progress" and obj.keys() & {"toolName", "callId"}:
        return 1.0
    if obj.keys() >= {"runId", "at"} and (kind in _LIKELY or kind in ("start", "cancelled")):
        return 1.0
    return 0.7 if isinstance(obj.get(_LIKELY.get(kind, "")), str) else 0.0


codec = Codec(
    name=NAME,
    title="AgentEvent",
    framing="sse",
    reader=AgentEventReader,
    writer=AgentEventWriter,
    score=_score,
    forms=("plain", "ids"),
    nests=True,
    interleaves=True,
    carries={
        "think": frozenset({"content"}),
        "call": frozenset({"name", "args", "raw_args"}),
        "respond": frozenset({"content"}),
        "progress": frozenset({"text", "fraction", "data", "message"}),
        "result": frozenset({"name", "status", "content"}),
        "error": frozenset({"message"}),
        "end": frozenset({"status"}),
        "extension": frozenset({"namespace", "name", "payload"}),
    },
    lossy={
        "run_start": "the format does not mark the start of a run",
        "user": "the client knows what was asked",
        "execute": "a call is executed at once",
        "started": "a call is executed at once",
        "approval": "there are no approvals",
        "metric": "usage is not written",
        "node": "there are no nodes",
        "state": "the format has no state",
        "interrupt": "a run is either final or ends in an error",
    },
)
