"""The JSON Schema of the record, generated from the event types; `python -m agent_nb.schema` writes the file again.

Why a file: whoever reads a notebook without this package can see what stands in it and check it with any validator.

Rules
- `record.json` describes `nb.metadata["agent_nb"]`; a test says when it is not what `build()` returns.
- It is as tolerant as the reader: unknown fields and event types are allowed, what is known must have its type.
- Strings, lists and objects may be packed (see `portable`).
"""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from .. import events
from ..cut import Cut
from ..portable import MARKS
from ..record import VERSION, Record

PATH = Path(__file__).with_name("record.json")
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


def build() -> dict[str, Any]:
    """Return the schema of `nb.metadata["agent_nb"]`."""
    kinds = {name: _event(cls) for name, cls in events.TYPES.items() if name != "delta"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": 'nb.metadata["agent_nb"]: the recorded runs of a notebook',
        "type": "object",
        "required": ["version", "runs"],
        "properties": {
            "version": {"const": VERSION},
            "runs": {"type": "object", "additionalProperties": {"type": "array", "items": {"$ref": "#/$defs/record"}}},
            "payloads": {"type": "object", "propertyNames": {"pattern": "^[0-9a-f]{64}$"}},
        },
        "$defs": {
            "record": {**_struct(Record), "required": ["format", "id", "events", "hash"]},
            "event": {**_own(_struct(events.Event), ()), "required": ["type"], "allOf": [_when(name) for name in kinds]},
            **{name: _struct(cls) for cls, name in _STRUCTS.items()},
            "packed": {"type": "object", "minProperties": 1, "maxProperties": 1, "propertyNames": {"enum": sorted(MARKS)}},
            **{f"event.{name}": schema for name, schema in kinds.items()},
        },
    }


def text() -> str:
    """Return the schema as the text of the file."""
    return json.dumps(build(), indent=1, ensure_ascii=False, sort_keys=False) + "\n"


def load() -> dict[str, Any]:
    """Return the schema of the file. Raises OSError when the file is not installed."""
    schema: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    return schema


def _when(name: str) -> dict[str, Any]:
    return {"if": {"properties": {"type": {"const": name}}}, "then": {"$ref": f"#/$defs/event.{name}"}}


def _event(cls: type[msgspec.Struct]) -> dict[str, Any]:
    return _own(_struct(cls), events.Event.__struct_fields__)


def _own(schema: dict[str, Any], shared: Sequence[str]) -> dict[str, Any]:
    """Return the schema without the properties that stand elsewhere, and with what may be packed."""
    properties = {name: _packable(p) for name, p in schema["properties"].items() if name not in (*shared, "extra")}
    return {**schema, "properties": properties}


def _packable(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"$ref": "#/$defs/packed"}]} if schema.get("type") in _PACKABLE else schema


def _struct(cls: type[msgspec.Struct]) -> dict[str, Any]:
    hints = get_type_hints(cls)
    properties = {name: _type(hints[name]) for name in cls.__struct_fields__}
    if cls is Record:
        properties["events"] = {"type": "array", "items": {"$ref": "#/$defs/event"}}
    return {"description": " ".join((inspect.getdoc(cls) or "").split()), "type": "object", "properties": properties}


def _type(hint: Any) -> dict[str, Any]:
    """Return the schema of one annotation, as far as the event types use the language of types."""
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
