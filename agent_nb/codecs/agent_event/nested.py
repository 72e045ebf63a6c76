"""Sub-agents of an AgentEvent run: `tool_progress` whose data is `{childRunId, event}`.

The inner event is read as an event of the sub-agent's own run, so that one reader reads runs and
sub-agents, and is written inside its outer line again.

Rule: `child_event` stores the outer line in the inner event, as the field `#in`.
`restore_outer_lines` takes it out again, so it is never written.
"""

from __future__ import annotations

from typing import Any

from ...wire import as_dict
from ..foreign_values import text_of
from .lines import Obj

OUTER = "#in"  # the field of an inner event that holds its outer line, without the event itself


def child_event(obj: Obj) -> tuple[str, Obj] | None:
    """Return (run id, event) of the sub-agent in a line of progress; None for other progress."""
    data = obj.get("data")
    if not isinstance(data, dict):
        return None
    run, event = text_of(data, "childRunId"), as_dict(data.get("event"))
    if not run or not isinstance(event.get("type"), str) or OUTER in event:
        return None
    return run, {**event, OUTER: {**obj, "data": {k: v for k, v in data.items() if k != "event"}}}


def restore_outer_lines(obj: Obj) -> Obj:
    """Return an event wrapped in its outer lines again, ready to be written."""
    while isinstance(obj.get(OUTER), dict):
        outer: Any = obj[OUTER]
        event = {k: v for k, v in obj.items() if k != OUTER}
        data = outer.get("data")
        obj = {**outer, "data": {**as_dict(data), "event": event}}
    return obj
