"""The schema of a tool's arguments as a server gives it, made fit for models and dialects.

Rules
- A keyword with a value of the wrong type is dropped, the rest stays. Names of arguments are free.
- No text has a character that people cannot see: the model reads all of it.
- At the top stands an object: providers refuse alternatives there, and the server checks them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...wire import strip_hidden
from ..schema import LISTS, MAPS, SINGLES

_DEEPEST = 30
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_TEXTS = ("description", "title", "pattern", "format", "$ref", "$id", "$schema")
# the type of the value of each keyword
_KINDS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys((*MAPS, "definitions"), Mapping),
    **dict.fromkeys((*LISTS, "enum", "required", "examples"), list),
    **dict.fromkeys(_NUMBERS, (int, float)),
    **dict.fromkeys(_COUNTS, int),
    **dict.fromkeys(_TEXTS, str),
    **dict.fromkeys(SINGLES, (Mapping, bool, list)),
    "type": (str, list),
}
_NOT_AT_THE_TOP = frozenset(
    {*LISTS, "not", "if", "then", "else", "enum", "const", "$ref", "$schema", "$id"}
)


def clean_schema(schema: Any) -> dict[str, Any]:
    """Return a server's schema as the schema of an object that models and dialects accept."""
    clean = _schema(schema, 0) if isinstance(schema, Mapping) else {}
    assert isinstance(clean, dict)
    top = {key: value for key, value in clean.items() if key not in _NOT_AT_THE_TOP}
    return {**top, "type": "object", "properties": top.get("properties", {})}


def _schema(schema: Any, depth: int) -> Any:
    """Return a schema inside another one, clean; {} (anything) for what is none, or too deep."""
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return {}
    return {
        strip_hidden(str(key)): _value(str(key), value, depth + 1)
        for key, value in schema.items()
        if _fits(str(key), value)
    }


def _fits(key: str, value: Any) -> bool:
    """Return whether a keyword has a value of its type."""
    kind = _KINDS.get(key)
    if kind is None:
        return True
    number = key in _NUMBERS or key in _COUNTS
    return isinstance(value, kind) and not (number and isinstance(value, bool))


def _value(key: str, value: Any, depth: int) -> Any:
    """Return the value of a keyword, clean."""
    if key in MAPS or key == "definitions":
        return {strip_hidden(str(name)): _schema(one, depth) for name, one in value.items()}
    if key in LISTS or (key in SINGLES and isinstance(value, list)):
        return [_schema(one, depth) for one in value]
    if key in SINGLES:
        return _schema(value, depth)
    if key in ("description", "title"):
        return strip_hidden(value).strip()
    if key in ("required", "type") and isinstance(value, list):
        return [strip_hidden(one) for one in value if isinstance(one, str)]
    return _plain(value, depth)


def _plain(value: Any, depth: int) -> Any:
    """Return a JSON value, cut off where it is too deep, without numbers that JSON lacks."""
    if depth > _DEEPEST:
        return None
    if isinstance(value, Mapping):
        return {strip_hidden(str(key)): _plain(one, depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one, depth + 1) for one in value]
    if isinstance(value, str):
        return strip_hidden(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
