"""Whether a run is a map: a prompt for each row of a table, outside the conversation."""

from __future__ import annotations

from collections.abc import Sequence

from .types import Event, RunStart

AGENT = "map"  # the agent and the setting of its `run_start`


def is_map(events: Sequence[Event]) -> bool:
    """Return whether these are the events of a map."""
    start = events[0] if len(events) else None
    return isinstance(start, RunStart) and start.agent == AGENT and AGENT in start.settings
