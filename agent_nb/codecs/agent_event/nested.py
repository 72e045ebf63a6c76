"""Sub-agents of an AgentEvent run: `tool_progress` whose data is `{childRunId, event}`.

Why apart: the event is read like one of a run of its own, below the call that runs it. To write it
again as it came, the line around it is kept.

Rules
- The line around an event is kept in it as `#in`; `restore_outer_lines` takes that field out before
  the event reaches the wire.
- Events of a sub-agent that has ended are plain progress of the call.
"""

from __future__ import annotations

from typing import Any

from ..foreign_values import object_of, text_of
from .lines import Obj

OUTER = "#in"  # the field of an event that holds the line around it, without the event


def child_event(obj: Obj) -> tuple[str, Obj] | None:
    """Return (run, event) of a sub-agent from a line of progress; None for other progress."""
    data = obj.get("data")
    if not isinstance(data, dict):
        return None
    run, event = text_of(data, "childRunId"), object_of(data.get("event"))
    if not run or not isinstance(event.get("type"), str) or OUTER in event:
        return None
    return run, {**event, OUTER: {**obj, "data": {k: v for k, v in data.items() if k != "event"}}}


def restore_outer_lines(obj: Obj) -> Obj:
    """Return the line of an event inside the lines around it."""
    while isinstance(obj.get(OUTER), dict):
        outer: Any = obj[OUTER]
        event = {k: v for k, v in obj.items() if k != OUTER}
        data = outer.get("data")
        obj = {**outer, "data": {**(data if isinstance(data, dict) else {}), "event": event}}
    return obj
