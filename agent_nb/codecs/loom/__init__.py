"""The frames of Loom, an agent framework whose runs consist of nodes.

Seed 002 specifies the format; § names a section of it. A frame is an envelope (session, node run,
sequence) around one of 24 event types; the reply ends a run. The reader takes frames with the
envelope, legacy frames without it, the single-key form (§ 6), and frames wrapped for a socket.
Forms to write: `frames`, `bare` (no envelope), `export` (single-key).

Rules
- A session is a run; the first frame after its reply begins another run. The reply is the run's
  `end`, and its answer if none was streamed.
- Sessions may interleave. A frame without a session belongs to the session of the frame before
  it; frames before the first named session belong to that session.
- `node_id` is the path of all events in a node run. A node's own span is unique even where
  `node_id` repeats (§ 2). In `got_expand`, `node_id` is part of the payload.
"""

from __future__ import annotations

from collections.abc import Set

from ..base import Codec
from ..framing import Item
from .export import is_export
from .lines import CANCELS, ENVELOPE, NAME
from .read import LoomReader, is_whole_run
from .write import LoomWriter

_DOUBTFUL = 0.2  # a score that decides only if no other format claims the object
# types of frames that no other format here has
_LOOM_TYPES = frozenset({
    "node_enter", "node_exit", "tool_call_chunk", "tool_start", "tool_output", "tool_end",
    "checkpoint", "updates", "thought_chunk",
})  # fmt: skip
# types of frames that other formats also use
_COMMON_TYPES = frozenset(
    {"usage", "error", "values", "custom", "tool_call", "run_start", "message_chunk"}
)


def _score(item: Item) -> float:
    """Return how likely an object is Loom's, from 0 to 1."""
    obj = item.obj
    if is_export(obj) or ("reply" in obj and is_whole_run(obj)):
        return 1.0
    kind, wrapped = obj.get("type"), obj.get("event")
    if kind == "run_end" or (kind == "run_stream_event" and isinstance(wrapped, dict)):
        return 1.0 if "reply" in obj or wrapped else _DOUBTFUL
    if kind in CANCELS:
        return 0.6  # other servers may take a request of this name
    if "reply" in obj:
        return 0.7 if isinstance(obj["reply"], str) and "type" not in obj else _DOUBTFUL
    if "toolName" in obj:  # an AgentEvent, which has types of the same names
        return 0.0
    return _score_frame(kind if isinstance(kind, str) else "", obj.keys())


def _score_frame(kind: str, fields: Set[str]) -> float:
    """Score a frame; a type without any field of the envelope may be another format's."""
    if kind in _LOOM_TYPES or kind.startswith(("tot_", "got_")):
        return 1.0 if fields & set(ENVELOPE) else 0.9
    if kind in _COMMON_TYPES:
        return 1.0 if fields & set(ENVELOPE) else 0.6
    return 0.3 if {"session_id", "event_id"} <= fields else 0.0  # a newer type of frame


codec = Codec(
    name=NAME,
    title="Loom frames",
    framing="ndjson",
    reader=LoomReader,
    writer=LoomWriter,
    score=_score,
    forms=("frames", "bare", "export"),
    nests=True,
    interleaves=True,
    replies=True,
    may_lack_end=True,  # only one program of Loom sends the reply; an open node still means a break
    adds=frozenset({"node"}),
    carries={
        "run_start": frozenset({"agent"}),
        "user": frozenset({"content"}),
        "think": frozenset({"content"}),
        "call": frozenset({"call_id", "name", "args", "raw_args", "chunks"}),
        "approval": frozenset({"call_id", "args", "stage"}),
        "started": frozenset({"call_id", "name"}),
        "progress": frozenset({"call_id", "text"}),
        "result": frozenset({"call_id", "name", "status", "content"}),
        "respond": frozenset({"content"}),
        "metric": frozenset({"step", "total"}),
        "node": frozenset({"name", "phase", "result"}),
        "state": frozenset({"kind", "payload"}),
        "extension": frozenset({"namespace", "name", "payload"}),
        "error": frozenset({"message"}),
        "end": frozenset({"status", "finish_reason"}),
    },
    envelope=frozenset({"run", "span", "path"}),
    lossy={
        "execute": "the act node stands for it",
        "interrupt": "only the stop reason of the reply shows it",
        "progress.fraction": "a tool's output is text",
        "progress.data": "a tool's output is text",
    },
)
