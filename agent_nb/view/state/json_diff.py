"""The changes from one JSON value to the next, for snapshots and checkpoints of a foreign state.

Why: other systems send their whole state again and again; a reader wants to see the changes. An
item inserted into a list or appended is one change; values too deep to compare count as changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

MOST_LEVELS = 12  # levels that are compared; below, a value has changed as a whole
#: No value: before an addition, after a removal.
MISSING: Any = type("Missing", (), {"__repr__": lambda _: "MISSING"})()


class Change(NamedTuple):
    """One change.

    `path` reads like code: `messages[2].text`; "" is the whole value. `before` of an addition and
    `after` of a removal are `MISSING`.
    """

    path: str
    before: Any
    after: Any

    @property
    def kind(self) -> str:
        """`added`, `removed` or `changed`."""
        if self.before is MISSING:
            return "added"
        return "removed" if self.after is MISSING else "changed"


def find_changes(before: Any, after: Any) -> list[Change]:
    """Return the changes in the order of the new value; in an object, removed fields come last."""
    return list(_compare(before, after, "", MOST_LEVELS))


def _compare(before: Any, after: Any, path: str, depth: int) -> Iterator[Change]:
    if _is_same(before, after):
        return
    if depth and isinstance(before, dict) and isinstance(after, dict):
        yield from _compare_fields(before, after, path, depth - 1)
    elif depth and isinstance(before, list) and isinstance(after, list):
        yield from _compare_items(before, after, path, depth - 1)
    else:
        yield Change(path, before, after)


def _compare_fields(
    before: dict[str, Any], after: dict[str, Any], path: str, depth: int
) -> Iterator[Change]:
    for key, value in after.items():
        field_path = _extend_path(path, key)
        if key in before:
            yield from _compare(before[key], value, field_path, depth)
        else:
            yield Change(field_path, MISSING, value)
    for key, value in before.items():
        if key not in after:
            yield Change(_extend_path(path, key), value, MISSING)


def _compare_items(before: list[Any], after: list[Any], path: str, depth: int) -> Iterator[Change]:
    """Yield the changes between the common beginning and the common end of two lists."""
    shorter = min(len(before), len(after))  # beginning and end must not overlap in either list
    head = next((i for i in range(shorter) if not _is_same(before[i], after[i])), shorter)
    tail = next(
        (i for i in range(shorter - head) if not _is_same(before[-1 - i], after[-1 - i])),
        shorter - head,
    )
    removed, added = before[head : len(before) - tail], after[head : len(after) - tail]
    for i in range(max(len(removed), len(added))):
        item_path = f"{path}[{head + i}]"
        if i >= len(removed):
            yield Change(item_path, MISSING, added[i])
        elif i >= len(added):
            yield Change(item_path, removed[i], MISSING)
        else:
            yield from _compare(removed[i], added[i], item_path, depth)


def _extend_path(path: str, key: Any) -> str:
    """Return the path of a field: `path.key`, or `path["a key"]`."""
    name = str(key)
    if not name.isidentifier():
        return f"{path}[{json.dumps(name, ensure_ascii=False)}]"
    return f"{path}.{name}" if path else name


def _is_same(before: Any, after: Any) -> bool:
    """Return whether two JSON values are equal, in any order of fields; true is not 1."""
    try:
        if before != after:
            return False
        # Python calls [True] and [1] equal; their JSON differs
        return len({json.dumps(value, sort_keys=True) for value in (before, after)}) == 1
    except (RecursionError, TypeError, ValueError):  # too deep, or not JSON
        return False
