"""Draws events as chunks of the UI message stream: `DRAW` maps each kind of event to its object.

    {"type": "tool-output-available", "toolCallId": "c1", "output": "12:40"}

The writer sends these chunks, the reader compares them with the original ones (`passthrough`). Both
use `read_output`, which reads a tool's progress back from a preliminary output.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import events
from ...wire import as_dict
from ..block_form import BlockForm, index_forms
from ..foreign_values import fraction_of
from ..run_builder import Obj
from ..writing import as_text

NAME = "ui-message"
#: The error of a call whose arguments are incomplete.
CUT = "the arguments broke off"
_PROGRESS_FIELDS = frozenset({"text", "progress", "message", "data"})
TEXT = BlockForm("respond", "text-start", "text-delta", "text-end", "id")
REASONING = BlockForm("think", "reasoning-start", "reasoning-delta", "reasoning-end", "id")
TOOL = BlockForm(
    "call",
    "tool-input-start",
    "tool-input-delta",
    "tool-input-available",
    "toolCallId",
    "inputTextDelta",
)
#: Type of a line -> the form of its block.
FORMS = index_forms(TEXT, REASONING, TOOL)
#: Kind of an event -> the form of its block.
FORM_OF = {"respond": TEXT, "think": REASONING, "call": TOOL}


def draw_result(event: events.Result) -> Obj:
    """Draw an output, an error or a denial."""
    ids = {"toolCallId": event.call_id}
    if event.status == "denied":
        return {"type": "tool-output-denied", **ids}
    if event.status == "ok":
        return {"type": "tool-output-available", **ids, "output": event.content}
    return {"type": "tool-output-error", **ids, "errorText": as_text(event.content)}


def progress_output(event: events.Progress) -> Any:
    """Return progress as a preliminary output: plain text as a string, else an object."""
    if event.text and not event.message:
        return event.text
    fields = {
        "text": event.text,
        "progress": event.fraction,
        "message": event.message,
        "data": event.data,
    }
    return {k: v for k, v in fields.items() if v not in ("", None)}


def read_output(output: Any) -> Obj:
    """Return the fields of a progress event; an output of an unknown shape becomes its `data`."""
    if isinstance(output, str):
        return {"text": output}
    if not isinstance(output, dict) or not output or not output.keys() <= _PROGRESS_FIELDS:
        return {"data": output}
    text, message = output.get("text", ""), output.get("message", "")
    fraction = fraction_of(output.get("progress"))
    is_invalid = fraction is None and output.get("progress") is not None
    if is_invalid or not isinstance(text, str) or not isinstance(message, str):
        return {"data": output}
    return {"text": text, "message": message, "fraction": fraction, "data": output.get("data")}


#: type of an event -> the function that draws it
DRAW: dict[type[events.Event], Callable[[Any], Obj]] = {
    events.RunStart: lambda _: {"type": "start"},
    events.End: lambda e: {
        "type": "finish",
        **({"finishReason": e.finish_reason} if e.finish_reason else {}),
    },
    events.Error: lambda e: {"type": "error", "errorText": e.message},
    events.Call: lambda e: {
        "type": TOOL.end,
        "toolCallId": e.call_id,
        "toolName": e.name,
        "input": e.args,
    },
    events.Approval: lambda e: {"type": "tool-approval-request", "toolCallId": e.call_id},
    events.Progress: lambda e: {
        "type": "tool-output-available",
        "toolCallId": e.call_id,
        "output": progress_output(e),
        "preliminary": True,
    },
    events.Result: draw_result,
    events.Node: lambda e: {"type": "start-step" if e.phase == "enter" else "finish-step"},
    events.State: lambda e: {"type": "message-metadata", "messageMetadata": e.payload},
    events.Extension: lambda e: {"type": e.name, **as_dict(e.payload)},
}
