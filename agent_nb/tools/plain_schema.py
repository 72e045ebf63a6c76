"""The JSON schema of parameters with plain types, made without pydantic.

Why: the import of pydantic takes longer than the rest of a tool's declaration, and a replay
validates no arguments. Plain are str, int, float, bool and Any; lists and dicts of these; literals
of strings; a plain type or None; and a str or int with bounds of `annotated_types`. The schema
equals pydantic's, less its titles, in the order of keys too.
"""

from __future__ import annotations

import inspect
import math
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any

Schema = dict[str, Any]
# type -> its name in JSON Schema; bare generic type -> the same with its default arguments
PLAIN_NAMES: dict[Any, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_BARE_TYPES: dict[Any, Any] = {list: list[Any], dict: dict[str, Any]}
# exact types of the defaults of plain parameters
_DEFAULTS = frozenset({str, int, float, bool, type(None)})
# (type, class of `annotated_types`) -> (keyword of JSON Schema, attribute of the bound)
_BOUNDS = {
    (str, "MaxLen"): ("maxLength", "max_length"),
    (int, "Ge"): ("minimum", "ge"),
    (int, "Le"): ("maximum", "le"),
}
# kinds of parameters that a JSON object can fill by name
_NAMED = {
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
}


def describe_plain(
    parameters: Sequence[inspect.Parameter],
    hints: dict[str, Any],
    describe: Callable[[inspect.Parameter], str | None],
) -> Schema | None:
    """Return the schema of an object with these parameters, None if one of them is not plain.

    `hints`: their annotations. `describe` returns the description of a parameter.
    """
    properties = {}
    for p in parameters:
        schema = _describe_type(hints.get(p.name, Any)) if p.kind in _NAMED else None
        if schema is None or not (p.default is p.empty or type(p.default) in _DEFAULTS):
            return None
        if text := describe(p):
            schema["description"] = text
        endless = isinstance(p.default, float) and not math.isfinite(p.default)  # no JSON value
        if p.default is not p.empty and not endless:
            schema["default"] = p.default
        properties[p.name] = dict(sorted(schema.items()))
    required = [p.name for p in parameters if p.default is p.empty]
    return {
        "additionalProperties": False,
        "properties": properties,
        **({"required": required} if required else {}),
        "type": "object",
    }


def _describe_type(hint: Any) -> Schema | None:
    """Return the schema of a plain type, None for any other."""
    if hint is Any:
        return {}
    if type(hint) is not type:
        return _describe_generic(hint)
    if hint in PLAIN_NAMES:
        return {"type": PLAIN_NAMES[hint]}
    return _describe_generic(_BARE_TYPES.get(hint))


def _describe_generic(hint: Any) -> Schema | None:
    """Return the schema of a plain literal, list, dict, bounded type or `X | None`; else None."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _describe_bounded(args[0], args[1:])
    if origin is typing.Literal:
        return _describe_literal(args)
    if origin in (typing.Union, types.UnionType):
        variants = [_describe_type(a) for a in args if a is not type(None)]
        # `Any` has the schema {}, which is false: `Any | None` is left to pydantic
        is_plain = len(variants) == 1 and variants[0]
        return {"anyOf": [*variants, {"type": "null"}]} if is_plain else None
    value = _describe_type(args[-1]) if args else None
    if value is None or origin not in (list, dict):
        return None
    if origin is list:
        return {"items": value, "type": "array"}
    return {"additionalProperties": value or True, "type": "object"} if args[0] is str else None


def _describe_bounded(kind: Any, bounds: tuple[Any, ...]) -> Schema | None:
    """Return the schema of a str or int with these bounds; None for other types or bounds."""
    schema = {"type": PLAIN_NAMES.get(kind)}
    for bound in bounds:
        named = _BOUNDS.get((kind, type(bound).__name__))
        # compared by name, so that a plain tool does not import `annotated_types`
        if named is None or type(bound).__module__ != "annotated_types":
            return None
        schema[named[0]] = getattr(bound, named[1])
    return dict(sorted(schema.items()))


def _describe_literal(values: tuple[Any, ...]) -> Schema | None:
    if any(type(value) is not str for value in values):
        return None
    choices = {"const": values[0]} if len(values) == 1 else {"enum": list(values)}
    return {**choices, "type": "string"}
