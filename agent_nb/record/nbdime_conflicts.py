"""Records that nbdime could not merge, because both sides of a merge added runs to one cell.

Why: nbdime keeps what it cannot merge under `nbdime-conflicts` in the notebook's metadata, as the
diffs of both sides. Our other readers look only under our own key and would miss these records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..wire import as_dict, as_list
from .ipynb import Notebook, metadata_of
from .packing import Payloads
from .record import METADATA_KEY

NBDIME = "nbdime-conflicts"  # {side: [entry of a diff, …]}


def list_unmerged_records(nb: Notebook, *, take: bool = False) -> list[tuple[str, dict[str, Any]]]:
    """Return (cell id, whole record) of nbdime's conflicts; whole records contain their payloads.

    With `take`, the conflicts in our metadata are removed; those of others stay.
    """
    metadata = metadata_of(nb)
    conflicts = as_dict(metadata.get(NBDIME))
    entries = (entry for side in conflicts.values() for entry in as_list(side))
    our_entries = [entry for entry in entries if as_dict(entry).get("key") == METADATA_KEY]
    if take and our_entries:
        others = {
            side: [e for e in as_list(entries) if e not in our_entries]
            for side, entries in conflicts.items()
        }
        metadata.pop(NBDIME)
        metadata |= {NBDIME: others} if any(others.values()) else {}
    added = [(path, value) for entry in our_entries for path, value in _walk_diff(entry)]
    # a record may need a payload that is itself in conflict, or one that both sides share
    payloads = Payloads.of(
        as_dict(metadata.get(METADATA_KEY)).get("payloads"),
        {path[2]: value for path, value in added if path[1] == "payloads"},
    )
    runs = ((path[2], v) for path, v in added if path[1] == "runs" and isinstance(v, dict))
    return [(cell, Payloads.attach(record, payloads)) for cell, record in runs]


def _walk_diff(change: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield (path, value) of what a diff in nbdime's format adds to runs or payloads.

    A path is (our key, "runs", cell id) or (our key, "payloads", key): values three levels deep. An
    entry of a diff has an `op`, names a `key`, and holds a nested `diff`, a new `value` or a list.
    """
    is_entry = isinstance(change, dict) and isinstance(change.get("op"), str)
    if is_entry and isinstance(change.get("key"), str):
        path = (*path, change["key"])
    if is_entry:
        for part in (change.get("diff"), change.get("value"), change.get("valuelist")):
            yield from _walk_diff(part, path)
    elif isinstance(change, list):
        for part in change:
            yield from _walk_diff(part, path)
    elif len(path) == 3 and change is not None:
        yield path, change
    elif isinstance(change, dict) and len(path) < 3:
        for key, part in change.items():
            yield from _walk_diff(part, (*path, key))
