"""Converts the single-key form of Loom's events, `{"TaskStart": {…}}`, to frames and back.

The form is that of seed 002 § 6; reader and writer handle frames only. It names the node in
`node_id` and always has a `namespace`: `{"TaskStart": {"node_id": "a", "namespace": null}}` is the
frame `{"type": "node_enter", "id": "a"}`.

Rule: `to_export(from_export(obj))` is `obj`; a frame's mark `#export` holds what that needs. The
reverse loses the envelope of a frame, which the form does not have.
"""

from __future__ import annotations

from typing import Any

from ...wire import as_dict
from ..passthrough import guard_names, is_same_json, note_difference, restore_object, strip_marks
from .lines import ENVELOPE, Obj

_NODE = {"id": "node_id"}  # the field with the node's name: in a frame, in the single-key form
# type of a frame -> (key of the single-key form, {field of the frame: its name in that form})
KEYS: dict[str, tuple[str, dict[str, str]]] = {
    "run_start": ("RunStart", {}),
    "node_enter": ("TaskStart", _NODE),
    "node_exit": ("TaskEnd", _NODE),
    "usage": ("Usage", {}),
    "updates": ("Updates", _NODE),
    "checkpoint": ("Checkpoint", {}),
    "tot_expand": ("TotExpand", {}),
    "tot_evaluate": ("TotEvaluate", {}),
    "tot_backtrack": ("TotBacktrack", {}),
    "got_plan": ("GotPlan", {}),
    "got_node_start": ("GotNodeStart", _NODE),
    "got_node_complete": ("GotNodeComplete", _NODE),
    "got_node_failed": ("GotNodeFailed", _NODE),
    "got_expand": ("GotExpand", {}),
    "tool_call_chunk": ("ToolCallChunk", {}),
    "tool_call": ("ToolCall", {}),
    "tool_start": ("ToolStart", {}),
    "tool_output": ("ToolOutput", {}),
    "tool_end": ("ToolEnd", {}),
    "tool_approval": ("ToolApproval", {}),
}
# key of the single-key form -> (type of the frame, {field of the form: field of the frame})
_FROM_KEY = {key: (kind, {v: k for k, v in names.items()}) for kind, (key, names) in KEYS.items()}
# types whose single-key form always has a `namespace` or a `call_id`: null if the frame has none
_WITH_NAMESPACE = frozenset({"node_enter", "node_exit", "updates"})
_WITH_CALL_ID = frozenset(
    {"tool_call_chunk", "tool_call", "tool_start", "tool_output", "tool_end", "tool_approval"}
)
# type -> (key, the only field): the key holds the value of that field itself
_WRAPPED = {"values": ("Values", "state"), "custom": ("Custom", "value")}
# type -> `kind` of a chunk of `Messages`
_MESSAGE_KINDS = {"message_chunk": "Message", "thought_chunk": "Thinking"}
SINGLE_KEYS = frozenset({*_FROM_KEY, "Values", "Custom", "Messages"})


def to_export(frame: Obj) -> Obj:
    """Return the single-key object of a frame; a reply or an unknown type stays unchanged."""
    key, body = _draw_export(frame)
    if not key:
        return strip_marks(frame)
    note = frame.get("#export")
    if not isinstance(note, dict):
        return {key: body}
    envelope: Obj = as_dict(note.get("envelope"))
    if note.get("envelope") is True:  # the object had the same envelope as the frame
        envelope = {k: frame[k] for k in ENVELOPE if k in frame}
    if "body" in note:  # the original body was not an object, so it was noted whole
        body = note["body"]
    elif isinstance(body, dict):
        body = restore_object(body, note)
    return {**envelope, key: body}


def is_export(obj: Obj) -> bool:
    """Return whether an object has the single-key form, with or without an envelope."""
    return (
        "type" not in obj
        and len(obj.keys() & SINGLE_KEYS) == 1
        and obj.keys() <= SINGLE_KEYS | set(ENVELOPE)
    )


def from_export(obj: Obj) -> Obj:
    """Return the frame of an object of the single-key form (see `is_export`)."""
    envelope = {k: v for k, v in obj.items() if k in ENVELOPE}
    key, body = next((k, v) for k, v in obj.items() if k not in ENVELOPE)
    frame = _read_frame(key, body)
    _, drawn = _draw_export({**envelope, **frame})
    note: Obj = {}  # how the object differs from the one that we would write
    if not is_same_json(body, drawn):
        are_objects = isinstance(body, dict) and isinstance(drawn, dict)
        note = note_difference(body, drawn) if are_objects else {"body": body}
    if envelope:
        # where both have a field, the frame's value wins below: so the envelope is noted whole
        note["envelope"] = envelope if envelope.keys() & frame.keys() else True
    return {**envelope, **frame, **({"#export": note} if note else {})}


def _draw_export(frame: Obj) -> tuple[str, Any]:
    """Return the key of a frame in the single-key form ("" for none) and the value of that key."""
    kind = frame.get("type")
    if not isinstance(kind, str):
        return "", None
    # in `got_expand` `node_id` is content (the node that expands), elsewhere part of the envelope
    hidden = {"type", *ENVELOPE} - ({"node_id"} if kind == "got_expand" else set())
    fields: Obj = {k: v for k, v in strip_marks(frame).items() if k not in hidden}
    if kind in _WRAPPED:
        key, field = _WRAPPED[kind]
        return key, fields.get(field)
    if kind in _MESSAGE_KINDS:
        return "Messages", _draw_message(fields, _MESSAGE_KINDS[kind])
    if kind not in KEYS:
        return "", None
    key, names = KEYS[kind]
    body = {names.get(k, k): v for k, v in fields.items()}
    if kind in _WITH_CALL_ID and "call_id" not in body:
        body = {"call_id": None, **body}
    if kind in _WITH_NAMESPACE:
        body.setdefault("namespace", None)
    return key, body


def _draw_message(fields: Obj, kind: str) -> Obj:
    chunk = {"content": fields.get("content", ""), "kind": kind}
    metadata = {"loom_node": fields.get("id", ""), "namespace": fields.get("namespace")}
    return {"chunk": chunk, "metadata": metadata}


def _read_frame(key: str, body: Any) -> Obj:
    for kind, (name, field) in _WRAPPED.items():
        if key == name:
            return {"type": kind, field: body}
    fields: Obj = guard_names(as_dict(body))
    if key == "Messages":
        return _read_message(fields)
    kind, names = _FROM_KEY[key]
    named = {names.get(k, k): v for k, v in fields.items() if k != "namespace" or v is not None}
    return {**named, "type": kind}  # a field `type` of the body stands in the note alone


def _read_message(fields: Obj) -> Obj:
    if "chunk" not in fields and isinstance(fields.get("content"), str):
        return {"type": "message_chunk", **{k: v for k, v in fields.items() if k != "type"}}
    chunk, metadata = as_dict(fields.get("chunk")), as_dict(fields.get("metadata"))
    kind = "thought_chunk" if chunk.get("kind") == "Thinking" else "message_chunk"
    frame = {"type": kind, "content": chunk.get("content", ""), "id": metadata.get("loom_node", "")}
    if metadata.get("namespace") is not None:
        frame["namespace"] = metadata["namespace"]
    return frame
