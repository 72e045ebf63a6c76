"""Draw events as AgentEvents, objects with a `type` such as `thought` (seed 003 § 3.1, § 5).

Why apart from the writer: the reader draws its events too, to note how each original line differs
(see `passthrough`).

Rule: lines of progress have no tool name here, and no line a call id. The writer adds them; the
reader keeps them in the note.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from ...events import Call, End, Error, Event, Extension, Progress, Result, RunStart, State, Think
from ...wire import as_dict, dumps
from ..passthrough import Shift, count_on
from ..times import shift_time
from ..writing import as_text

NAME = "agent-event"
Obj = dict[str, Any]
#: Fields that grow from one piece of the answer to the next (see `passthrough`).
SHIFTS: dict[str, Shift] = {"seq": count_on, "at": shift_time}


def _tool_call(event: Call) -> Obj:
    return {
        "type": "tool_call",
        "toolName": event.name,
        "toolArgs": event.raw_args or dumps(event.args),
    }


def _tool_result(event: Result) -> Obj:
    drawn = {"type": "tool_result", "toolName": event.name, "output": as_text(event.content)}
    return drawn if event.status == "ok" else {**drawn, "isError": True}


def progress_data(event: Progress) -> Any:
    """Return the `data` of the line for a progress event: from its text, fraction or own data."""
    message = {"message": event.message} if event.message else {}
    if event.text and message:
        return {"subtype": "stdout_chunk", "content": event.text, **message}
    if event.text:
        return event.text
    if event.fraction is not None:
        return {"percent": _to_percent(event.fraction), **message}
    return event.data if event.data is not None else message or None


def _to_percent(fraction: float) -> float:
    """Return a fraction in percent; 0.07 is exactly 7, not 7.000000000000001."""
    percent = float(Decimal(repr(fraction)) * 100)
    return int(percent) if percent.is_integer() else percent


#: type of an event -> the function that draws it
DRAW: dict[type[Event], Callable[[Any], Obj]] = {
    Think: lambda e: {"type": "thought", "content": e.content},
    Call: _tool_call,
    Progress: lambda e: {"type": "tool_progress", "data": progress_data(e)},
    Result: _tool_result,
    Error: lambda e: {"type": "error", "error": e.message},
    End: lambda _: {"type": "final"},
    RunStart: lambda _: {"type": "start"},
    State: lambda e: {"type": e.kind, **as_dict(e.payload)},
    Extension: lambda e: {"type": e.name, **as_dict(e.payload)},
}


def draw_stream(text: str) -> Obj:
    """Draw a piece of the answer."""
    return {"type": "stream", "content": text}
