"""Whether a run is a map, a prompt for each row of a table: conversations leave maps out."""

from __future__ import annotations

from collections.abc import Sequence

from .types import Event, RunStart

AGENT = "map"  # the value of `agent` in a map's `run_start`, and a key of its `settings`


def is_map(events: Sequence[Event]) -> bool:
    """Return whether these are the events of a map."""
    start = events[0] if len(events) else None
    return isinstance(start, RunStart) and start.agent == AGENT and AGENT in start.settings
