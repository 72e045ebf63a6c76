"""Streams as text: JSON objects as lines or as frames, and the events that a log stores of them."""

import json
from collections.abc import Iterable
from typing import Any

from agent_nb.events import Event


def ndjson(*objects: Any) -> str:
    """Return objects as lines of JSON."""
    return "".join(json.dumps(o) + "\n" for o in objects)


def sse(*objects: Any) -> str:
    """Return objects as frames of Server-Sent Events."""
    return "".join(f"data: {json.dumps(o)}\n\n" for o in objects)


def stored(events: Iterable[Event]) -> list[Event]:
    """Return the events without deltas."""
    return [e for e in events if e.type != "delta"]
