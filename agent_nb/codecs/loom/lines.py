"""Draws events as frames of Loom (seed 002 § 4.2, § 5): one function for each kind of event.

    {"session_id": "s1", "node_id": "run-act-1", "event_id": 7,
     "type": "tool_end", "call_id": "c1", "name": "search", "result": "12:40", "is_error": false}

The writer sends these frames, the reader compares them with the original ones (`passthrough`). As
drawn, they lack the first three fields, the envelope; `id` is the name of a node. Fields that begin
with `#` are marks: `#export` (how a single-key object differed from its frame), `#ws` (fields of
the message that wrapped the frame).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ... import events
from ...wire import as_dict
from ..passthrough import count_on, strip_marks
from ..provenance import note_of
from ..usage import to_chat_usage
from ..writing import as_text

NAME = "loom"
Obj = dict[str, Any]
ENVELOPE = ("session_id", "node_id", "event_id")
#: Fields that grow from one chunk of a block to the next (see `passthrough`).
SHIFTS = {"event_id": count_on}
#: Status of an end that was not ok -> `stop_reason` of the reply.
STOPS: dict[events.EndStatus, str] = {
    "interrupted": "cancelled",
    "error": "error",
    "limit": "limit",
    "awaiting": "awaiting",
}
#: Types of a client's request to stop a run, and of the server's acknowledgement.
CANCELS = ("cancel_run", "cancel_run_ack")
#: Kind of a text block -> type of the frames of its pieces.
CHUNK = {"respond": "message_chunk", "think": "thought_chunk"}


def draw_chunk(of: str, text: str) -> Obj:
    """Draw a delta of a block of type `of`."""
    if of == "call":
        return {"type": "tool_call_chunk", "arguments_delta": text}
    return {"type": CHUNK[of], "content": text}


def draw_reply(text: str, status: events.EndStatus, reason: str, form: str = "") -> Obj:
    """Draw the reply that ends a run; `form`: its type on a socket, "" for none."""
    stop_reason = reason or STOPS.get(status)
    return {
        **({"type": form} if form else {}),
        "reply": text,
        **({"stop_reason": stop_reason} if stop_reason else {}),
    }


def _node(event: events.Node) -> Obj:
    if event.phase == "enter":
        return {"type": "node_enter", "id": event.name}
    succeeded = event.result in ("", "ok")
    return {
        "type": "node_exit",
        "id": event.name,
        "result": "Ok" if succeeded else {"Err": event.result.removeprefix("error: ")},
    }


def _metric(event: events.Metric) -> Obj:
    step = event.step
    cached = {"cached_tokens": step.cached} if step.cached else {}
    return {"type": "usage", **to_chat_usage(step), **cached}


def _state(event: events.State) -> Obj:
    if event.kind == "checkpoint" and isinstance(event.payload, dict):
        return {"type": "checkpoint", **event.payload}
    return {"type": event.kind, "state": event.payload}


def _extension(event: events.Extension) -> Obj:
    if event.name == "custom":
        return {"type": "custom", "value": event.payload}
    return {"type": event.name, **as_dict(event.payload)}


def _result(event: events.Result) -> Obj:
    texts = {"result": as_text(event.content), "is_error": event.status != "ok"}
    # the display of a result of ours has no field here: the encoder counts it as lost
    raw = (event.display or {}).get("text/plain") if note_of(event, NAME) is not None else None
    full = {"raw_result": raw} if isinstance(raw, str) else {}
    return {"type": "tool_end", "call_id": event.call_id, "name": event.name, **texts, **full}


#: type of an event -> the function that draws it
DRAW: dict[type[events.Event], Callable[[Any], Obj]] = {
    events.RunStart: lambda e: {"type": "run_start", **({"agent": e.agent} if e.agent else {})},
    events.Node: _node,
    events.Metric: _metric,
    events.State: _state,
    events.Extension: _extension,
    events.Call: lambda e: {
        "type": "tool_call",
        "call_id": e.call_id,
        "name": e.name,
        "arguments": e.args,
    },
    events.Result: _result,
    events.Started: lambda e: {"type": "tool_start", "call_id": e.call_id, "name": e.name},
    events.Progress: lambda e: {"type": "tool_output", "call_id": e.call_id, "content": e.text},
    events.Approval: lambda e: {
        "type": "tool_approval",
        "call_id": e.call_id,
        "arguments": e.args or {},
    },
    events.Error: lambda e: {"type": "error", "error": e.message},
}


def draw_frame(event: events.Event) -> Obj:
    """Return the frame of an event whose kind is in `DRAW`."""
    return DRAW[type(event)](event)


def strip_envelope(frame: Mapping[str, Any]) -> Obj:
    """Return the payload of a frame: without type, envelope and marks."""
    return {k: v for k, v in strip_marks(frame).items() if k not in ENVELOPE and k != "type"}


def payload_of(frame: Mapping[str, Any]) -> Obj:
    """Return the payload of a frame that becomes an extension; `got_expand` keeps its `node_id`."""
    payload = strip_envelope(frame)
    if frame.get("type") == "got_expand" and "node_id" in frame:
        return {"node_id": frame["node_id"], **payload}
    return payload
