"""Draws events as AgentEvents, the lines of this format; to draw is to make our line for an event.

    {"type": "tool_call", "toolName": "search", "toolArgs": "{\\"query\\": \\"tides\\"}"}
    {"type": "stream", "content": "High water is at "}

The writer sends these lines; the reader compares them with the original ones, to note how those
differ (`passthrough`). They have no call id, and those of progress no name of the tool: the writer
adds the name and, in the form `ids`, the id.
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


def draw_stream(text: str) -> Obj:
    """Draw a piece of the answer."""
    return {"type": "stream", "content": text}


def _draw_call(event: Call) -> Obj:
    arguments = event.raw_args or dumps(event.args)
    return {"type": "tool_call", "toolName": event.name, "toolArgs": arguments}


def _draw_result(event: Result) -> Obj:
    drawn = {"type": "tool_result", "toolName": event.name, "output": as_text(event.content)}
    return drawn if event.status == "ok" else {**drawn, "isError": True}


def make_progress_data(event: Progress) -> Any:
    """Return the `data` of the line for a progress event, from the first of these that it has.

    1. `text`: the text, or an object with text and message if it has both
    2. `fraction`: an object with the percent, and the message if it has one
    3. `data`: unchanged
    4. `message`: an object with the message
    """
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


def _draw_payload(kind: str, payload: Any) -> Obj:
    """Draw fields as a line of type `kind`; a field `type` must not make it another one."""
    return {"type": kind, **{k: v for k, v in as_dict(payload).items() if k != "type"}}


#: Type of an event -> the function that draws it. `Respond` is missing: an answer has several
#: lines, one for each piece (`draw_stream`).
DRAW: dict[type[Event], Callable[[Any], Obj]] = {
    Think: lambda event: {"type": "thought", "content": event.content},
    Call: _draw_call,
    Progress: lambda event: {"type": "tool_progress", "data": make_progress_data(event)},
    Result: _draw_result,
    Error: lambda event: {"type": "error", "error": event.message},
    End: lambda _: {"type": "final"},
    RunStart: lambda _: {"type": "start"},
    State: lambda event: _draw_payload(event.kind, event.payload),
    Extension: lambda event: _draw_payload(event.name, event.payload),
}
