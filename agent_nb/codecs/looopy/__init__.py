"""Looopy's events over SSE (seed 004): tasks, streamed content, thoughts, tools, `internal:*`.

The seed has two variants, and the reader takes both: in the server's frames the kind is on the
`event:` line, in the document's it is in the data. Forms to write: `server` (the default) and
`document`, whose texts have the names that the document's client reads.

A task is a run; tasks of one stream may interleave. Events of a subtask, or with an `agent:` in
their `path`, belong to a run inside that run (`span`); a `tool:` in a path opens no run. Our `path`
is Looopy's, joined with `/`.
"""

from __future__ import annotations

from ..base import Codec
from ..framing import Item
from .lines import NAME
from .read import LooopyReader
from .write import LooopyWriter

_KIND_PREFIXES = (
    "task-", "content-", "thought-", "tool-", "internal:", "llm-usage", "subtask-", "input-",
    "auth-",
)  # fmt: skip


def _score(item: Item) -> float:
    """Return how likely an object is Looopy's, from 0 to 1; its kind may be the frame's name."""
    named_kind = item.obj.get("kind")
    kind = named_kind if isinstance(named_kind, str) else item.event
    if kind.startswith(_KIND_PREFIXES):
        return 1.0 if item.obj.keys() & {"taskId", "contextId", "timestamp"} else 0.8
    return 0.3 if item.obj.keys() >= {"kind", "taskId"} else 0.0


codec = Codec(
    name=NAME,
    title="Looopy events",
    framing="sse",
    reader=LooopyReader,
    writer=LooopyWriter,
    score=_score,
    forms=("server", "document"),
    nests=True,
    interleaves=True,
    framed=True,
    replies=True,
    adds=frozenset({"state", "extension", "node"}),
    carries={
        "run_start": frozenset({"agent", "model"}),
        "user": frozenset({"content"}),
        "think": frozenset({"content", "attributes"}),
        "call": frozenset({"call_id", "name", "args"}),
        "started": frozenset({"call_id", "name"}),
        "approval": frozenset({"call_id", "args", "stage", "reason"}),
        "progress": frozenset({"call_id", "fraction", "message", "data", "text"}),
        "result": frozenset({"call_id", "name", "status", "content", "duration"}),
        "respond": frozenset({"content"}),
        "metric": frozenset({"step", "total"}),
        "state": frozenset({"kind", "payload"}),
        "error": frozenset({"message"}),
        "interrupt": frozenset({"reason", "detail"}),
        "end": frozenset({"status", "finish_reason"}),
        "extension": frozenset({"namespace", "name", "payload"}),
    },
    envelope=frozenset({"run", "ts", "path", "span", "parent"}),
    lossy={
        "execute": "each tool starts on its own",
        "node": "of nodes only the start of a model request and of a sub-agent is written",
        "progress.text": "output becomes the message of the progress",
    },
)
