"""Unroll a recursive schema to a bounded depth.

Why: a small model that writes JSON of a recursive type may never stop nesting.

Rules
- A definition that contains itself is copied once for each of `LEVELS`.
- Below the last level, a recursive list is empty, and optional recursive members and options are
  left out. If such a part can be neither empty nor left out, the whole schema stays unchanged.
- Every document of the bounded schema is valid under the original.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..models import recursive_names

LEVELS = 2  # how many copies of a recursive definition lie one inside the other
MOST_ITEMS = 2  # the most items of a list whose items are recursive


def bounded_depth(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema without recursion; unchanged if it has none or cannot be bounded."""
    definitions = schema.get("$defs", {})
    names = recursive_names(definitions)
    if not names:
        return schema
    return _Unrolled(definitions, names).schema(schema) or schema


class _Unrolled:
    """The copies of the recursive definitions, from the deepest level up.

    A copy of level n refers only to copies of level n + 1; a definition that cannot end without a
    deeper level has no copy.
    """

    def __init__(self, definitions: Mapping[str, Any], names: set[str]) -> None:
        self._names = names
        self._definitions = definitions
        self._copies: dict[str, Any] = {}
        # the deepest first: `_bound` refers to a copy only if that copy exists already
        for level in reversed(range(LEVELS)):
            for name in sorted(names):
                copy = self._bound(definitions[name], level + 1)
                if copy is not None:
                    self._copies[f"{name}_{level}"] = copy

    def schema(self, root: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the root with its bounded definitions; None if it cannot be bounded."""
        others = {
            name: self._bound(each, 0)
            for name, each in self._definitions.items()
            if name not in self._names
        }
        bound = self._bound({k: v for k, v in root.items() if k != "$defs"}, 0)
        if bound is None or None in others.values():
            return None
        return {**bound, "$defs": {**others, **self._copies}}

    def _bound(self, schema: Any, level: int) -> Any:
        """Return a schema whose recursive references are to copies of `level`.

        Returns None if that copy does not exist: values of the schema would be endless.
        """
        if not isinstance(schema, Mapping):
            return schema
        name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
        if name in self._names:
            target = f"{name}_{level}"
            return {"$ref": f"#/$defs/{target}"} if target in self._copies else None
        bound = dict(schema)
        for key in ("anyOf", "oneOf"):
            if key in schema:
                bound[key] = [
                    o for o in (self._bound(s, level) for s in schema[key]) if o is not None
                ]
                if not bound[key]:
                    return None
        return (
            bound if self._bound_array(bound, level) and self._bound_object(bound, level) else None
        )

    def _bound_array(self, schema: dict[str, Any], level: int) -> bool:
        """Bound the items of an array; return whether it can end."""
        prefix_items = [self._bound(each, level) for each in schema.get("prefixItems", ())]
        if None in prefix_items:
            return False
        schema |= {"prefixItems": prefix_items} if prefix_items else {}
        if "items" not in schema:
            return True
        items = self._bound(schema["items"], level)
        if items is None:
            schema["items"], schema["maxItems"] = {"type": "null"}, 0
        elif items != schema["items"]:
            limit = max(MOST_ITEMS, int(schema.get("minItems", 0)))
            schema["items"] = items
            schema["maxItems"] = min(limit, int(schema.get("maxItems", limit)))
        # a list that must be empty is possible only if the schema demands no items
        return schema["maxItems"] >= schema.get("minItems", 0) if items is None else True

    def _bound_object(self, schema: dict[str, Any], level: int) -> bool:
        """Bound the members of an object; return whether it can end."""
        members = {n: self._bound(s, level) for n, s in schema.get("properties", {}).items()}
        left_out = {n for n, s in members.items() if s is None}
        if left_out & set(schema.get("required", ())):
            return False
        if members:
            schema["properties"] = {n: s for n, s in members.items() if n not in left_out}
        additional = schema.get("additionalProperties")
        if isinstance(additional, Mapping):
            bound_additional = self._bound(additional, level)
            schema["additionalProperties"] = False if bound_additional is None else bound_additional
        return True
