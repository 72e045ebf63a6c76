"""The event stream of Cogency: ten types, `content` or `payload`, and a timestamp.

Seed 000 § Event Stream and seed 001 § Parser Events specify it. The reader takes every shape that
results have had in Cogency: a payload for each call, stored JSON text, plain text, and an array for
a batch of calls.

Rules
- Calls have no ids. Results come in call order, so each ends the oldest open call; an error names
  the tool of its call.
- `metric` follows `end` here, but `end` is the last event of a run of ours: the reader holds back
  the end, the writer the metric.
- `end` means that the task is done. A run of ours that failed or was stopped ends with its error or
  interrupt line instead.
"""

from __future__ import annotations

from ..base import Codec
from ..framing import Item
from .lines import NAME
from .read import CogencyReader
from .write import CogencyWriter


def _score(item: Item) -> float:
    """Return how likely an object is Cogency's, from 0 to 1; `seq` shows that it is canonical."""
    obj = item.obj
    kind = obj.get("type")
    if not isinstance(kind, str) or kind not in CogencyReader.HANDLERS or "seq" in obj:
        return 0.0
    if not obj.keys() <= {"type", "content", "payload", "step", "total", "timestamp"}:
        return 0.2
    return 0.9 if "timestamp" in obj else 0.6


codec = Codec(
    name=NAME,
    title="Cogency events",
    framing="ndjson",
    reader=CogencyReader,
    writer=CogencyWriter,
    score=_score,
    may_lack_end=True,  # the lines that Cogency stores have no `end`
    carries={
        "user": frozenset({"content"}),
        "think": frozenset({"content"}),
        "call": frozenset({"name", "args"}),
        "execute": frozenset(),
        "result": frozenset({"status", "content", "display", "name"}),
        "respond": frozenset({"content"}),
        "end": frozenset({"status"}),
        "metric": frozenset({"step", "total"}),
        "error": frozenset({"message", "call_id"}),
        "interrupt": frozenset(),
        "extension": frozenset({"namespace", "name", "payload"}),
    },
    envelope=frozenset({"ts"}),
    lossy={
        "run_start": "a run begins with its user message",
        "approval": "there are no approvals",
        "started": "a call just has a result",
        "progress": "tools report only at their end",
        "node": "there are no nodes",
        "state": "the format has no state",
    },
)
