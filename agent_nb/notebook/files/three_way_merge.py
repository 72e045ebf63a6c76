"""Making three versions of a notebook agree on what execution wrote, so that git merges the rest.

Why: outputs, records and execution counts are one result; mixed lines of two results would be a
notebook that nobody has run.

Rules
- The runs of both sides stay, except those that one side has removed; so do signatures and the
  marks of forgotten runs.
- What a cell shows (outputs, count, times) comes whole from the side that changed it. If both did:
  from the side whose earlier cell of the same conversation stays, because it answers that one; else
  from the side with the newest run of it, else from the one that changed its text, else ours.
- What execution writes about the whole notebook comes from the side that changed it, ours if both
  did.
- Cells are matched by id; a cell whose id stands twice is left to git.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ...record import (
    METADATA_KEY,
    Cell,
    CellRecords,
    NotebookRuns,
    Record,
    Runs,
    cell_id,
    read_start_time,
    source_of,
)
from ...record import list_cells as all_cells

TIMES = "execution"  # in the metadata of a cell
ABOUT = ("language_info", "widgets")  # in the metadata of a notebook


def merge_results(base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Write into the three notebooks the runs, outputs and other results of the merged one."""
    sides = (base, ours, theirs)
    about = [_object(nb, "metadata") for nb in sides]
    runs = [NotebookRuns(nb).by_cell() for nb in sides]
    _, ours_before, theirs_before = (side.get(METADATA_KEY) for side in about)
    merged = NotebookRuns.merge_metadata(ours_before, theirs_before, _three_way(*runs))
    _set(about, METADATA_KEY, merged)
    for key in ABOUT:
        _set(about, key, _either(*(m.get(key) for m in about)))
    for nb in sides:
        NotebookRuns(nb).refer_to_metadata()
    _agree_on_outputs([_by_id(nb) for nb in sides], runs)


def _agree_on_outputs(cells: list[dict[str, Cell]], runs: list[Runs]) -> None:
    # by conversation: whether theirs stayed in its latest cell in which the sides differ
    followed: dict[str, bool] = {}
    for name in cells[1] | cells[2]:
        base, ours, theirs = (found.get(name) for found in cells)
        mine, yours = (_newest(side.get(name, ())) for side in runs[1:])
        conversation = str(mine.get("conversation") or yours.get("conversation") or "")
        later = (
            None
            if read_start_time(mine) == read_start_time(yours)
            else read_start_time(yours) > read_start_time(mine)
        )
        shown = _shown(base, ours, theirs, later=followed.get(conversation, later))
        if conversation and _result(ours) != _result(theirs):
            followed[conversation] = shown is theirs
        _show([cell for cell in (base, ours, theirs) if cell is not None], shown)


def _newest(listed: Sequence[Record]) -> Record:
    """Return the newest run of the agent cell itself, else of its code, else {}."""
    record = CellRecords(listed).newest_first()
    return next((r for r in record if r.get("conversation")), record[0] if record else {})


def _three_way(base: Runs, ours: Runs, theirs: Runs) -> Runs:
    """Return the runs of both sides except those that one side has removed."""
    before, mine, yours = (
        {r["id"] for listed in side.values() for r in listed} for side in (base, ours, theirs)
    )
    gone = before - (mine & yours)
    cells = {cell: [*ours.get(cell, []), *theirs.get(cell, [])] for cell in (*ours, *theirs)}
    versions = {
        cell: {r["id"]: r for r in listed if r["id"] not in gone} for cell, listed in cells.items()
    }
    return {cell: list(by_id.values()) for cell, by_id in versions.items() if by_id}


def _by_id(nb: dict[str, Any]) -> dict[str, Cell]:
    cells = [c for c in all_cells(nb) if c.get("cell_type") == "code" and cell_id(c)]
    count = Counter(map(cell_id, cells))
    return {cell_id(c): c for c in cells if count[cell_id(c)] == 1}


def _shown(
    base: Cell | None, ours: Cell | None, theirs: Cell | None, *, later: bool | None
) -> Cell:
    """Return the version whose outputs stay.

    If both sides changed them, `later` says whether theirs count (None: unknown).
    """
    if ours is None or theirs is None:
        shown = ours if ours is not None else theirs
        assert shown is not None
        return shown
    before, mine, yours = (_result(cell) for cell in (base, ours, theirs))
    if yours in (mine, before) or mine == before:
        return theirs if mine == before else ours
    if later is not None:
        return theirs if later else ours
    return (
        theirs
        if base is not None and source_of(ours) == source_of(base) != source_of(theirs)
        else ours
    )


def _result(cell: Cell | None) -> tuple[Any, ...]:
    """Return what execution wrote into a cell."""
    return (
        (cell.get("outputs"), cell.get("execution_count"), _times(cell)) if cell is not None else ()
    )


def _times(cell: Cell) -> Any:
    return _object(cell, "metadata").get(TIMES)


def _object(parent: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the object at a key; create it if there is none."""
    if not isinstance(parent.get(key), dict):
        parent[key] = {}
    child: dict[str, Any] = parent[key]
    return child


def _show(versions: list[Cell], shown: Cell) -> None:
    outputs, count, times = copy.deepcopy(_result(shown))
    for cell in versions:
        cell["outputs"], cell["execution_count"] = outputs or [], count
        _set([_object(cell, "metadata")], TIMES, times)


def _either(base: Any, ours: Any, theirs: Any) -> Any:
    return theirs if ours == base else ours


def _set(places: list[dict[str, Any]], key: str, value: Any) -> None:
    """Write a value into all places; None removes it."""
    for parent in places:
        if value is None:
            parent.pop(key, None)
        else:
            parent[key] = value
