"""The fields of a typed answer in the order of its type.

Canonical JSON and notebook files sort the keys of objects, so a recorded schema loses its order.
Therefore `run_start` has a list of the names beside the schema: one for all objects of the schema,
so that a name has the same place in each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

FIELDS = "fields"  # the key of the list of names, in the setting `output` of `run_start`
_MOST_NAMES = 2_000  # of one schema; more are ignored
_DEEPEST = 60  # levels of a schema or value that are read: a stranger's may nest without end


def read_field_order(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the fields of a run's answer, in order, from the settings of `run_start`.

    () if the answer has no type. Without a list of names the order is the schema's, but with
    required fields first: `required` is a list, and so unsorted.
    """
    output = settings.get("output")
    if not isinstance(output, Mapping):
        return ()
    fields = output.get(FIELDS)
    if isinstance(fields, list):
        return tuple(dict.fromkeys(f for f in fields[:_MOST_NAMES] if isinstance(f, str)))
    return tuple(_distinct(_names(output.get("schema"), _DEEPEST, required=True)))


def fields_of(schema: Any) -> list[str]:
    """Return the names of the fields of a JSON schema in the schema's order."""
    return _distinct(_names(schema, _DEEPEST))


def order_names(names: Iterable[str], order: tuple[str, ...]) -> list[str]:
    """Return names sorted by their position in `order`; those that are not in it come last."""
    position_of = {name: position for position, name in enumerate(order)}
    return sorted(names, key=lambda name: position_of.get(name, len(position_of)))


def order_fields(value: Any, order: tuple[str, ...], depth: int = _DEEPEST) -> Any:
    """Return a JSON value with the fields of its objects in order, down to `depth` levels."""
    if isinstance(value, list) and depth:
        return [order_fields(item, order, depth - 1) for item in value]
    if isinstance(value, Mapping) and depth:
        return {k: order_fields(value[k], order, depth - 1) for k in order_names(value, order)}
    return value


def _distinct(names: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(islice(names, _MOST_NAMES)))


def _names(schema: Any, depth: int, *, required: bool = False) -> Iterator[str]:
    """Yield the field names in a schema, inner objects last; a name may come repeatedly.

    `required`: the required fields of each object come first.
    """
    if isinstance(schema, list):
        for subschema in schema if depth else ():
            yield from _names(subschema, depth - 1, required=required)
    elif isinstance(schema, Mapping) and depth:
        required_names, properties = schema.get("required"), schema.get("properties")
        if required and isinstance(required_names, list):
            yield from (name for name in required_names if isinstance(name, str))
        if isinstance(properties, Mapping):
            yield from map(str, properties)
        for subschema in schema.values():
            yield from _names(subschema, depth - 1, required=required)
