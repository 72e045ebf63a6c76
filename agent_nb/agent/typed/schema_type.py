"""Rebuilds the type of an answer from its JSON schema, in a process that does not have the type.

A worker of a map must check an answer while the model can still correct it, but a class of a
notebook cannot be sent to another process. The check may be incomplete: the process that has the
type checks the answer again, and adds the type's defaults.

Rule: the schema stays the type's own, so that requests and records are equal in both processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from typing import Annotated, Any, Literal, NotRequired, Union
from uuid import UUID

from ...wire import as_dict, as_list
from .output_type import Answer, OutputType

_PLAIN: Mapping[str, Any] = {  # `type` of the schema -> type
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": type(None),
}
_FORMATS: Mapping[str, Any] = {  # `format` of a string -> type
    "date": date,
    "date-time": datetime,
    "time": time,
    "duration": timedelta,
    "uuid": UUID,
}
# keyword of JSON Schema -> argument of pydantic's `Field`: for numbers; for texts and arrays
_NUMBER_BOUNDS = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
}
_LENGTH_BOUNDS = {
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_length",
    "maxItems": "max_length",
    "pattern": "pattern",
}
_DEFS = "#/$defs/"


class SchemaType(OutputType):
    """The type called `name` with this JSON schema. Raises UsageError if no type can be made."""

    def __init__(self, name: str, schema: Mapping[str, Any]) -> None:
        super().__init__(_TypeBuilder(as_dict(schema.get("$defs"))).make_type(schema))
        self.name = name
        self.schema = dict(schema)
        self.wrapped = self.schema.get("type") != "object"

    def _canonical_answer(self, value: Any) -> Answer | None:
        return None  # the text stays the model's own JSON


class _TypeBuilder:
    """Makes Python types of schemas; `definitions` are those that a `$ref` names."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._types: dict[str, Any] = {}  # name of a definition -> its type

    def make_type(self, schema: Any) -> Any:
        """Return the type of a schema, `Any` if this file knows none of its keywords."""
        if not isinstance(schema, Mapping):
            return Any
        if str(ref := schema.get("$ref", "")).startswith(_DEFS):
            return self._resolve_reference(str(ref).removeprefix(_DEFS))
        if "const" in schema:
            return _make_literal([schema["const"]])
        if isinstance(schema.get("enum"), list):
            return _make_literal(schema["enum"])
        for keyword in ("anyOf", "oneOf", "allOf"):
            options = as_list(schema.get(keyword))
            # allOf counts only with a single part: Python has no type that is several types at once
            if options and (keyword != "allOf" or len(options) == 1):
                return _make_union(map(self.make_type, options))
        kind = schema.get("type")
        if isinstance(kind, list):
            return _make_union(self.make_type({**schema, "type": each}) for each in kind)
        return _with_bounds(
            self._type_of_kind(kind, schema), schema, numbers=kind in ("integer", "number")
        )

    def _type_of_kind(self, kind: Any, schema: Mapping[str, Any]) -> Any:
        """Return the type of a schema whose `type` is `kind`, without its bounds."""
        if kind == "object":
            return self._make_object_type(schema)
        if kind == "array" and (items := as_list(schema.get("prefixItems"))):
            return tuple[tuple(map(self.make_type, items))]  # type: ignore[misc]
        if kind == "array":
            return list[self.make_type(schema.get("items"))]  # type: ignore[misc]
        if kind == "string":
            return _FORMATS.get(str(schema.get("format")), str)
        return _PLAIN.get(kind, Any)

    def _make_object_type(self, schema: Mapping[str, Any]) -> Any:
        """Return a dict type, or a TypedDict if the schema lists properties."""
        others = schema.get("additionalProperties")
        if not (fields := as_dict(schema.get("properties"))):
            return dict[str, self.make_type(others)]  # type: ignore[misc]
        from pydantic import ConfigDict
        from typing_extensions import TypedDict

        required = as_list(schema.get("required"))
        kinds = {name: self.make_type(field) for name, field in fields.items()}
        make_typed_dict: Any = TypedDict
        class_ = make_typed_dict(
            str(schema.get("title") or "Object"),
            {n: k if n in required else NotRequired[k] for n, k in kinds.items()},
        )
        class_.__pydantic_config__ = ConfigDict(extra="forbid" if others is False else "ignore")
        return class_

    def _resolve_reference(self, name: str) -> Any:
        """Return the type of a definition; a reference to itself is `Any`: one level is checked."""
        if name not in self._types:
            self._types[name] = Any  # for a reference to this definition inside it
            self._types[name] = self.make_type(self._definitions.get(name))
        return self._types[name]


def _make_literal(values: list[Any]) -> Any:
    """Return the Literal of these values, `Any` if Python has none (a number such as 1.5)."""
    plain = [value for value in values if isinstance(value, str | int | bool | None)]
    return Literal[tuple(plain)] if plain and len(plain) == len(values) else Any


def _make_union(kinds: Iterable[Any]) -> Any:
    return Union[tuple(kinds)]  # noqa: UP007


def _with_bounds(kind: Any, schema: Mapping[str, Any], *, numbers: bool) -> Any:
    """Return a type with the bounds of its schema; `numbers`: it is a number.

    Bounds of another kind of value check nothing: pydantic would refuse them.
    """
    from pydantic import Field

    if kind is Any or kind in _FORMATS.values():
        return kind
    arguments = _NUMBER_BOUNDS if numbers else _LENGTH_BOUNDS
    bounds = {arguments[keyword]: schema[keyword] for keyword in arguments if keyword in schema}
    return Annotated[kind, Field(**bounds)] if bounds else kind
