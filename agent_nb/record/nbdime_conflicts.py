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

NBDIME = "nbdime-conflicts"  # the key of {side: [entry of a diff, …]}


def list_unmerged_records(nb: Notebook) -> list[tuple[str, dict[str, Any]]]:
    """Return (cell id, record with its payloads) of nbdime's conflicts."""
    metadata = metadata_of(nb)
    added = [pair for entry in _list_our_entries(metadata) for pair in _walk_diff(entry)]
    # a record may need a payload that is itself in conflict, or one that both sides share
    payloads = Payloads.of(
        as_dict(metadata.get(METADATA_KEY)).get("payloads"),
        {key: value for (_, field, key), value in added if field == "payloads"},
    )
    runs = (
        (cell, run)
        for (_, field, cell), value in added
        if field == "runs"
        for run in (value if isinstance(value, list) else [value])
    )
    return [(cell, Payloads.attach(run, payloads)) for cell, run in runs if isinstance(run, dict)]


def pop_unmerged_records(nb: Notebook) -> list[tuple[str, dict[str, Any]]]:
    """Return `list_unmerged_records`, and remove them; conflicts in other metadata stay."""
    records, metadata = list_unmerged_records(nb), metadata_of(nb)
    our_entries = _list_our_entries(metadata)
    if our_entries:
        others = {
            side: [entry for entry in as_list(entries) if entry not in our_entries]
            for side, entries in metadata.pop(NBDIME).items()
        }
        if any(others.values()):
            metadata[NBDIME] = others
    return records


def _list_our_entries(metadata: dict[str, Any]) -> list[Any]:
    sides = as_dict(metadata.get(NBDIME)).values()
    entries = (entry for side in sides for entry in as_list(side))
    return [entry for entry in entries if as_dict(entry).get("key") == METADATA_KEY]


def _walk_diff(entry: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield (path, value) of what an entry of a diff in nbdime's format adds to our metadata.

    {"key": "agent_nb", "diff": [{"key": "runs", "diff": [{"key": "c1", "value": [record]}]}]} adds
    [record] at ("agent_nb", "runs", "c1"). All values are three levels deep; an entry may also have
    several (`valuelist`).
    """
    entry = as_dict(entry)
    if isinstance(entry.get("key"), str):
        path = (*path, entry["key"])
    for part in as_list(entry.get("diff")):
        yield from _walk_diff(part, path)
    for value in (entry.get("value"), *as_list(entry.get("valuelist"))):
        yield from _walk_value(value, path)


def _walk_value(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield (path, value) of the values three levels deep in a new value at `path`."""
    if len(path) == 3 and value is not None:
        yield path, value
    elif len(path) < 3:
        for key, part in as_dict(value).items():
            yield from _walk_value(part, (*path, key))
