"""AgentEvent over SSE (seed 003): thought, tool_call, tool_progress, tool_result, stream, final,
error.

Reads ToolEvents in their own spelling too (`progress`, `result`), tool arguments as JSON text or
object, and the later fields of the same system (`callId`, `at`, `start`, `cancelled`). Forms to
write: `plain` as in the seed, `ids` with `callId`.

Rules
- There are no call ids in the seed: news of a tool goes to its oldest open call, marked as a guess
  where that was a choice; news of a tool that nobody called opens an implicit call once.
- `stdout_chunk` and string data are text, `percent` is a fraction (§ 5); the data as it came is
  kept.
- `final` and `error` are terminal: what follows is counted and ignored, unless a new run begins. An
  error that did not end a run of ours is therefore not written.
- A sub-agent's answer is progress of the call that runs it (§ 7).
- Runs that name themselves (`runId`) may interleave.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ...events import Event
from ...wire.json_text import dumps
from ..base import Codec, Item
from ..losses import Losses
from ..run_builder import run_id
from .lines import NAME, Obj
from .read import RunReader
from .write import AgentEventWriter

_REMEMBERED = 256  # runs that are over, whose late events are known as such


class AgentEventReader:
    """Events of any number of runs to ours."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        self._runs: OrderedDict[Any, RunReader] = OrderedDict()
        self._newest: Any = None
        self._count = 0

    def read(self, item: Item) -> list[Event]:
        """Return the events of one object."""
        obj = item.obj
        given = obj.get("runId")
        key = given if isinstance(given, str | int) else self._newest
        reader = self._runs.get(key) or self._adopted(key)
        if reader is None or (reader.over and obj.get("type") == "start"):
            reader = self._begin(key, obj)
        elif reader.over:
            self._losses.add("event after the end", "final and error are terminal", raw=dumps(obj))
            return []
        self._newest = key
        return reader.read(obj)

    def close(self) -> list[Event]:
        """Close the answers that were cut off."""
        return [event for reader in self._runs.values() for event in reader.close()]

    def _adopted(self, key: Any) -> RunReader | None:
        """Return the run that began without an id, if it goes on: the first id is its own."""
        nameless = self._runs.get(None)
        if nameless is not None and not nameless.over:
            self._runs[key] = self._runs.pop(None)
            return nameless
        return None

    def _begin(self, key: Any, obj: Obj) -> RunReader:
        self._count += 1
        again = key in self._runs or not isinstance(key, str)
        reader = self._runs[key] = RunReader(
            self._losses, run_id(NAME, obj, self._count) if again else key
        )
        for old in [k for k, r in self._runs.items() if r.over][:-_REMEMBERED]:
            del self._runs[old]
        return reader


def _score(item: Item) -> float:
    obj = item.obj
    kind = obj.get("type")
    if (
        kind in ("tool_call", "tool_progress", "tool_result", "progress", "result")
        and "toolName" in obj
    ):
        return 1.0
    fields = (
        {"thought": "content", "stream": "content", "error": "error", "final": "type"}.get(kind)
        if isinstance(kind, str)
        else None
    )
    return 0.7 if fields in obj and isinstance(obj.get(fields or ""), str) else 0.0


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
        "run_start": "there is no start of a run",
        "user": "the client knows what was asked",
        "execute": "a call is executed at once",
        "started": "a call is executed at once",
        "approval": "there are no approvals",
        "metric": "usage is not written",
        "node": "there are no nodes",
        "state": "there is no state",
        "interrupt": "a run is either final or ends in an error",
        "extension": "it belongs to another format",
    },
)
