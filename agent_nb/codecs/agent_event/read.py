"""Read AgentEvents: one reader for each run of the stream."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ...events import Event
from ...wire.json_text import dumps
from ..foreign_values import run_id
from ..framing import Item
from ..losses import Losses
from .lines import NAME, Obj
from .run_reader import RunReader

_REMEMBERED = 256  # runs that are over, to recognise their late events


class AgentEventReader:
    """Any number of runs."""

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
        """Return the run that began without an id, if it goes on: it owns the first id."""
        nameless = self._runs.get(None)
        if nameless is not None and not nameless.over:
            self._runs[key] = self._runs.pop(None)
            return nameless
        return None

    def _begin(self, key: Any, obj: Obj) -> RunReader:
        self._count += 1
        again = key in self._runs or not isinstance(key, str)
        reader = self._runs[key] = RunReader(run_id(NAME, obj, self._count) if again else key)
        for old in [k for k, r in self._runs.items() if r.over][:-_REMEMBERED]:
            del self._runs[old]
        return reader
