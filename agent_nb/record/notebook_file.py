"""The recorded runs of a notebook: moved from outputs into its metadata, and kept with their cells.

Why: records in outputs are lost with "clear outputs", and make diffs of outputs long. Every save by
the Jupyter server or our runner calls `NotebookRuns.lift`, and so does `jupyter agent-nb pack`.

Rules
- Lifting twice gives what lifting once gives.
- Records in the file on disk (`previous`) stay: a front end that loaded the notebook earlier must
  not erase a run. The runs of a deleted cell survive one save, because an undo may bring it back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, NamedTuple

from ..wire import as_dict
from .forgotten import erase_forgotten, remove_forgotten
from .ipynb import Notebook, all_outputs, cell_id, list_cells, metadata_of, with_ids
from .metadata import (
    FORGOTTEN,
    Runs,
    build_metadata,
    group_by_cell,
    has_newer_format,
    read_bare_records,
    read_stored_runs,
    read_texts,
    read_whole_records,
)
from .nbdime_conflicts import list_unmerged_records, pop_unmerged_records
from .output_widgets import remove_widget
from .outputs import find_copied_runs, read_published_record, read_published_runs, write_references
from .packing import Payloads
from .ranking import CellRecords, read_start_time
from .record import METADATA_KEY, METADATA_VERSION, RECORD_MIME, Provenance, Record
from .signing import UserKey
from .split_merge import find_leaving_runs, inherit_runs, reassign_runs
from .used_calls import UsedCalls


class CellRecord(NamedTuple):
    """One whole record and the id, as stored, of the cell it belongs to."""

    cell: str
    record: Record


class NotebookRuns:
    """The recorded runs of a notebook: in its metadata, in outputs, or in nbdime's conflicts.

    Cells without an id are named as `with_ids` names them.
    """

    def __init__(self, nb: Notebook) -> None:
        self._nb: Any = nb  # `Any`: methods that change the notebook need a dict
        self._metadata = metadata_of(nb)
        self._ours = self._metadata.get(METADATA_KEY)  # this package's metadata, as stored

    @property
    def newer_format_notice(self) -> str:
        """Why these records cannot be tested, packed or signed, and what to do; "" if they can."""
        if not has_newer_format(self._ours):
            return ""
        version = as_dict(self._ours).get("version")
        return f"a newer agent_nb wrote its records (version {version}; this one knows {METADATA_VERSION}). Nothing in it was changed. Update with: pip install -U jupyter-agent-nb"

    def has_taped_calls(self) -> bool:
        """Return whether any record is a model call of other code."""
        published = (read_published_record(output) for _, output in all_outputs(self._nb))
        stored = (record for _, record in read_bare_records(self._ours))
        return any(as_dict(record).get("tape") for record in (*stored, *published))

    def list_all(self) -> list[CellRecord]:
        """Return all records in the order of the cells, then the records of deleted cells.

        The records of one cell come oldest first; equal records count once.
        """
        nb = with_ids(self._nb)
        by_cell: dict[str, list[Record]] = {cell_id(c): [] for c in list_cells(nb)}
        published = (
            (cell_id(cell), Payloads.attach(record))
            for cell, output in all_outputs(nb)
            if (record := read_published_record(output)) is not None
        )
        stored = read_whole_records(self._ours)
        for cell, record in (*stored, *published, *list_unmerged_records(nb)):
            listed = by_cell.setdefault(cell, [])
            if record not in listed:
                listed.append(record)
        return [
            CellRecord(cell, record)
            for cell, listed in by_cell.items()
            for record in CellRecords(listed).oldest_first()
        ]

    def all_by_cell(self) -> Runs:
        """Return all records by the present id of their cell, oldest first."""
        listed: Runs = {}
        for entry in self.list_all():
            listed.setdefault(entry.cell, []).append(entry.record)
        return reassign_runs(list_cells(with_ids(self._nb)), listed)

    def by_cell(self) -> Runs:
        """Return the runs that are kept (`select_kept`), by the present id of their cell.

        The records of a cell are whole (they contain their payloads) and come newest first.
        """
        nb = with_ids(self._nb)
        lifted = reassign_runs(list_cells(nb), read_stored_runs(self._ours))
        used_ids = self.used_calls().list_ids()
        unmerged = _group_unmerged(list_unmerged_records(nb))
        merged = _merge_runs(lifted, unmerged, read_published_runs(nb), used_ids=used_ids)
        return {cell: listed for cell, listed in merged.items() if listed}

    def used_calls(self) -> UsedCalls:
        """Return which taped calls executions used, by the present id of their cell."""
        nb = with_ids(self._nb)
        return UsedCalls.merge(UsedCalls.find(nb), UsedCalls.read(self._ours, list_cells(nb)))

    def cleared_cells(self) -> list[str]:
        """Return the ids of cells whose outputs were cleared while their records stay."""
        cells = list_cells(with_ids(self._nb))
        runs = reassign_runs(cells, read_stored_runs(self._ours, whole=False))
        return [cell_id(c) for c in cells if cell_id(c) in runs and not c.get("outputs")]

    def lift(self, previous: Any = None) -> bool:
        """Move the records of all outputs into the metadata.

        `previous` is our metadata as the file on disk has it (None: no file, or no value). Return
        False if the notebook holds nothing of ours, has no list of cells, or has metadata of a
        newer format, which stays as it is.
        """
        nb, current = self._nb, self._ours
        if has_newer_format(current) or has_newer_format(previous):
            return False
        if not isinstance(nb.get("cells"), list):
            return False
        nb_with_ids = with_ids(nb)  # shares outputs and metadata with `nb`
        cells = list_cells(nb_with_ids)
        present = {cell_id(c) for c in cells}
        # the records of all sources, without those that the user has forgotten
        unmerged = _group_unmerged(pop_unmerged_records(nb))
        forgotten = erase_forgotten(nb, previous, current)
        saved = reassign_runs(cells, read_stored_runs(previous))
        loaded = reassign_runs(cells, read_stored_runs(current))
        if isinstance(previous, dict):
            # a front end that still holds the runs of a deleted cell must not restore them
            loaded = {cell: listed for cell, listed in loaded.items() if cell in present}
        used = UsedCalls.merge(
            UsedCalls.find(nb_with_ids), *(UsedCalls.read(m, cells) for m in (previous, current))
        )
        merge = partial(_merge_runs, used_ids=used.list_ids())
        runs = merge(saved, loaded, unmerged, read_published_runs(nb_with_ids))
        runs = remove_forgotten(runs, forgotten)
        runs = _follow_cells(nb_with_ids, runs, merge)
        # deleted cells: without the runs of one that this save is the second to miss
        gone = _count_missing_saves(runs, present, current, previous)
        runs = {cell: listed for cell, listed in runs.items() if listed and gone.get(cell, 0) < 2}
        if not runs and not forgotten and current is None:
            return False
        still_gone = {cell: saves for cell, saves in gone.items() if cell in runs}
        used = used.select(runs, present)
        self._write(
            build_metadata(runs, still_gone, forgotten, used, mine=current, previous=previous)
        )
        write_references(nb_with_ids, runs)  # in place of the records in outputs
        return True

    def refer_to_metadata(self) -> None:
        """Replace every record in an output by a reference."""
        write_references(self._nb)

    def remove_widgets(self, going_on: Callable[[str], bool] = lambda run: False) -> int:
        """Remove our widgets, which a fresh kernel does not know; return how many outputs changed.

        The static form of a run stays. While `going_on` returns True for a run id, the live view of
        that run stays too, in a separate output below: a page that is opened then shows both.
        """
        outputs = list(all_outputs(self._nb))
        return sum(remove_widget(cell, output, going_on) for cell, output in outputs)

    def remove_stale_runs(self, executed: Collection[str], since: float) -> None:
        """Remove runs that Python code in a cell began before, but not in this execution.

        These are the runs of `executed` cells whose code began no run after `since` (epoch
        seconds). Taped calls that the other cells used stay.
        """
        if not as_dict(self._ours):
            return
        runs = read_stored_runs(self._ours)
        used = self.used_calls().list_ids(without=executed)
        for cell in runs.keys() & executed:
            begun = (r for r in runs[cell] if r.get("execution"))
            code_runs = [r for r in begun if r.get("conversation") == Provenance.NO_CONVERSATION]
            # a taped call stays if another cell uses it
            if code_runs and all(read_start_time(r) < since for r in code_runs):
                runs[cell] = [r for r in runs[cell] if r not in code_runs or r["id"] in used]
        self._replace_runs({cell: listed for cell, listed in runs.items() if listed})

    def replace(self, known: Runs, dropped: Collection[str]) -> None:
        """Remove the runs with `dropped` ids; their cells get back the `known` runs.

        Of these, `CellRecords.select_kept` chooses.
        """
        if not dropped or not as_dict(self._ours):
            return
        runs, used_ids = read_stored_runs(self._ours), self.used_calls().list_ids()
        for cell, listed in runs.items():
            remaining = [r for r in listed if r["id"] not in dropped]
            if len(remaining) < len(listed):
                ids = {r["id"] for r in remaining}
                restored = [r for r in known.get(cell, ()) if r["id"] not in ids]
                runs[cell] = CellRecords([*remaining, *restored]).select_kept(
                    UserKey.read(), used_ids
                )
        self._replace_runs(runs)

    def strip(self) -> int:
        """Remove our metadata, records and references; return from how many places."""
        count = len(_group_unmerged(pop_unmerged_records(self._nb)))
        count += int(self._metadata.pop(METADATA_KEY, None) is not None)
        self._ours = None
        for _, output in all_outputs(self._nb):
            count += int(as_dict(output.get("data")).pop(RECORD_MIME, None) is not None)
            count += int(metadata_of(output).pop(METADATA_KEY, None) is not None)
        return count

    @staticmethod
    def merge_metadata(ours: Any, theirs: Any, runs: Runs) -> dict[str, Any] | None:
        """Return our metadata of a merged notebook; None if it holds no runs and no marks.

        Signatures, used calls and the marks of forgotten runs come from both sides; fields that
        this version does not know come from `ours`.
        """
        sides = [as_dict(ours), as_dict(theirs)]
        marks = [mark for side in sides for mark in read_texts(side.get(FORGOTTEN))]
        forgotten, gone = list(dict.fromkeys(marks)), sides[0].get("gone") or {}
        used = UsedCalls.merge(*map(UsedCalls.read, sides)).select(runs, runs)
        merged = build_metadata(runs, gone, forgotten, used, mine=ours, previous=theirs)
        return merged if runs or forgotten else None

    def _replace_runs(self, runs: Runs) -> None:
        """Replace the runs in our metadata; the other fields stay."""
        current = as_dict(self._ours)
        gone, forgotten = current.get("gone") or {}, current.get(FORGOTTEN) or []
        used = self.used_calls().select(runs, map(cell_id, list_cells(with_ids(self._nb))))
        self._write(build_metadata(runs, gone, forgotten, used, mine=current, previous=None))

    def _write(self, ours: dict[str, Any]) -> None:
        self._ours = self._metadata[METADATA_KEY] = ours
        self._nb["metadata"] = self._metadata  # a notebook may have come without metadata


def _merge_runs(*sources: Runs, used_ids: Collection[str] = ()) -> Runs:
    """Return the runs of all sources that are kept (`CellRecords.select_kept`), newest first.

    Of records with the same id the last source wins, unless only an earlier record is this user's
    (`_choose_version`). `used_ids`: taped calls that are in use.
    """
    merged: dict[str, dict[str, Record]] = {}
    for source in sources:
        for cell, listed in source.items():
            by_id = merged.setdefault(cell, {})
            for record in listed:
                by_id[record["id"]] = _choose_version(by_id.get(record["id"]), record)
    key = UserKey.read()
    return {
        cell: CellRecords(by_id.values()).select_kept(key, used_ids)
        for cell, by_id in merged.items()
    }


def _follow_cells(nb: Notebook, runs: Runs, merge: Callable[..., Runs]) -> Runs:
    """Return the runs by the cells to which they belong once cells were pasted, split or merged."""
    cells = list_cells(nb)
    runs = merge(runs, find_copied_runs(nb, runs))
    runs = merge(runs, inherit_runs(cells, runs))
    return _remove_leaving(runs, find_leaving_runs(cells, runs))


def _choose_version(earlier: Record | None, later: Record) -> Record:
    """Return the later of two records with the same id, unless only the earlier is this user's."""
    if earlier is None or earlier == later:
        return later
    key = UserKey.read()
    return earlier if key.owns(earlier) and not key.owns(later) else later


def _group_unmerged(records: Iterable[tuple[str, Any]]) -> Runs:
    """Return the readable records of nbdime's conflicts by cell id, without those of no cell."""
    return group_by_cell((cell, record) for cell, record in records if cell)


def _remove_leaving(runs: Runs, leaving: dict[str, set[str]]) -> Runs:
    """Return `runs` without those that cells give up.

    Runs that Python code of a cell began, or that it only followed, stay.
    """
    remaining = dict(runs)
    for cell in leaving.keys() & runs.keys():
        remaining[cell] = [
            run
            for run in runs[cell]
            if run["id"] not in leaving[cell]
            or run.get("conversation") == Provenance.NO_CONVERSATION
        ]
    return remaining


def _count_missing_saves(runs: Runs, present: set[Any], mine: Any, previous: Any) -> dict[str, int]:
    """Return for how many saves each deleted cell with runs has been missing, this one included.

    Only saves over an existing file count. `mine`, `previous`: our metadata in memory, on disk.
    """
    is_over_file = isinstance(previous, dict)
    counts = as_dict(as_dict(previous if is_over_file else mine).get("gone"))
    saves: dict[str, int] = {}
    for cell in runs:
        if cell not in present:
            count = counts.get(cell)
            saves[cell] = (count if isinstance(count, int) else 0) + int(is_over_file)
    return {cell: count for cell, count in saves.items() if count}
