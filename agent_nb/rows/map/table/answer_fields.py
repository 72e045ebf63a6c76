"""The columns of a typed answer, read from its JSON schema: names and shapes.

The schema {"properties": {"label": {"type": "string"}}} gives the column `label` of shape `text`,
so the frame has the same columns and types whatever the rows answered, even if all failed. Values
are plain JSON, as in `run.output_frame()`: a date is a text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from ....agent import OutputType
from ....events import fields_of, order_fields

ANSWER = "answer"
Kind = Literal["int", "count", "float", "bool", "text", "list", "struct", "null", "any"]
# type in a schema -> kind of shape
_TYPES: dict[str, Kind] = {
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "string": "text",
    "null": "null",
}
# type of a constant in a schema -> kind of shape
_SCALARS: dict[type, Kind] = {
    int: "int",
    float: "float",
    bool: "bool",
    str: "text",
    type(None): "null",
}


class Shape(msgspec.Struct, frozen=True):
    """The shape of JSON values. `item`: the shape of a list's items; `members`: of a struct's.

    A `count` is an int that is never null; every other shape also fits null and a missing field.
    `any` stands for values without a common shape, such as `int | str` or a dict with any keys.
    """

    kind: Kind
    item: Shape | None = None
    members: tuple[tuple[str, Shape], ...] = ()


class Column(NamedTuple):
    """One column of a frame: the shape of its values, and these from top to bottom."""

    shape: Shape
    values: list[Any]


ANY = Shape("any")
TEXT = Shape("text")


class Fields(msgspec.Struct, frozen=True):
    """The columns of an answer by name; `whole`: the answer itself is the only column.

    `order`: the fields in the order of the type; an answer may have them in another order.
    `positional`: an answer is a list with the values of the fields.
    """

    shapes: Mapping[str, Shape]
    whole: bool = True
    order: tuple[str, ...] = ()
    positional: bool = False

    def columns(self, documents: Sequence[Any]) -> dict[str, list[Any]]:
        """Return the values of each column for these answers; None is a missing answer or field."""
        rows = [None if d is None else order_fields(d, self.order) for d in documents]
        if self.whole:
            return {ANSWER: rows}
        objects = [self._name_values(row) for row in rows]
        return {name: [row.get(name) for row in objects] for name in self.shapes}

    def _name_values(self, row: Any) -> Mapping[str, Any]:
        """Return the fields of an object, the items of a NamedTuple by name, {} for others."""
        if self.positional and isinstance(row, list):
            return dict(zip(self.shapes, row, strict=False))  # a default may be left out
        return row if isinstance(row, Mapping) else {}


def answer_columns(output: OutputType | None) -> Fields:
    """Return the columns of the answers of a type (None: of texts).

    An object with fields and a NamedTuple have a column for each field, a union of objects for the
    fields of all. Every other type has the column `answer`.
    """
    if output is None:
        return Fields({ANSWER: TEXT})
    schema = output.schema
    reader = _Reader(schema.get("$defs", {}))
    order = tuple(fields_of(schema))
    if shapes := reader.fields(schema):
        return Fields(shapes, False, order)
    if shapes := reader.items(schema, output.item_names):
        return Fields(shapes, False, order, positional=True)
    return Fields({ANSWER: reader.shape(schema)}, True, order)


class _Reader:
    """Reads the schemas of one type; `definitions` are those that a `$ref` names."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = definitions
        self._known: dict[str, Shape] = {}

    def fields(self, schema: Mapping[str, Any]) -> dict[str, Shape]:
        """Return the fields of an object, or of all objects of a union; {} for other values."""
        shapes_of: dict[str, list[Shape]] = {}
        for option in self._union_members(schema, frozenset()):
            members = option.get("properties")
            if not isinstance(members, Mapping) or not members:
                return {}
            for name, member in members.items():
                shapes_of.setdefault(str(name), []).append(self.shape(member))
        return {name: _merge_shapes(shapes) for name, shapes in shapes_of.items()}

    def items(self, schema: Mapping[str, Any], names: Sequence[str]) -> dict[str, Shape]:
        """Return the items of a NamedTuple by name; {} without names, or for other values."""
        definition = next(self._union_members(schema, frozenset()), {})
        shapes = definition.get("prefixItems")
        if not isinstance(shapes, list) or len(shapes) != len(names):
            return {}
        return dict(zip(names, map(self.shape, shapes), strict=True))

    def shape(self, schema: Any) -> Shape:
        """Return the shape of the values of a schema."""
        if not isinstance(schema, Mapping):
            return ANY
        if (name := _reference_name(schema)) is not None:
            return self._resolve_reference(name)
        if (options := _list_options(schema)) is not None:
            return _merge_shapes(map(self.shape, options))
        constants = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(constants, list):
            return _merge_shapes(Shape(_SCALARS.get(type(value), "any")) for value in constants)
        kind = str(schema.get("type"))
        if kind == "array":
            item = self.shape(schema.get("items"))
            return ANY if item.kind == "any" else Shape("list", item)
        if kind == "object":
            return self._make_struct(schema)
        return Shape(_TYPES.get(kind, "any"))

    def _make_struct(self, schema: Mapping[str, Any]) -> Shape:
        members = schema.get("properties")
        if not isinstance(members, Mapping) or not members or schema.get("additionalProperties"):
            return ANY
        shapes = tuple((str(name), self.shape(member)) for name, member in members.items())
        without_any = all(shape.kind != "any" for _, shape in shapes)
        return Shape("struct", None, shapes) if without_any else ANY

    def _resolve_reference(self, name: str) -> Shape:
        if name not in self._known:
            self._known[name] = ANY  # ends the recursion of a type that refers to itself
            self._known[name] = self.shape(self._definitions.get(name))
        return self._known[name]

    def _union_members(self, schema: Any, above: frozenset[str]) -> Iterator[Mapping[str, Any]]:
        """Yield the members of a union, or the one schema: references resolved, null left out."""
        if not isinstance(schema, Mapping):
            yield {}  # a missing definition, or True: it names no fields
        elif (name := _reference_name(schema)) is not None:
            if name not in above:
                yield from self._union_members(self._definitions.get(name), above | {name})
        elif (options := _list_options(schema)) is not None:
            for option in options:
                yield from self._union_members(option, above)
        elif schema.get("type") != "null":
            yield schema


def _reference_name(schema: Mapping[str, Any]) -> str | None:
    reference = schema.get("$ref")
    return reference.removeprefix("#/$defs/") if isinstance(reference, str) else None


def _list_options(schema: Mapping[str, Any]) -> list[Any] | None:
    """Return the members of a union, None for another schema; an `allOf` counts as a union."""
    options = (schema.get(name) for name in ("anyOf", "oneOf", "allOf"))
    return next((member for member in options if isinstance(member, list)), None)


def _merge_shapes(shapes: Iterable[Shape]) -> Shape:
    """Return a shape that fits the values of all; null fits into every shape."""
    different = dict.fromkeys(shape for shape in shapes if shape.kind != "null")
    if {shape.kind for shape in different} == {"int", "float"}:
        return Shape("float")
    return next(iter(different)) if len(different) == 1 else ANY
