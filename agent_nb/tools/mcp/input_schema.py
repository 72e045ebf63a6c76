"""Clean the JSON schema that an MCP server gives for a tool's arguments.

Why: a server may send anything, and a provider refuses a whole request for one faulty schema. So a
keyword whose value has the wrong type is dropped.

Rules
- Characters that people cannot see are removed from all texts, since the model reads them.
- The top is the schema of an object without alternatives, which providers refuse there; the server
  still checks the arguments against them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...wire import strip_hidden
from ..schema import LISTS, MAPS, SINGLES

_DEEPEST = 30  # levels of a schema, and of a value in it; deeper ones become {} and null
_NAMED_SCHEMAS = (*MAPS, "definitions")  # keywords whose value holds schemas by name
_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_TEXTS = ("description", "title", "pattern", "format", "$ref", "$id", "$schema")
# keyword -> the type that its value must have
_KINDS: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(_NAMED_SCHEMAS, Mapping),
    **dict.fromkeys((*LISTS, "enum", "required", "examples"), list),
    **dict.fromkeys(_NUMBERS, (int, float)),
    **dict.fromkeys(_COUNTS, int),
    **dict.fromkeys(_TEXTS, str),
    **dict.fromkeys(SINGLES, (Mapping, bool, list)),
    "type": (str, list),
}
# keywords that are dropped at the top, where providers refuse alternatives and references
_DROPPED_AT_TOP = frozenset(
    {*LISTS, "not", "if", "then", "else", "enum", "const", "$ref", "$schema", "$id"}
)


def clean_schema(schema: Any) -> dict[str, Any]:
    """Return a server's schema as the schema of an object that models and dialects accept."""
    if not isinstance(schema, Mapping):
        schema = {}
    keywords = _clean_keywords(schema, 0)
    top = {key: value for key, value in keywords.items() if key not in _DROPPED_AT_TOP}
    return {**top, "type": "object", "properties": top.get("properties", {})}


def _clean_subschema(schema: Any, depth: int) -> Any:
    """Return a cleaned schema; {} (anything) if it is not a schema or is nested too deeply."""
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return {}
    return _clean_keywords(schema, depth)


def _clean_keywords(schema: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    # a keyword is cleaned before its value is checked: a hidden character must not spare the check
    keywords = ((strip_hidden(str(key)), value) for key, value in schema.items())
    return {
        key: _clean_value(key, value, depth + 1) for key, value in keywords if _fits(key, value)
    }


def _fits(key: str, value: Any) -> bool:
    """Return whether a keyword has a value of its type."""
    if isinstance(value, bool) and (key in _NUMBERS or key in _COUNTS):
        return False  # for Python a bool is an int
    if isinstance(value, float) and not math.isfinite(value):
        return False  # as null, a limit would make the schema faulty
    return isinstance(value, _KINDS.get(key, object))


def _clean_value(key: str, value: Any, depth: int) -> Any:
    """Return the cleaned value of a keyword."""
    if key in _NAMED_SCHEMAS:
        return {strip_hidden(str(k)): _clean_subschema(v, depth) for k, v in value.items()}
    if key in LISTS or (key in SINGLES and isinstance(value, list)):
        return [_clean_subschema(member, depth) for member in value]
    if key in SINGLES:
        return _clean_subschema(value, depth)
    if key in ("description", "title"):
        return strip_hidden(value).strip()
    if key in ("required", "type") and isinstance(value, list):
        return [strip_hidden(item) for item in value if isinstance(item, str)]
    return _clean_json(value, 0)


def _clean_json(value: Any, depth: int) -> Any:
    """Return a cleaned JSON value; levels that are too deep, NaN and infinities become null."""
    if depth > _DEEPEST:
        return None
    if isinstance(value, Mapping):
        return {strip_hidden(str(k)): _clean_json(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_clean_json(member, depth + 1) for member in value]
    if isinstance(value, str):
        return strip_hidden(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
