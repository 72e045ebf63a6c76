"""The order of the fields of a typed answer: canonical JSON sorts them, its type has an order.

Why a list of names: a notebook file sorts the keys of every object, and so the schema of its type.

Rules
- `run_start` records the names beside the schema. A record without them has the order of the
  schema, its required fields first: their list is not sorted.
- What is not named keeps its place at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

FIELDS = "fields"
MOST = 2_000  # names of one schema
_DEEPEST = 60


def read_field_order(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the fields of the answer's type, in order; () without a type."""
    output = settings.get("output")
    if not isinstance(output, Mapping):
        return ()
    fields = output.get(FIELDS)
    if isinstance(fields, list):
        return tuple(dict.fromkeys(f for f in fields[:MOST] if isinstance(f, str)))
    return tuple(_distinct(_names(output.get("schema"), _DEEPEST, required=True)))


def fields_of(schema: Any) -> list[str]:
    """Return the names of the fields of a JSON schema as its type has them, in order."""
    return _distinct(_names(schema, _DEEPEST))


def order_names(names: Iterable[str], order: tuple[str, ...]) -> list[str]:
    """Return names in the order of their type."""
    number_of = {name: number for number, name in enumerate(order)}
    return sorted(names, key=lambda name: number_of.get(name, len(number_of)))


def order_fields(value: Any, order: tuple[str, ...], depth: int = _DEEPEST) -> Any:
    """Return a JSON value with the fields of its objects, `depth` levels deep, in order."""
    if isinstance(value, list) and depth:
        return [order_fields(item, order, depth - 1) for item in value]
    if isinstance(value, Mapping) and depth:
        return {k: order_fields(value[k], order, depth - 1) for k in order_names(value, order)}
    return value


def _distinct(names: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(islice(names, MOST)))


def _names(schema: Any, depth: int, *, required: bool = False) -> Iterator[str]:
    if isinstance(schema, list):
        for inner in schema if depth else ():
            yield from _names(inner, depth - 1, required=required)
    elif isinstance(schema, Mapping) and depth:
        first, members = schema.get("required"), schema.get("properties")
        if required and isinstance(first, list):
            yield from (name for name in first if isinstance(name, str))
        if isinstance(members, Mapping):
            yield from map(str, members)
        for inner in schema.values():
            yield from _names(inner, depth - 1, required=required)
