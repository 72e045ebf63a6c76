"""The events of the Agent User Interaction Protocol, AG-UI 1.0 (docs.ag-ui.com).

An AG-UI run becomes a run, its `threadId` the conversation; steps and sub-agents are nodes, and
events with a `subagentRunId` belong to a run inside the run. Snapshots and patches are states. All
other events (activities, raw and custom events, encrypted reasoning) become extensions with the
original content. The outcome of RUN_FINISHED is the end's status: success, interrupt (awaiting),
cancelled (interrupted); its `usage` is the total of a metric.

Rule: the newest snapshot of the messages supplies what was not streamed: the answer, the prompt,
calls and results.
"""

from __future__ import annotations

from ..base import Codec
from ..framing import Item
from .lines import NAME
from .read import AgUiReader
from .write import AgUiWriter

# types of AG-UI that are read as extensions
_EXTENSIONS = frozenset({
    "CUSTOM", "RAW", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "REASONING_START", "REASONING_END",
})  # fmt: skip


def _score(item: Item) -> float:
    """Return how likely an object is AG-UI's, from 0 to 1."""
    kind = item.obj.get("type")
    if not isinstance(kind, str):
        return 0.0
    if kind in AgUiReader.HANDLERS or kind in _EXTENSIONS:
        return 1.0
    return 0.3 if kind.isupper() and "_" in kind else 0.0


codec = Codec(
    name=NAME,
    title="AG-UI events",
    framing="sse",
    reader=AgUiReader,
    writer=AgUiWriter,
    score=_score,
    nests=True,
    adds=frozenset({"extension", "metric"}),
    carries={
        "run_start": frozenset(),
        "user": frozenset({"content"}),
        "think": frozenset({"content"}),
        "respond": frozenset({"content"}),
        "call": frozenset({"call_id", "name", "args", "raw_args", "chunks"}),
        "result": frozenset({"call_id", "content", "name"}),
        "node": frozenset({"name", "phase", "result"}),
        "state": frozenset({"kind", "payload"}),
        "error": frozenset({"message", "code"}),
        "interrupt": frozenset(),
        "end": frozenset({"status"}),
        "extension": frozenset({"namespace", "name", "payload"}),
    },
    envelope=frozenset({"run", "ts", "span"}),
    lossy={
        "approval": "a question ends the run there (outcome interrupt)",
        "execute": "a call is executed at once",
        "started": "a call is executed at once",
        "progress": "a tool's output is written when it is done",
        "metric": "only the total is written, when the run finishes",
    },
)
