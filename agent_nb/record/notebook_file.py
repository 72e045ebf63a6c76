"""Moving records from outputs into the notebook's metadata, and keeping them with their cells.

Why: records in outputs vanish with "clear outputs" and fill the screen of a diff. In the metadata
they stay with their cell. `lift_records` moves them on every save: the Jupyter Server hook, our
runner and `jupyter agent-nb pack` call it.

Rules
- `lift_records` is idempotent, and does not touch a notebook that holds nothing of ours or that a
  newer version wrote.
- Records of the file on disk are kept (`previous`): a front end's stale copy must not erase a run.
  Of each cell the newest three executions stay; no record displaces one that this user has signed
  (`ranking`).
- Runs of a cell that is gone stay for one more save (an undo may bring it back) and are dropped by
  the second; a front end that loaded them before does not bring them back without their cell.
- A pasted cell refers to a run and gets a copy of it. Cells that were split, merged or renumbered:
  see `split_merge`. Forgotten runs: see `forgotten`.
- Signatures by other people (`countersign`) stay as long as the record they are about.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..wire import as_dict
from .forgotten import remove_forgotten, take_forgotten
from .ipynb import Notebook, all_outputs, cell_id, list_cells, metadata_of, with_ids
from .metadata import (
    FORGOTTEN,
    Runs,
    build_metadata,
    has_newer_format,
    is_readable_record,
    stored_runs,
)
from .nbdime_conflicts import list_unmerged_records
from .outputs import find_copied_runs, in_outputs, write_references
from .ranking import CellRecords, read_start_time
from .record import METADATA_KEY, RECORD_MIME, Provenance, Record
from .signing import is_own_record as signed
from .signing import user_key
from .split_merge import find_leaving_runs, inherit_runs, reassign_runs


def lift_records(nb: dict[str, Any], previous: Any = None) -> bool:
    """Move the records of all outputs into the metadata; return whether anything is ours.

    `previous` is `nb.metadata["agent_nb"]` as the file on disk has it (None: no file, or no value).
    """
    metadata = metadata_of(nb)
    mine = metadata.get(METADATA_KEY)
    if (
        has_newer_format(mine)
        or has_newer_format(previous)
        or not isinstance(nb.get("cells"), list)
    ):
        return False
    named = with_ids(nb)  # shares outputs and metadata with `nb`
    listed = list_cells(named)
    present = {cell_id(c) for c in listed}
    aside = _set_aside(nb, take=True)
    forgotten = take_forgotten(nb, previous, mine)
    loaded = {
        cell: runs_of_cell
        for cell, runs_of_cell in reassign_runs(listed, stored_runs(mine)).items()
        if cell in present or not isinstance(previous, dict)
    }
    on_disk = reassign_runs(listed, stored_runs(previous))
    runs = remove_forgotten(_merged(on_disk, loaded, aside, in_outputs(named)), forgotten)
    runs = _merged(runs, find_copied_runs(named, runs))
    runs = _merged(runs, inherit_runs(listed, runs))
    runs = _without_leaving(runs, find_leaving_runs(listed, runs))
    gone = _gone(runs, present, mine, previous)
    runs = {
        cell: runs_of_cell
        for cell, runs_of_cell in runs.items()
        if runs_of_cell and gone.get(cell, 0) < 2
    }
    if not runs and not forgotten and mine is None:
        return False
    still_gone = {cell: saves for cell, saves in gone.items() if cell in runs}
    metadata[METADATA_KEY] = build_metadata(runs, still_gone, forgotten, mine, previous)
    nb["metadata"] = metadata
    write_references(named, runs)
    return True


def drop_unbegun(nb: dict[str, Any], executed: Collection[str], since: float) -> None:
    """Remove stale runs of Python code: of `executed` cells that began none after `since`.

    `since` is in epoch seconds.
    """
    mine = as_dict(metadata_of(nb).get(METADATA_KEY))
    if not mine:
        return
    runs = stored_runs(mine)
    for cell in runs.keys() & executed:
        begun = [
            r
            for r in runs[cell]
            if r.get("execution") and r.get("conversation") == Provenance.NO_CONVERSATION
        ]
        if begun and all(read_start_time(r) < since for r in begun):
            runs[cell] = [r for r in runs[cell] if r not in begun]
    left = {cell: listed for cell, listed in runs.items() if listed}
    nb["metadata"][METADATA_KEY] = build_metadata(
        left, mine.get("gone") or {}, mine.get(FORGOTTEN) or [], mine, None
    )


def replace_runs(nb: dict[str, Any], known: Runs, dropped: Collection[str]) -> None:
    """Remove these runs; their cells have `known` runs again, as far as they are kept."""
    mine = as_dict(nb["metadata"].get(METADATA_KEY))
    if not dropped or not mine:
        return
    runs = stored_runs(mine)
    for cell, listed in runs.items():
        left = [r for r in listed if r["id"] not in dropped]
        if len(left) < len(listed):
            ids = {r["id"] for r in left}
            rest = [r for r in known.get(cell, ()) if r["id"] not in ids]
            runs[cell] = CellRecords([*left, *rest]).select_kept(user_key())
    nb["metadata"][METADATA_KEY] = build_metadata(
        runs, mine.get("gone") or {}, mine.get(FORGOTTEN) or [], mine, None
    )


def group_records(nb: Notebook) -> Runs:
    """Return the whole records of a notebook by their cell, newest first, lifted or not.

    Cells are named as by `with_ids`.
    """
    nb = with_ids(nb)
    lifted = reassign_runs(list_cells(nb), stored_runs(metadata_of(nb).get(METADATA_KEY)))
    merged = _merged(lifted, _set_aside(nb), in_outputs(nb))
    return {cell: listed for cell, listed in merged.items() if listed}


def strip_records(nb: dict[str, Any]) -> int:
    """Remove every record and reference from `nb`; return how many places were cleaned."""
    count = len(_set_aside(nb, take=True)) + int(
        metadata_of(nb).pop(METADATA_KEY, None) is not None
    )
    for _, output in all_outputs(nb):
        count += int(as_dict(output.get("data")).pop(RECORD_MIME, None) is not None)
        count += int(metadata_of(output).pop(METADATA_KEY, None) is not None)
    return count


def find_cleared_cells(nb: Notebook) -> list[str]:
    """Return the ids of cells whose outputs were cleared while their records stay."""
    nb = with_ids(nb)
    runs = reassign_runs(
        list_cells(nb), stored_runs(metadata_of(nb).get(METADATA_KEY), whole=False)
    )
    return [cell_id(c) for c in list_cells(nb) if cell_id(c) in runs and not c.get("outputs")]


def _merged(*sources: Runs) -> Runs:
    """Return the runs of all sources that are kept (`CellRecords.select_kept`), newest first.

    Of records with one id, the last source wins.
    """
    merged: dict[str, dict[str, Record]] = {}
    for source in sources:
        for cell, listed in source.items():
            by_id = merged.setdefault(cell, {})
            for record in listed:
                by_id[record["id"]] = _either(by_id.get(record["id"]), record)
    key = user_key()
    return {cell: CellRecords(by_id.values()).select_kept(key) for cell, by_id in merged.items()}


def _either(one: Record | None, other: Record) -> Record:
    """Return the second of two records of one id, unless only the first is this user's."""
    if one is None or one == other:
        return other
    key = user_key()
    return one if signed(one, key) and not signed(other, key) else other


def _set_aside(nb: Notebook, *, take: bool = False) -> Runs:
    """Return the records that nbdime set aside; with `take`, remove them from there."""
    runs: Runs = {}
    for cell, record in list_unmerged_records(nb, take=take):
        if cell and is_readable_record(record):
            runs.setdefault(cell, []).append(record)
    return runs


def _without_leaving(runs: Runs, left: dict[str, set[str]]) -> Runs:
    """Return the runs without those that cells give up; runs that a cell only followed stay."""
    return {
        cell: [
            r
            for r in listed
            if r["id"] not in left.get(cell, ())
            or r.get("conversation") == Provenance.NO_CONVERSATION
        ]
        for cell, listed in runs.items()
    }


def _gone(runs: Runs, present: set[Any], mine: Any, previous: Any) -> dict[str, int]:
    """Return for how many saves each cell with runs has been gone, this save included.

    Only saves over an existing file count.
    """
    before = previous if isinstance(previous, dict) else as_dict(mine)
    counts = as_dict(before.get("gone"))
    step = 1 if isinstance(previous, dict) else 0
    saves = {cell: counts.get(cell, 0) for cell in runs if cell not in present}
    return {cell: (n if isinstance(n, int) else 0) + step for cell, n in saves.items() if step or n}
