"""Unrolls a recursive schema to a bounded depth: a small model may never stop nesting.

Rule: every document of the bounded schema is valid under the original. Below the last of `LEVELS`,
a recursive list is empty, and optional recursive members and options are left out. If such a part
can be neither empty nor left out, the whole schema stays unchanged. A `Folder` of files and folders
becomes `Folder_0`, whose folders are `Folder_1`, whose list of folders is empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..models import recursive_names

LEVELS = 2  # how many copies of a recursive definition lie one inside the other
MOST_ITEMS = 2  # the most items of a list whose items are recursive


def bound_depth(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema without recursion; unchanged if it has none or cannot be bounded."""
    definitions = schema.get("$defs", {})
    names = recursive_names(definitions)
    if not names:
        return schema
    return _Unrolled(definitions, names).bound_root(schema) or schema


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

    def bound_root(self, root: Mapping[str, Any]) -> dict[str, Any] | None:
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
        for key in {"anyOf", "oneOf"} & schema.keys():  # one option is enough
            options = (self._bound(option, level) for option in schema[key])
            bound[key] = [option for option in options if option is not None]
            if not bound[key]:
                return None
        for key in {"allOf", "prefixItems"} & schema.keys():  # every part is needed
            bound[key] = [self._bound(part, level) for part in schema[key]]
            if None in bound[key]:
                return None
        items, members = self._bound_items(schema, level), self._bound_members(schema, level)
        return None if items is None or members is None else bound | items | members

    def _bound_items(self, schema: Mapping[str, Any], level: int) -> dict[str, Any] | None:
        """Return the changed keywords of an array; None if it must have endless items."""
        if "items" not in schema:
            return {}
        items, least = self._bound(schema["items"], level), int(schema.get("minItems", 0))
        if items is None:
            return None if least > 0 else {"items": {"type": "null"}, "maxItems": 0}
        if items == schema["items"]:
            return {}
        limit = max(MOST_ITEMS, least)
        return {"items": items, "maxItems": min(limit, int(schema.get("maxItems", limit)))}

    def _bound_members(self, schema: Mapping[str, Any], level: int) -> dict[str, Any] | None:
        """Return the changed keywords of an object; None if it must have an endless member."""
        members = {n: self._bound(s, level) for n, s in schema.get("properties", {}).items()}
        if any(members.get(name, True) is None for name in schema.get("required", ())):
            return None
        finite = {name: member for name, member in members.items() if member is not None}
        changed: dict[str, Any] = {"properties": finite} if members else {}
        additional = schema.get("additionalProperties")
        if isinstance(additional, Mapping):
            bound = self._bound(additional, level)
            changed["additionalProperties"] = False if bound is None else bound
        return changed
