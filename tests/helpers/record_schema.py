"""The JSON Schema of a record, generated from the event types.

Why: the wheel holds `agent_nb/record/schema.json`, with which any validator can check a notebook.
When an event type changes, `python tests/helpers/record_schema.py` writes the file again.

Rules
- `schema.json` describes `nb.metadata["agent_nb"]`; a test compares it with `build_schema()`.
- It is as tolerant as the reader: unknown fields and event types are allowed; known fields must
  have their type.
- Strings, lists and objects may be packed (see `agent_nb/record/packing.py`).
- Defaults are left out of a record: `status: "ok"` of a result, `phase: "enter"` of a node, `seq`
  where it is the event's place (from 1), `run` where it is the record's id. The schema names every
  default. Two jq programs fill them in: `COUNT` counts how the calls of a notebook ended, `FILL`
  yields every event with all its fields:

    jq "$COUNT" NOTEBOOK.ipynb
    jq --slurpfile schema schema.json "$FILL" NOTEBOOK.ipynb
"""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from agent_nb import events
from agent_nb.record import record
from agent_nb.record.packing import MARKS
from agent_nb.record.record import METADATA_VERSION, RecordFields
from agent_nb.record.size_limit import Cut

PATH = Path(record.__file__).with_name("schema.json")
COUNT = """\
[.metadata.agent_nb.runs[][].events[] | select(.type == "result") | .status // "ok"] | group_by(.) | map({(.[0]): length}) | add"""
FILL = """\
($schema[0]["$defs"]) as $defs
| def defaults: with_entries(select(.value | has("default")) | .value |= .default);
.metadata.agent_nb.runs[][] | .id as $run | .events | to_entries[]
| {seq: (.key + 1), run: $run} as $place
| ($defs.event.properties | defaults) + (($defs["event." + .value.type] // {properties: {}}).properties | defaults) + $place + .value"""
_PLACE = {
    "seq": "Left out where it is the event's place in `events`, counted from 1.",
    "run": "Left out where it is the record's id.",
}
_PLAIN: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    dict: {"type": "object"},
    Any: {},
}
_PACKABLE = ("string", "array")
_STRUCTS: dict[type[msgspec.Struct], str] = {events.Counts: "counts", Cut: "cut"}


def build_schema() -> dict[str, Any]:
    """Return the schema of `nb.metadata["agent_nb"]`."""
    kinds = {name: _event(cls) for name, cls in events.TYPES.items() if name != "delta"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": 'nb.metadata["agent_nb"]: the recorded runs of a notebook',
        "$comment": "A field of an event that is not there has the default that is named here. How the calls of a notebook ended: "
        f"jq '{COUNT}' NOTEBOOK.ipynb. Every event with all its fields: jq --slurpfile schema schema.json '{FILL}' NOTEBOOK.ipynb",
        "type": "object",
        "required": ["version", "runs"],
        "properties": {
            "version": {"const": METADATA_VERSION},
            "runs": {
                "type": "object",
                "additionalProperties": {"type": "array", "items": {"$ref": "#/$defs/record"}},
            },
            "payloads": {"type": "object", "propertyNames": {"pattern": "^(2:)?[0-9a-f]{64}$"}},
            "signatures": {
                "type": "object",
                "propertyNames": {"pattern": "^sha256:"},
                "additionalProperties": {"type": "string"},
            },
        },
        "$defs": {
            "record": {**_struct(RecordFields), "required": ["format", "id", "events", "hash"]},
            "event": {
                **_envelope(),
                "required": ["type"],
                "allOf": [_when(name) for name in kinds],
            },
            **{name: _struct(cls) for cls, name in _STRUCTS.items()},
            "packed": {
                "type": "object",
                "minProperties": 1,
                "maxProperties": 1,
                "propertyNames": {"enum": sorted(MARKS)},
            },
            **{f"event.{name}": schema for name, schema in kinds.items()},
        },
    }


def write_schema(path: Path = PATH) -> None:
    """Write `schema.json`."""
    text = json.dumps(build_schema(), indent=1, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8", newline="\n")


def load_schema() -> dict[str, Any]:
    """Return the schema that users have."""
    schema: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    return schema


def _when(name: str) -> dict[str, Any]:
    return {
        "if": {"properties": {"type": {"const": name}}},
        "then": {"$ref": f"#/$defs/event.{name}"},
    }


def _envelope() -> dict[str, Any]:
    schema = _own(_struct(events.Event), ())
    for name, description in _PLACE.items():
        rest = {k: v for k, v in schema["properties"][name].items() if k != "default"}
        schema["properties"][name] = {"description": description, **rest}
    return schema


def _event(cls: type[msgspec.Struct]) -> dict[str, Any]:
    return _own(_struct(cls), events.Event.__struct_fields__)


def _own(schema: dict[str, Any], shared: Sequence[str]) -> dict[str, Any]:
    """Return the schema without the `shared` properties, the others packable."""
    properties = {
        name: _packable(p)
        for name, p in schema["properties"].items()
        if name not in (*shared, "extra")
    }
    return {**schema, "properties": properties}


def _packable(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("type") not in _PACKABLE:
        return schema
    beside = {"default": schema["default"]} if "default" in schema else {}
    return {
        "anyOf": [{k: v for k, v in schema.items() if k != "default"}, {"$ref": "#/$defs/packed"}],
        **beside,
    }


def _struct(cls: type[msgspec.Struct]) -> dict[str, Any]:
    hints = get_type_hints(cls)
    properties = {
        field.name: {**_type(hints[field.name]), **_default(field)}
        for field in msgspec.structs.fields(cls)
    }
    if cls is RecordFields:
        properties["events"] = {"type": "array", "items": {"$ref": "#/$defs/event"}}
    return {
        "description": " ".join((inspect.getdoc(cls) or "").split()),
        "type": "object",
        "properties": properties,
    }


def _default(field: Any) -> dict[str, Any]:
    """Return the default of a field as a JSON Schema keyword."""
    value = (
        field.default_factory() if field.default_factory is not msgspec.NODEFAULT else field.default
    )
    return (
        {}
        if value is msgspec.NODEFAULT
        else {"default": msgspec.json.decode(msgspec.json.encode(value))}
    )


def _type(hint: Any) -> dict[str, Any]:
    """Return the schema of one annotation; covers the types that events use."""
    if hint in _STRUCTS:
        return {"$ref": f"#/$defs/{_STRUCTS[hint]}"}
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (tuple, list):
        return {"type": "array", "items": _type(args[0])}
    if origin is types.UnionType:
        return {"anyOf": [_type(a) for a in args]}
    return dict(_PLAIN[origin or hint])


if __name__ == "__main__":
    write_schema()
