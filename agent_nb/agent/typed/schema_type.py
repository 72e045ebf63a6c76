"""A type of answers made of its JSON schema, for a process that does not have the type.

Why: a worker of a map must say what is wrong with an answer while the model can still correct it,
and a class of a notebook cannot travel.

Rules
- The schema is the type's own, unchanged, so that requests, inputs and records are equal.
- What `OutputType` makes of Python types is understood: objects, arrays, tuples, unions, constants,
  references (recursive ones too), bounds, formats of dates and of UUIDs. A keyword that is unknown
  checks nothing; the type itself checks the answer where it is known.
- The text of an answer is the model's own JSON, without defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from functools import cached_property
from typing import Annotated, Any, Literal, NotRequired, Union
from uuid import UUID

from ...wire import as_dict, as_list
from .output_type import Answer, OutputType

_PLAIN: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": type(None),
}
_FORMATS: Mapping[str, Any] = {
    "date": date,
    "date-time": datetime,
    "time": time,
    "duration": timedelta,
    "uuid": UUID,
}
_BOUNDS = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
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
        super().__init__(_Reader(schema).kind)
        self.name = name
        self.schema = dict(schema)
        self.wrapped = self.schema.get("type") != "object"

    def _canonical_answer(self, value: Any) -> Answer | None:
        return None  # the text stays the model's own JSON


class _Reader:
    """Makes a Python type of one schema and its definitions."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._definitions = as_dict(schema.get("$defs"))
        self._types: dict[str, Any] = {}

    @cached_property
    def kind(self) -> Any:
        """The type."""
        return self._type(self._schema)

    def _type(self, schema: Any) -> Any:
        """Return the type of a schema, `Any` if it has no keyword that is understood."""
        if not isinstance(schema, Mapping):
            return Any
        if str(ref := schema.get("$ref", "")).startswith(_DEFS):
            return self._reference(str(ref).removeprefix(_DEFS))
        if "const" in schema:
            return _literal([schema["const"]])
        if isinstance(schema.get("enum"), list):
            return _literal(schema["enum"])
        for word in ("anyOf", "oneOf", "allOf"):
            parts = as_list(schema.get(word))
            if parts and (word != "allOf" or len(parts) == 1):
                return _union([self._type(part) for part in parts])
        kind = schema.get("type")
        if isinstance(kind, list):
            return _union([self._type({**schema, "type": each}) for each in kind])
        return _with_bounds(
            self._type_of_kind(kind, schema), schema, numbers=kind in ("integer", "number")
        )

    def _type_of_kind(self, word: Any, schema: Mapping[str, Any]) -> Any:
        if word == "object":
            return self._object_type(schema)
        if word == "array":
            return self._array_type(schema)
        return (
            _FORMATS.get(str(schema.get("format")), str)
            if word == "string"
            else _PLAIN.get(word, Any)
        )

    def _array_type(self, schema: Mapping[str, Any]) -> Any:
        if parts := as_list(schema.get("prefixItems")):
            return tuple[tuple(self._type(part) for part in parts)]  # type: ignore[misc]
        return list[self._type(schema.get("items"))]  # type: ignore[misc]

    def _object_type(self, schema: Mapping[str, Any]) -> Any:
        more = schema.get("additionalProperties")
        if not (fields := as_dict(schema.get("properties"))):
            return dict[str, self._type(more)]  # type: ignore[misc]
        from pydantic import ConfigDict
        from typing_extensions import TypedDict

        required = as_list(schema.get("required"))
        kinds = {name: self._type(held) for name, held in fields.items()}
        typed: Any = TypedDict
        class_ = typed(
            str(schema.get("title") or "Object"),
            {n: k if n in required else NotRequired[k] for n, k in kinds.items()},
        )
        class_.__pydantic_config__ = ConfigDict(extra="forbid" if more is False else "ignore")
        return class_

    def _reference(self, name: str) -> Any:
        """Return the type of a definition; one that holds itself is checked one level deep."""
        if name not in self._types:
            self._types[name] = Any  # for the definition inside itself
            self._types[name] = self._type(self._definitions.get(name))
        return self._types[name]


def _literal(values: list[Any]) -> Any:
    plain = [value for value in values if isinstance(value, str | int | bool | None)]
    return Literal[tuple(plain)] if plain and len(plain) == len(values) else Any


def _union(kinds: list[Any]) -> Any:
    return Union[tuple(kinds)]  # noqa: UP007


def _with_bounds(kind: Any, schema: Mapping[str, Any], *, numbers: bool) -> Any:
    from pydantic import Field

    if kind is Any or kind in _FORMATS.values():
        return kind
    fit = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
    bounds = {_BOUNDS[w]: schema[w] for w in _BOUNDS if w in schema and (w in fit) == numbers}
    return Annotated[kind, Field(**bounds)] if bounds else kind
