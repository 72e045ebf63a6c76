"""Draws events as Looopy's objects, and reads the values in them (seed 004).

    event: tool-start
    data: {"taskId": "t1", "toolCallId": "c1", "toolName": "search", "timestamp": "2026-01-31T…"}

The writer sends these objects, the reader compares them with the original ones (`passthrough`). As
drawn, they lack the envelope (contextId, taskId, path, timestamp). Fields that begin with `#` are
marks of the object's frame: `#event` (its `event:` line), `#id` (its `id:` line), `#bare` (no kind
in the data), `#kind` (the kind in the data, if another one than the frame's), `#own` (drawn for a
run of ours).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ... import events
from ...wire import as_dict
from ..foreign_values import CAUSES, text_of
from ..passthrough import Shift, count_on, strip_marks
from ..times import shift_iso
from ..usage import CHAT_NAMES, read_usage, to_chat_usage
from ..writing import as_text

NAME = "looopy"
Obj = dict[str, Any]
ENVELOPE = frozenset({"kind", "contextId", "taskId", "path", "timestamp"})
#: State of a task -> status of the end that it implies; other states imply none.
ENDED = {
    "completed": "ok",
    "failed": "error",
    "canceled": "interrupted",
    "waiting-input": "awaiting",
    "waiting-auth": "awaiting",
}
#: The attributes of an ordinary thought; our events leave them out.
PLAIN_THOUGHT = {"thoughtType": "reasoning", "verbosity": "normal"}


def _shift_id(value: Any, lines: int, _ms: int) -> Any:
    """Return an event id `context-n` so many lines later; an id of another form is unchanged."""
    context, dash, number = value.rpartition("-") if isinstance(value, str) else ("", "", "")
    if not number.isdecimal() or str(int(number)) != number:  # `007` would lose its zeros
        return value
    return f"{context}{dash}{int(number) + lines}"


#: Fields that grow from one delta of a text to the next (see `passthrough`).
SHIFTS: dict[str, Shift] = {"index": count_on, "timestamp": shift_iso, "#id": _shift_id}


def strip_envelope(obj: Mapping[str, Any]) -> Obj:
    """Return an object without its envelope and marks."""
    return {k: v for k, v in strip_marks(obj).items() if k not in ENVELOPE}


def draw_delta(text: str) -> Obj:
    """Draw a piece of the answer."""
    return {"kind": "content-delta", "delta": text}


def draw_complete(text: str) -> Obj:
    """Draw the end of streamed content."""
    return {"kind": "content-complete", "content": text}


# kind -> (field of its text, the field that the client in the seed's document reads)
_DOCUMENT_NAMES = {"content-delta": ("delta", "content"), "thought-stream": ("content", "thought")}


def use_document_names(obj: Obj) -> Obj:
    """Return an object with its text under the name that the document's client reads."""
    name, document_name = _DOCUMENT_NAMES.get(obj["kind"], ("", ""))
    if name in obj:
        return {(document_name if key == name else key): value for key, value in obj.items()}
    return obj


def _run_start(event: events.RunStart) -> Obj:
    names = {k: v for k, v in (("agentId", event.agent), ("model", event.model)) if v}
    return {"kind": "task-created", "initiator": "user", **({"metadata": names} if names else {})}


def _think(event: events.Think) -> Obj:
    attributes = dict(event.attributes or {})
    drawn = {
        "kind": "thought-stream",
        "thoughtType": attributes.pop("thought_type", PLAIN_THOUGHT["thoughtType"]),
        "verbosity": attributes.pop("verbosity", PLAIN_THOUGHT["verbosity"]),
        "content": event.content,
    }
    return {**drawn, "metadata": attributes} if attributes else drawn


def read_attributes(obj: Mapping[str, Any]) -> Obj | None:
    """Return the attributes of a thought; None for a plain one."""
    attributes = {k: obj[k] for k, plain in PLAIN_THOUGHT.items() if obj.get(k, plain) != plain}
    if "thoughtType" in attributes:
        attributes = {"thought_type": attributes.pop("thoughtType"), **attributes}
    return {**attributes, **as_dict(obj.get("metadata"))} or None


def _progress(event: events.Progress) -> Obj:
    fraction = {"progress": event.fraction} if event.fraction is not None else {}
    message = {"message": event.message} if event.message else {}
    metadata = {"metadata": event.data} if isinstance(event.data, dict) else {}
    return {"kind": "tool-progress", "toolCallId": event.call_id, **fraction, **message, **metadata}


def _result(event: events.Result) -> Obj:
    ids = {"toolCallId": event.call_id, "toolName": event.name}
    succeeded = event.status == "ok"
    ms = round(event.duration * 1000, 3)
    duration = {"duration": round(ms) if ms.is_integer() else ms}
    metadata = {"metadata": duration} if event.duration else {}
    outcome = {"result": event.content} if succeeded else {"error": as_text(event.content)}
    return {"kind": "tool-complete", **ids, "success": succeeded, **outcome, **metadata}


def plain_prompt(name: str) -> str:
    """Return the question written for an approval that has no text of its own."""
    return f"Run {name}?" if name else "Run it?"


def _metric(event: events.Metric) -> Obj:
    step = event.step
    drawn: Obj = {"kind": "llm-usage", **to_chat_usage(step)}
    if step.cached:
        drawn["cache_read_input_tokens"] = step.cached
    if step.cache_written:
        drawn["cache_creation_input_tokens"] = step.cache_written
    if step.reasoning:
        drawn["completion_tokens_details"] = {"reasoning_tokens": step.reasoning}
    return drawn


def read_counts(obj: Obj) -> events.Counts:
    """Return the tokens of an `llm-usage`."""
    completion, prompt = obj.get("completion_tokens_details"), obj.get("prompt_tokens_details")
    counted = {
        **obj,
        "reasoning": as_dict(completion).get("reasoning_tokens"),
        "cached": obj.get("cache_read_input_tokens") or as_dict(prompt).get("cached_tokens"),
        "cache_written": obj.get("cache_creation_input_tokens"),
    }
    names = CHAT_NAMES | {n: n for n in ("reasoning", "cached", "cache_written")}
    return read_usage(counted, names)


def _state(event: events.State) -> Obj:
    kind = "task-status" if event.kind == "status" else "internal:checkpoint"
    return {"kind": kind, **as_dict(event.payload)}


#: type of an event -> the function that draws it
DRAW: dict[type[events.Event], Callable[[Any], Obj]] = {
    events.RunStart: _run_start,
    events.User: lambda e: {"kind": "message", "message": {"role": "user", "content": e.content}},
    events.Think: _think,
    events.Call: lambda e: {
        "kind": "tool-call",
        "toolCallId": e.call_id,
        "toolName": e.name,
        "arguments": e.args,
    },
    events.Started: lambda e: {"kind": "tool-start", "toolCallId": e.call_id, "toolName": e.name},
    events.Progress: _progress,
    events.Result: _result,
    events.Approval: lambda e: {
        "kind": "tool-input-required",
        "toolCallId": e.call_id,
        **({"prompt": e.reason} if e.reason else {}),
        "toolArguments": e.args or {},
    },
    events.Metric: _metric,
    events.State: _state,
    events.Node: lambda e: {
        "kind": "internal:llm-call",
        **{k: v for k, v in (e.data or {}).items() if k != "internal"},
    },
    events.End: lambda e: {
        "kind": "task-complete",
        **({"finishReason": e.finish_reason} if e.finish_reason else {}),
    },
    events.Extension: lambda e: {"kind": e.name, **as_dict(e.payload)},
}


class TaskStatus(msgspec.Struct, frozen=True):
    """A status of a task; `cause`: `user`, `timeout` or `limit`, "" for none of them."""

    state: str = ""
    cause: str = ""
    message: str = ""


def read_status(payload: Obj) -> TaskStatus:
    """Return the status in `{status: {state, error}}`, or in `{status, message, metadata}`."""
    status, metadata = payload.get("status"), payload.get("metadata")
    reason = text_of(as_dict(metadata), "reason")
    cause = reason if reason in CAUSES else ""
    fields = status if isinstance(status, dict) else {"state": status}
    messages = (
        text_of(fields, "error"),
        text_of(fields, "message"),
        "" if cause else reason,
        text_of(payload, "message"),
    )
    return TaskStatus(text_of(fields, "state"), cause, next(filter(None, messages), ""))
