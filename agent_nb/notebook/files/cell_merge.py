"""Merge three versions of a notebook cell by cell, once their outputs and records agree.

Why not git's line merge: it reports a conflict when two branches each append a cell, because both
change the same place; and its markers make the file unreadable.

Rules
- Cells are in the order of ours, or of theirs if only theirs moved cells. Where both added cells,
  ours come first.
- A cell that one side removed and the other changed stays, as a conflict.
- Conflict markers stand inside a source, so the file always stays a notebook.
- Of other values that both sides changed, ours stays, and the conflict is named.
- Cells are matched by id. A cell without an id gets the id of a cell with the same text in another
  version, else an id made from its text, which is removed afterwards.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ...record import METADATA_KEY, Cell, metadata_of, source_of, with_ids
from ...record import list_cells as all_cells
from ...wire import as_dict

# takes the texts base, ours and theirs; returns the merged text, and whether there was no conflict
MergeText = Callable[[str, str, str], tuple[str, bool]]
Versions = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]  # base, ours, theirs
TEXT_ID = "text-"  # the beginning of the ids that are made from texts
PARTS = ("cells", "metadata", "nbformat", "nbformat_minor")  # merged each in its own way
_MISSING, _CONFLICT = object(), object()  # in place of a value: it is absent, both changed it


def add_ids(versions: Versions) -> None:
    """Give ids, by which cells are matched, to the cells of the three versions that have none."""
    ids_by_text: dict[tuple[str, str, int], str] = {}
    for nb in versions:
        ids_by_text |= {text: cell["id"] for text, cell in _key_by_text(nb) if _has_id(cell)}
    for nb in versions:
        used_ids = {cell["id"] for cell in all_cells(nb) if _has_id(cell)}
        for text, cell in _key_by_text(nb):
            if not _has_id(cell):
                name = ids_by_text.get(text, "")
                hashed = TEXT_ID + hashlib.sha256(repr(text).encode()).hexdigest()[:16]
                cell["id"] = name if name and name not in used_ids else hashed
                used_ids.add(cell["id"])


def remove_ids(nb: Mapping[str, Any]) -> None:
    """Remove the ids that `add_ids` made from texts, and rename the runs of these cells.

    The metadata names a cell without an id by its place in the notebook (`with_ids`).
    """
    with_made_ids = [str(cell["id"]) for cell in all_cells(nb)]
    for cell in all_cells(nb):
        if cell["id"].startswith(TEXT_ID):
            del cell["id"]
    by_place = [str(cell["id"]) for cell in all_cells(with_ids(nb))]
    new_ids = dict(zip(with_made_ids, by_place, strict=True))
    metadata = as_dict(metadata_of(nb).get(METADATA_KEY))
    if runs := as_dict(metadata.get("runs")):
        metadata["runs"] = {new_ids.get(cell, cell): records for cell, records in runs.items()}


def _has_id(cell: Cell) -> bool:
    return isinstance(cell.get("id"), str) and bool(cell["id"])


def _key_by_text(nb: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str, int], Cell]]:
    """Yield each cell after its key: type, source, and number among the cells with the same two."""
    seen: Counter[tuple[str, str]] = Counter()
    for cell in all_cells(nb):
        text = (str(cell.get("cell_type")), source_of(cell))
        seen[text] += 1
        yield (*text, seen[text]), cell


def merge_notebooks(versions: Versions, merge_text: MergeText) -> tuple[dict[str, Any], list[str]]:
    """Return the merged notebook, and a sentence for each conflict.

    The versions agree on records and outputs already (`three_way_merge.merge_results`).
    """
    conflicts: list[str] = []
    other_values = [{k: v for k, v in nb.items() if k not in PARTS} for nb in versions]
    merged: dict[str, Any] = _merge_objects(other_values, "the notebook", conflicts)
    merged["metadata"] = _merge_objects(
        [as_dict(nb.get("metadata")) for nb in versions], "the metadata", conflicts
    )
    for name in ("nbformat", "nbformat_minor"):
        numbers = [nb[name] for nb in versions[1:] if isinstance(nb.get(name), int)]
        merged |= {name: max(numbers)} if numbers else {}
    keyed = [dict(_key_by_id(nb)) for nb in versions]
    _, ours, theirs = keyed
    merged["cells"] = []
    for key in _order_cells(
        *map(list, keyed), changed=lambda key: _must_stay(key, keyed, conflicts)
    ):
        if key in ours and key in theirs:
            cell_versions = [version.get(key, {}) for version in keyed]
            merged["cells"].append(_merge_cell(key[0], cell_versions, merge_text, conflicts))
        else:
            merged["cells"].append(ours.get(key) or theirs[key])
    return merged, conflicts


def _key_by_id(nb: Mapping[str, Any]) -> Iterator[tuple[tuple[str, int], Cell]]:
    """Yield each cell after its key: its id, and its number among the cells with that id."""
    seen: Counter[str] = Counter()
    for cell in all_cells(nb):
        name = str(cell.get("id", ""))
        seen[name] += 1
        yield (name, seen[name]), cell


Key = tuple[str, int]  # see `_key_by_id`


def _must_stay(key: Key, versions: Sequence[Mapping[Key, Cell]], conflicts: list[str]) -> bool:
    """Return whether a cell that one side removed stays: the other changed it. Add a conflict."""
    base, ours, theirs = versions
    remaining = ours.get(key) or theirs[key]
    if _authored_parts(remaining) == _authored_parts(base[key]):
        return False
    conflicts.append(f"cell {key[0]} was changed by one side and removed by the other: it stays")
    return True


def _authored_parts(cell: Cell) -> list[Any]:
    """Return the parts of a cell that people write, not execution."""
    return [cell.get("cell_type"), source_of(cell), cell.get("metadata"), cell.get("attachments")]


def _order_cells(
    base: list[Key], ours: list[Key], theirs: list[Key], *, changed: Callable[[Key], bool]
) -> list[Key]:
    """Return the keys of the merged cells, in order.

    `changed(key)`: whether the other side changed a cell that one side removed, so that it stays.
    """
    common = set(base) & set(ours) & set(theirs)
    first, second, third = ([key for key in side if key in common] for side in (base, ours, theirs))
    # the side that moved cells gives the order; the cells of the other one are inserted
    lead, other = (theirs, ours) if second == first != third else (ours, theirs)
    in_base, in_other, in_lead = set(base), set(other), set(lead)
    order = [key for key in lead if key in in_other or key not in in_base or changed(key)]
    for position, key in enumerate(other):
        if key in in_lead or (key in in_base and not changed(key)):
            continue
        # the cell comes below the nearest cell above it that is in the merged order, too
        above = next((k for k in reversed(other[:position]) if k in order), None)
        at = order.index(above) + 1 if above is not None else 0
        while lead is ours and at < len(order) and order[at] not in in_base | in_other:
            at += 1  # what ours added here comes first
        order.insert(at, key)
    return order


def _merge_cell(
    name: str, versions: Sequence[Cell], merge_text: MergeText, conflicts: list[str]
) -> Cell:
    """Return the merged version of a cell that both sides have."""
    where = f"cell {name}"
    other_values = [
        {k: v for k, v in c.items() if k not in ("source", "metadata")} for c in versions
    ]
    metadata = [as_dict(cell.get("metadata")) for cell in versions]
    merged = {
        **_merge_objects(other_values, where, conflicts),
        "metadata": _merge_objects(metadata, f"{where}, metadata", conflicts),
    }
    base, ours, theirs = map(source_of, versions)
    source = _choose_value(base, ours, theirs)
    if source is _CONFLICT:
        source, clean = merge_text(base, ours, theirs)
        conflicts += [] if clean else [f"{where}: both sides changed its text: see the marks in it"]
    as_lines = isinstance(versions[1].get("source"), list)
    return {**merged, "source": source.splitlines(keepends=True) if as_lines else source}


def _merge_objects(
    versions: Sequence[Mapping[str, Any]], where: str, conflicts: list[str]
) -> dict[str, Any]:
    """Return the merged version of a JSON object; `where` names it in conflicts."""
    merged: dict[str, Any] = {}
    for key in dict.fromkeys((*versions[1], *versions[2])):
        values = [version.get(key, _MISSING) for version in versions]
        value = _choose_value(*values)
        if value is _CONFLICT:
            parts = [{} if value is _MISSING else value for value in values]
            if all(isinstance(part, dict) for part in parts):
                value = _merge_objects(parts, f"{where}, {key}", conflicts)
            else:
                conflicts.append(f"{where}: both sides changed {key!r}: ours stays")
                value = values[1]
        if value is not _MISSING:
            merged[key] = value
    return merged


def _choose_value(base: Any, ours: Any, theirs: Any) -> Any:
    """Return the value of the side that changed it; `_CONFLICT` if both changed it differently."""
    if theirs in (ours, base):
        return ours
    return theirs if ours == base else _CONFLICT
