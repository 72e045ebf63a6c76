"""Sub-agents of an AgentEvent run: `tool_progress` whose data is `{childRunId, event}`.

Why apart: the event is read like one of a run of its own, below the call that runs it, and its line
must come out again inside the line of the call.

Rules
- The line around an event is beside it as `#in`; it reaches the wire through `unwrap_line` only.
- A child that is over takes no more events, so that what follows is plain progress.
"""

from __future__ import annotations

from typing import Any

from ..foreign_values import object_of, text_of
from .lines import Obj

IN = "#in"


def child_event(obj: Obj) -> tuple[str, Obj] | None:
    """Return the run and the event of a sub-agent's progress, None for other progress."""
    data = obj.get("data")
    if not isinstance(data, dict):
        return None
    run, event = text_of(data, "childRunId"), object_of(data.get("event"))
    if not run or not isinstance(event.get("type"), str) or IN in event:
        return None
    return run, {**event, IN: {**obj, "data": {k: v for k, v in data.items() if k != "event"}}}


def unwrap_line(obj: Obj) -> Obj:
    """Return the line of an event, inside the lines around it."""
    while isinstance(obj.get(IN), dict):
        outer: Any = obj[IN]
        event = {k: v for k, v in obj.items() if k != IN}
        data = outer.get("data")
        obj = {**outer, "data": {**(data if isinstance(data, dict) else {}), "event": event}}
    return obj
