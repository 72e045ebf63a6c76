"""Merge three versions of a notebook cell by cell, once their outputs and records agree.

Why not git's line merge: it reports a conflict when two branches each append a cell, because both
change the same place; and its markers make the file unreadable.

Rules
- Cells are matched by id. A cell without one gets the id of a cell with the same text in another
  version, else an id made from its text, which is removed after the merge.
- Conflict markers stand inside a source, so the file always stays a notebook. Of other values that
  both sides changed, ours stays, and the conflict is named.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ...record import METADATA_KEY, Cell, cell_id, list_cells, metadata_of, source_of, with_ids
from ...wire import as_dict

# takes the texts base, ours and theirs; returns the merged text, and whether there was no conflict
MergeText = Callable[[str, str, str], tuple[str, bool]]
Versions = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]  # base, ours, theirs
# the beginning of the ids that are made from texts; a notebook's own ids have no colon
TEXT_ID = "text:"
Key = tuple[str, int]  # the id of a cell, and its number among the cells with that id
PARTS = ("cells", "metadata", "nbformat", "nbformat_minor")  # merged each in its own way
_MISSING, _CONFLICT = object(), object()  # in place of a value: it is absent, both changed it


def add_ids(versions: Versions) -> None:
    """Give ids, by which cells are matched, to the cells of the three versions that have none."""
    ids_by_text: dict[tuple[str, str, int], str] = {}
    for nb in versions:
        ids_by_text |= {text: cell["id"] for text, cell in _key_by_text(nb) if cell_id(cell)}
    for nb in versions:
        used_ids = {cell["id"] for cell in list_cells(nb) if cell_id(cell)}
        for text, cell in _key_by_text(nb):
            if not cell_id(cell):
                name = ids_by_text.get(text, "")
                hashed = TEXT_ID + hashlib.sha256(repr(text).encode()).hexdigest()[:16]
                cell["id"] = name if name and name not in used_ids else hashed
                used_ids.add(cell["id"])


def remove_ids(nb: Mapping[str, Any]) -> None:
    """Remove the ids that `add_ids` made from texts, and rename the runs of these cells.

    The metadata names a cell without an id by its place in the notebook (`with_ids`).
    """
    with_made_ids = [str(cell["id"]) for cell in list_cells(nb)]
    for cell in list_cells(nb):
        if cell_id(cell).startswith(TEXT_ID):
            del cell["id"]
    by_place = [str(cell["id"]) for cell in list_cells(with_ids(nb))]
    new_ids = dict(zip(with_made_ids, by_place, strict=True))
    metadata = as_dict(metadata_of(nb).get(METADATA_KEY))
    if runs := as_dict(metadata.get("runs")):
        metadata["runs"] = {new_ids.get(cell, cell): records for cell, records in runs.items()}


def _key_by_text(nb: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str, int], Cell]]:
    """Yield each cell after its key: type, source, and number among the cells with the same two."""
    seen: Counter[tuple[str, str]] = Counter()
    for cell in list_cells(nb):
        text = (str(cell.get("cell_type")), source_of(cell))
        seen[text] += 1
        yield (*text, seen[text]), cell


def merge_notebooks(versions: Versions, merge_text: MergeText) -> tuple[dict[str, Any], list[str]]:
    """Return the merged notebook, and a sentence for each conflict.

    The versions agree on records and outputs already (`three_way_merge.merge_results`).
    """
    merge = _Merge(merge_text)
    return merge.merge_notebooks(versions), merge.conflicts


class _Merge:
    """One merge; `conflicts` are sentences on its conflicts so far."""

    def __init__(self, merge_text: MergeText) -> None:
        self._merge_text = merge_text
        self.conflicts: list[str] = []

    def merge_notebooks(self, versions: Versions) -> dict[str, Any]:
        """Return the merged notebook."""
        other_values = [{k: v for k, v in nb.items() if k not in PARTS} for nb in versions]
        merged: dict[str, Any] = self._merge_objects(other_values, "the notebook")
        metadata = [as_dict(nb.get("metadata")) for nb in versions]
        merged["metadata"] = self._merge_objects(metadata, "the metadata")
        for name in ("nbformat", "nbformat_minor"):
            numbers = [nb[name] for nb in versions[1:] if isinstance(nb.get(name), int)]
            if numbers:
                merged[name] = max(numbers)
        base, ours, theirs = (dict(_key_by_id(nb)) for nb in versions)
        merged["cells"] = []
        for key in _order_cells(base, ours, theirs):
            if key in ours and key in theirs:
                cell = self._merge_cell(key[0], [base.get(key, {}), ours[key], theirs[key]])
            else:
                cell = ours.get(key) or theirs[key]
                if key in base:
                    self.conflicts.append(
                        f"cell {key[0]} was changed by one side and removed by the other: it stays"
                    )
            merged["cells"].append(cell)
        return merged

    def _merge_cell(self, name: str, versions: Sequence[Cell]) -> Cell:
        where = f"cell {name}"
        other_values = [
            {k: v for k, v in c.items() if k not in ("source", "metadata")} for c in versions
        ]
        metadata = [as_dict(cell.get("metadata")) for cell in versions]
        merged = {
            **self._merge_objects(other_values, where),
            "metadata": self._merge_objects(metadata, f"{where}, metadata"),
        }
        base, ours, theirs = map(source_of, versions)
        source = _choose_value(base, ours, theirs)
        if source is _CONFLICT:
            source, is_clean = self._merge_text(base, ours, theirs)
            if not is_clean:
                marks = "both sides changed its text: see the marks in it"
                self.conflicts.append(f"{where}: {marks}")
        as_lines = isinstance(versions[1].get("source"), list)
        return {**merged, "source": source.splitlines(keepends=True) if as_lines else source}

    def _merge_objects(self, versions: Sequence[Mapping[str, Any]], where: str) -> dict[str, Any]:
        """Return the merged version of a JSON object; `where` names it in conflicts."""
        merged: dict[str, Any] = {}
        for key in dict.fromkeys((*versions[1], *versions[2])):
            values = [version.get(key, _MISSING) for version in versions]
            value = _choose_value(*values)
            if value is _CONFLICT:
                parts = [{} if value is _MISSING else value for value in values]
                if all(isinstance(part, dict) for part in parts):
                    value = self._merge_objects(parts, f"{where}, {key}")
                else:
                    self.conflicts.append(f"{where}: both sides changed {key!r}: ours stays")
                    value = values[1]
            if value is not _MISSING:
                merged[key] = value
        return merged


def _key_by_id(nb: Mapping[str, Any]) -> Iterator[tuple[Key, Cell]]:
    seen: Counter[str] = Counter()
    for cell in list_cells(nb):
        name = str(cell.get("id", ""))
        seen[name] += 1
        yield (name, seen[name]), cell


def _order_cells(
    base: Mapping[Key, Cell], ours: Mapping[Key, Cell], theirs: Mapping[Key, Cell]
) -> list[Key]:
    """Return the keys of the merged cells, in order: AXYB of the base AB, ours AXB, theirs AYB."""
    base_order, our_order, their_order = (
        [key for key in version if key in base and key in ours and key in theirs]
        for version in (base, ours, theirs)
    )
    # the side that moved cells gives the order; the cells of the other one are inserted
    lead, other = (theirs, ours) if our_order == base_order != their_order else (ours, theirs)
    order = [key for key in lead if key in other or _stays(key, lead, base)]
    others, known = list(other), {*base, *other}
    for position, key in enumerate(others):
        if key in lead or not _stays(key, other, base):
            continue
        # the cell comes below the nearest cell above it that is in the merged order, too
        above = next((k for k in reversed(others[:position]) if k in order), None)
        index = order.index(above) + 1 if above is not None else 0
        while lead is ours and index < len(order) and order[index] not in known:
            index += 1  # what ours added here comes first
        order.insert(index, key)
    return order


def _stays(key: Key, side: Mapping[Key, Cell], base: Mapping[Key, Cell]) -> bool:
    """Return whether a cell that only one side has stays: that side added or changed it."""
    return key not in base or _authored_parts(side[key]) != _authored_parts(base[key])


def _authored_parts(cell: Cell) -> list[Any]:
    """Return the parts of a cell that people write, not execution."""
    return [cell.get("cell_type"), source_of(cell), cell.get("metadata"), cell.get("attachments")]


def _choose_value(base: Any, ours: Any, theirs: Any) -> Any:
    """Return the value of the side that changed it; `_CONFLICT` if both changed it differently."""
    if theirs in (ours, base):
        return ours
    return theirs if ours == base else _CONFLICT
