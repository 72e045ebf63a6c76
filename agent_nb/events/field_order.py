"""The order of the fields of a typed answer: canonical JSON sorts them, its type has an order.

Rule: the schema is the one that `run_start` records; what it does not name keeps its place at the
end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

MOST = 2_000  # names of one schema
_DEEPEST = 60


def field_order(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the fields of the answer's type, in order; () without a type."""
    output = settings.get("output")
    schema = output.get("schema") if isinstance(output, Mapping) else None
    return tuple(dict.fromkeys(islice(_names(schema, _DEEPEST), MOST)))


def ordered(names: Iterable[str], order: tuple[str, ...]) -> list[str]:
    """Return names in the order of their type."""
    place = {name: number for number, name in enumerate(order)}
    return sorted(names, key=lambda name: place.get(name, len(place)))


def _names(schema: Any, depth: int) -> Iterator[str]:
    if isinstance(schema, list):
        for inner in schema if depth else ():
            yield from _names(inner, depth - 1)
    elif isinstance(schema, Mapping) and depth:
        members = schema.get("properties")
        if isinstance(members, Mapping):
            yield from map(str, members)
        for inner in schema.values():
            yield from _names(inner, depth - 1)
