"""The UI message stream of the Vercel AI SDK 6 (ai-sdk.dev, stream protocol), for `useChat`.

A message is a run, its steps are internal nodes. `tool-input-available` is the call; a preliminary
output is progress; other outputs, errors and denials are results. Message metadata is a state;
sources, files and `data-*` parts become extensions with the original content.

Rules
- `finish` and `abort` end the run. An `error` alone does not, because some senders send `finish`
  after it; without a `finish` the run ends with the stream.
- Receivers need the header `x-vercel-ai-ui-message-stream: v1`, and `[DONE]` as the last frame.
"""

from __future__ import annotations

from ..base import Codec
from ..framing import Item
from .lines import NAME, REASONING, TEXT
from .read import UiMessageReader
from .write import UiMessageWriter

_OWN = frozenset(UiMessageReader.HANDLERS) - {"start", "error"}


def _score(item: Item) -> float:
    """Return how likely an object is a chunk of a UI message, from 0 to 1."""
    obj = item.obj
    kind = obj.get("type")
    if not isinstance(kind, str):
        return 0.0
    if kind in (TEXT.delta, REASONING.delta) and "delta" in obj:
        return 1.0
    if kind in _OWN or kind.startswith(("data-", "source-")):
        return 0.9
    if kind == "start" and obj.keys() <= {"type", "messageId", "messageMetadata"}:
        return 0.8
    return 0.8 if kind == "error" and "errorText" in obj else 0.0


codec = Codec(
    name=NAME,
    title="UI message stream (AI SDK)",
    framing="sse",
    headers={"x-vercel-ai-ui-message-stream": "v1"},
    reader=UiMessageReader,
    writer=UiMessageWriter,
    score=_score,
    carries={
        "run_start": frozenset(),
        "think": frozenset({"content"}),
        "respond": frozenset({"content"}),
        "call": frozenset({"call_id", "name", "args", "raw_args", "chunks", "incomplete"}),
        "approval": frozenset({"call_id", "stage"}),
        "progress": frozenset({"call_id", "text", "fraction", "data", "message"}),
        "result": frozenset({"call_id", "name", "status", "content"}),
        "state": frozenset({"kind", "payload"}),
        "error": frozenset({"message"}),
        "interrupt": frozenset({"reason", "detail"}),
        "end": frozenset({"status", "finish_reason"}),
        "extension": frozenset({"namespace", "name", "payload"}),
    },
    envelope=frozenset({"run"}),
    lossy={
        "user": "the client knows what was asked",
        "execute": "a call is executed at once",
        "started": "a call is executed at once",
        "metric": "usage is not written",
        "node": "of nodes only the steps of the model are written",
    },
)
