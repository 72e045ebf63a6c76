"""Make three versions of a notebook agree on outputs and records, for the merge of their cells.

Why: outputs, records and execution counts are one result; lines mixed from two results would show a
notebook that has never run. `cell_merge` merges the cells afterwards.

Rules
- The runs of both sides stay, except those that one side has removed and that no execution uses.
- The outputs of a cell come whole from the side that changed them. If both did, the first of these
  that applies decides: the side taken for the last differing cell above in the same conversation;
  the side with the newer run; theirs, if only theirs changed the text of the cell; else ours.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from ...record import (
    METADATA_KEY,
    Cell,
    CellRecords,
    NotebookRuns,
    Record,
    Runs,
    UsedCalls,
    cell_id,
    list_cells,
    read_start_time,
    source_of,
)

TIMES_KEY = "execution"  # in the metadata of a cell: when it ran
EXECUTION_KEYS = ("language_info", "widgets")  # in the metadata of a notebook: by execution


def merge_results(base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Write the runs, outputs and other results of the merged notebook into all three notebooks.

    As all three then agree, the merge of cells finds no conflict in them.
    """
    versions = (base, ours, theirs)
    metadata = [_get_object(nb, "metadata") for nb in versions]
    runs = [NotebookRuns(nb).by_cell() for nb in versions]
    _, our_metadata, their_metadata = (m.get(METADATA_KEY) for m in metadata)
    used = UsedCalls.merge(*map(UsedCalls.read, (our_metadata, their_metadata)))
    # what one side has removed may be in use on the other
    used_ids = used.list_ids() if our_metadata and their_metadata else ()
    merged = NotebookRuns.merge_metadata(
        our_metadata, their_metadata, _merge_runs(*runs, used_ids=used_ids)
    )
    _set_all(metadata, METADATA_KEY, merged)
    for key in EXECUTION_KEYS:
        before, our_value, their_value = (m.get(key) for m in metadata)
        _set_all(metadata, key, their_value if our_value == before else our_value)
    for nb in versions:
        NotebookRuns(nb).refer_to_metadata()
    _agree_on_outputs([_key_by_id(nb) for nb in versions], runs)


def _agree_on_outputs(cells: list[dict[str, Cell]], runs: list[Runs]) -> None:
    """Copy the outputs of the merged notebook into each cell of the three versions."""
    # conversation -> whether theirs was taken for the last cell above in which the sides differ
    took_theirs: dict[str, bool] = {}
    for name in cells[1] | cells[2]:
        base, ours, theirs = (version.get(name) for version in cells)
        our_run, their_run = (_find_newest(side.get(name, ())) for side in runs[1:])
        conversation = str(our_run.get("conversation") or their_run.get("conversation") or "")
        our_start, their_start = read_start_time(our_run), read_start_time(their_run)
        theirs_newer = None if our_start == their_start else their_start > our_start
        shown = _choose_version(
            base, ours, theirs, take_theirs=took_theirs.get(conversation, theirs_newer)
        )
        if conversation and _list_results(ours) != _list_results(theirs):
            took_theirs[conversation] = shown is theirs
        _copy_result([cell for cell in (base, ours, theirs) if cell is not None], shown)


def _find_newest(listed: Sequence[Record]) -> Record:
    """Return the newest run of the agent cell itself, else of its code, else {}."""
    newest_first = CellRecords(listed).newest_first()
    return next(
        (r for r in newest_first if r.get("conversation")), newest_first[0] if newest_first else {}
    )


def _merge_runs(base: Runs, ours: Runs, theirs: Runs, *, used_ids: Collection[str]) -> Runs:
    """Return the runs of both sides; those that one side removed stay only if in `used_ids`."""
    base_ids, our_ids, their_ids = (
        {r["id"] for listed in side.values() for r in listed} for side in (base, ours, theirs)
    )
    removed = base_ids - (our_ids & their_ids) - set(used_ids)
    cells = {cell: [*ours.get(cell, []), *theirs.get(cell, [])] for cell in (*ours, *theirs)}
    versions = {
        cell: {r["id"]: r for r in listed if r["id"] not in removed}
        for cell, listed in cells.items()
    }
    return {cell: list(by_id.values()) for cell, by_id in versions.items() if by_id}


def _key_by_id(nb: dict[str, Any]) -> dict[str, Cell]:
    cells = [c for c in list_cells(nb) if c.get("cell_type") == "code" and cell_id(c)]
    count = Counter(map(cell_id, cells))
    return {cell_id(c): c for c in cells if count[cell_id(c)] == 1}


def _choose_version(
    base: Cell | None, ours: Cell | None, theirs: Cell | None, *, take_theirs: bool | None
) -> Cell:
    """Return the version of a cell whose outputs stay.

    `take_theirs` decides if both sides changed them; None: theirs if only they changed the text.
    """
    if ours is None or theirs is None:
        shown = ours if ours is not None else theirs
        assert shown is not None
        return shown
    base_result, our_result, their_result = (_list_results(cell) for cell in (base, ours, theirs))
    if our_result == base_result:
        return theirs
    if their_result in (our_result, base_result):
        return ours
    if take_theirs is not None:
        return theirs if take_theirs else ours
    if base is not None and source_of(ours) == source_of(base) != source_of(theirs):
        return theirs
    return ours


def _list_results(cell: Cell | None) -> tuple[Any, ...]:
    """Return the parts of a cell that execution wrote: outputs, count and times."""
    if cell is None:
        return ()
    times = _get_object(cell, "metadata").get(TIMES_KEY)
    return cell.get("outputs"), cell.get("execution_count"), times


def _get_object(parent: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the object at a key; create it if there is none."""
    if not isinstance(parent.get(key), dict):
        parent[key] = {}
    child: dict[str, Any] = parent[key]
    return child


def _copy_result(versions: list[Cell], shown: Cell) -> None:
    """Copy the outputs, count and times of `shown` into all versions of the cell."""
    outputs, count, times = copy.deepcopy(_list_results(shown))
    for cell in versions:
        cell["outputs"], cell["execution_count"] = outputs or [], count
        _set_all([_get_object(cell, "metadata")], TIMES_KEY, times)


def _set_all(objects: list[dict[str, Any]], key: str, value: Any) -> None:
    """Write a value into all objects; None removes it."""
    for parent in objects:
        if value is None:
            parent.pop(key, None)
        else:
            parent[key] = value
