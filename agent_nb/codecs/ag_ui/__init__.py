"""The events of the Agent User Interaction Protocol, AG-UI 1.0 (docs.ag-ui.com).

Why: agents and front ends that speak AG-UI can then be watched here, or show a run of ours.

Rules
- An AG-UI run becomes a run, its `threadId` the conversation.
- Messages, reasoning and tool calls are blocks with start, content and end, and may interleave;
  blocks of `…_CHUNK` lines have neither start nor end. A message of role `user` is the prompt.
- Steps and sub-agents are nodes; events with a `subagentRunId` belong to a run inside the run.
- Snapshots and patches are states. The newest snapshot of the messages supplies what was not
  streamed: the answer, the prompt, calls and results.
- Names in snake case, as in AG-UI's Python objects, are read like the camel-case names.
- The outcome of RUN_FINISHED is the end's status: success, interrupt (awaiting), cancelled
  (interrupted); its `usage` is the total of a metric.
- All other events (activities, raw and custom events, encrypted reasoning) become extensions with
  the original content.
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
        "extension": "it belongs to another format",
        "user.attachments": "a message is text",
        "result.attachments": "a result is text",
    },
)
