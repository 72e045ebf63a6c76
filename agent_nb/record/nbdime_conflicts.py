"""Records that nbdime set aside because both sides of a merge added runs to one cell.

nbdime keeps what it cannot merge as diffs of both sides under `nbdime-conflicts` in the notebook's
metadata.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..wire import as_dict, as_list
from .ipynb import Notebook, metadata_of
from .packing import Payloads
from .record import METADATA_KEY

NBDIME = "nbdime-conflicts"


def list_unmerged_records(nb: Notebook, *, take: bool = False) -> list[tuple[str, dict[str, Any]]]:
    """Return (cell id, whole record) of what nbdime set aside; with `take`, remove it."""
    metadata = metadata_of(nb)
    aside = as_dict(metadata.get(NBDIME))
    ours = [
        entry
        for side in aside.values()
        for entry in as_list(side)
        if as_dict(entry).get("key") == METADATA_KEY
    ]
    if take and ours:
        left = {
            side: [e for e in as_list(entries) if e not in ours] for side, entries in aside.items()
        }
        metadata.pop(NBDIME)
        metadata |= {NBDIME: left} if any(left.values()) else {}
    added = [(path, value) for entry in ours for path, value in _added(entry)]
    # a record set aside may need a payload set aside with it, or one of both sides
    payloads = Payloads.of(
        as_dict(metadata.get(METADATA_KEY)).get("payloads"),
        {path[2]: value for path, value in added if path[1] == "payloads"},
    )
    listed = [(path[2], value) for path, value in added if path[1] == "runs"]
    return [
        (cell, Payloads.attach(record, payloads))
        for cell, record in listed
        if isinstance(record, dict)
    ]


def _added(change: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield (path, value) of what a diff in nbdime's format adds to runs or payloads.

    A path is (our key, "runs", cell id) or (our key, "payloads", key): values three levels deep.
    """
    described = isinstance(change, dict) and isinstance(change.get("op"), str)
    if described and isinstance(change.get("key"), str):
        path = (*path, change["key"])
    if described:
        for part in (change.get("diff"), change.get("value"), change.get("valuelist")):
            yield from _added(part, path)
    elif isinstance(change, list):
        for part in change:
            yield from _added(part, path)
    elif len(path) == 3 and change is not None:
        yield path, change
    elif isinstance(change, dict) and len(path) < 3:
        for key, part in change.items():
            yield from _added(part, (*path, key))
