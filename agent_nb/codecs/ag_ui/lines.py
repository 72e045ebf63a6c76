"""Draws events as AG-UI lines: `DRAW` for events of one line, `BlockForm`s for blocks.

    {"type": "TOOL_CALL_RESULT", "toolCallId": "c1", "content": "12:40", "role": "tool"}

The writer sends these lines, the reader compares them with the original ones (`passthrough`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...events import End, EndStatus, Error, Event, Extension, Node, Result, RunStart, State
from ...wire import as_dict
from ..block_form import BlockForm, index_forms
from ..run_builder import Obj
from ..writing import as_text

NAME = "ag-ui"
TEXT = BlockForm(
    "respond", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "messageId"
)
REASONING = BlockForm(
    "think",
    "REASONING_MESSAGE_START",
    "REASONING_MESSAGE_CONTENT",
    "REASONING_MESSAGE_END",
    "messageId",
)
TOOL = BlockForm("call", "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "toolCallId")
#: Type of a line -> the form of its block.
FORMS = index_forms(TEXT, REASONING, TOOL)
#: Kind of an event -> the form of its block.
FORM_OF = {"respond": TEXT, "user": TEXT, "think": REASONING, "call": TOOL}
#: Status of an end -> its outcome on the wire. The writer draws `limit` as `cancelled` too, `error`
#: as RUN_ERROR, any other as `success`.
OUTCOMES: dict[EndStatus, str] = {"awaiting": "interrupt", "interrupted": "cancelled"}
#: Kind of a state -> type of its line; the kind is also the name of the payload's field.
STATE_TYPES = {
    "snapshot": "STATE_SNAPSHOT",
    "delta": "STATE_DELTA",
    "messages": "MESSAGES_SNAPSHOT",
}


def _end(event: End) -> Obj:
    outcome = OUTCOMES.get(event.status)
    return {"type": "RUN_FINISHED", **({"outcome": {"type": outcome}} if outcome else {})}


def draw_node(event: Node) -> Obj:
    """Draw the start or end of a step or, with `subagent` in its data, of a sub-agent."""
    if event.data and event.data.get("subagent"):
        if event.phase == "enter":
            return {"type": "SUBAGENT_STARTED", "subagentRunId": event.span, "name": event.name}
        failed = event.result.startswith("error: ")
        message = {"message": event.result.removeprefix("error: ")} if failed else {}
        return {
            "type": "SUBAGENT_ERROR" if failed else "SUBAGENT_FINISHED",
            "subagentRunId": event.span,
            **message,
        }
    return {
        "type": "STEP_STARTED" if event.phase == "enter" else "STEP_FINISHED",
        "stepName": event.name,
    }


#: Type of an event -> the function that draws it, as the JSON object that we write.
DRAW: dict[type[Event], Callable[[Any], Obj]] = {
    RunStart: lambda e: {"type": "RUN_STARTED", "runId": e.run},
    End: _end,
    Error: lambda e: {
        "type": "RUN_ERROR",
        "message": e.message,
        **({"code": e.code} if e.code else {}),
    },
    Result: lambda e: {
        "type": "TOOL_CALL_RESULT",
        "toolCallId": e.call_id,
        "content": as_text(e.content),
        "role": "tool",
    },
    Node: draw_node,
    State: lambda e: (
        {"type": STATE_TYPES[e.kind], e.kind: e.payload}
        if e.kind in STATE_TYPES
        else {"type": "STATE_SNAPSHOT"}
    ),
    Extension: lambda e: {"type": e.name, **as_dict(e.payload)},
}
