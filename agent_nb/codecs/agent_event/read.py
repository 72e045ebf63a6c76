"""Reads AgentEvents: one reader for each run of the stream.

Rules
- An event may lack the id of its run; it then belongs to the newest run.
- A frame about the connection or the conversation is read as part of the open run, else of the next
  run. Such frames are a run of their own only in a stream that has no other.
"""

from __future__ import annotations

from typing import Any

from ...events import Event
from ...wire import dumps
from ..foreign_values import run_id
from ..framing import Item
from ..losses import Losses
from .lines import NAME, Obj
from .run_reader import RunReader

#: Types of frames that belong to no run (`loop_usage` belongs to one).
CONTROL = ("connected", "session_replaced", "conversation_usage")
_REMEMBERED_RUNS = 256  # ended runs whose late events are still recognised
_HELD_FRAMES = 256  # frames that wait for a run
_NO_RUN = "it is about the connection or the conversation, and no run follows"


class AgentEventReader:
    """Reads any number of runs."""

    def __init__(self, losses: Losses) -> None:
        self._losses = losses
        # by `runId`; None: the run of the events without an id
        self._runs: dict[Any, RunReader] = {}
        self._newest: Any = None  # key of the run of the newest event
        self._count = 0
        self._held: list[Obj] = []  # frames of no run, held until a run begins

    def read(self, item: Item) -> list[Event]:
        """Return the events of one object."""
        obj = item.obj
        if obj.get("type") in CONTROL:
            newest = self._runs.get(self._newest)
            if newest is None or newest.is_over:
                self._hold(obj)
                return []
            return newest.read(obj)
        named_id = obj.get("runId")
        key = named_id if isinstance(named_id, str | int) else self._newest
        reader = self._runs.get(key) or self._adopt_unnamed_run(key)
        if reader is None or (reader.is_over and obj.get("type") == "start"):
            reader = self._begin(key, obj)
        elif reader.is_over:
            self._losses.add("event after the end", "final and error are terminal", raw=dumps(obj))
            return []
        self._newest = key
        frames, self._held = self._held, []
        return [event for line in (*frames, obj) for event in reader.read(line)]

    def close(self) -> list[Event]:
        """Close every run; frames of no run become a run if the stream had none."""
        frames, self._held = self._held, []
        if frames and not self._runs:  # a stream of such frames alone is a run
            self._begin(None, frames[0])
            return [e for line in frames for e in self._runs[None].read(line)] + self.close()
        for obj in frames:
            self._losses.add("frame of no run", _NO_RUN, raw=dumps(obj), detail=True)
        return [event for reader in self._runs.values() for event in reader.close()]

    def _hold(self, obj: Obj) -> None:
        """Hold a frame for the run that begins next; above `_HELD_FRAMES` of them, count a loss."""
        if len(self._held) < _HELD_FRAMES:
            self._held.append(obj)
        else:
            self._losses.add("frame of no run", _NO_RUN, raw=dumps(obj), detail=True)

    def _adopt_unnamed_run(self, key: Any) -> RunReader | None:
        """Return the open run that began without an id, if any, and file it under `key`."""
        unnamed = self._runs.get(None)
        if unnamed is not None and not unnamed.is_over:
            self._runs[key] = self._runs.pop(None)
            return unnamed
        return None

    def _begin(self, key: Any, obj: Obj) -> RunReader:
        self._count += 1
        # the run gets another id if its own is not a text, or is that of an earlier run
        generated = key in self._runs or not isinstance(key, str)
        reader = self._runs[key] = RunReader(run_id(NAME, obj, self._count) if generated else key)
        # of the runs that are over, only the newest are remembered
        for old in [k for k, r in self._runs.items() if r.is_over][:-_REMEMBERED_RUNS]:
            del self._runs[old]
        return reader
