"""The recorded runs of notebooks and event files, and their differences, for the command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest
from pathlib import Path

from ...agent import Run
from ...codecs import decode
from ...errors import UsageError
from ...events import EventLog
from ...record import (
    NOTEBOOK_SUFFIX,
    CellRecords,
    LogCalls,
    NotebookRuns,
    Record,
    UserKey,
    load_notebook,
    log_of,
)
from ...rows import Runs
from .run_diff import Diff, compare_runs


def read_runs(
    paths: Sequence[Path], *, every: bool = False, id_: str = "", row_calls: bool = False
) -> Runs:
    """Return the runs of notebooks and event files whose id begins with `id_`.

    Each cell yields the run that a replay would try first, or all model calls of other code that
    its newest execution used; with `every` all its runs. With `row_calls` a map is followed by the
    runs of those rows whose calls can run again: nothing else shows these calls. Raises UsageError
    for a file that is neither a notebook nor an event file, and, with `row_calls`, for a record
    with too many calls.
    """
    runs = [run for path in paths for run in _read_file_runs(path, every) if run.id.startswith(id_)]
    return Runs([r for run in runs for r in (run, *(_rows_with_calls(run) if row_calls else ()))])


def _read_file_runs(path: Path, every: bool) -> Iterator[Run]:
    """Yield the runs of a notebook, or the run of an event file."""
    if path.suffix != NOTEBOOK_SUFFIX:
        yield Run(EventLog.of_events(decode(path)), notebook=str(path))
        return
    for cell, records, used in _read_cells(path):
        for record in records if every else _choose_first(records, used[0]):
            yield Run(log_of(record), cell=cell, notebook=str(path))


def _read_cells(path: Path) -> Iterator[tuple[str, CellRecords, Sequence[Sequence[str]]]]:
    """Yield the id of each cell with runs, its records, and the calls of two executions.

    These are the ids of the taped calls that its newest execution and the one before used.
    """
    nb = NotebookRuns(load_notebook(path))
    used_calls = nb.used_calls()
    for cell, entries in groupby(nb.list_all(), key=lambda entry: entry.cell):
        used = [*used_calls.get(cell, ()), (), ()]
        yield cell, CellRecords(entry.record for entry in entries), used[:2]


def _choose_first(records: CellRecords, used: Sequence[str]) -> list[Record]:
    """Return what a replay would try first: a run, or all calls that code has made (`used`)."""
    first = records.rank(UserKey.read())[:1]
    taped = [r for r in records.newest_execution(used) if r.get("tape")]
    return taped if first[0].get("tape") and (used or first[0] in taped) else first


def _rows_with_calls(run: Run) -> list[Run]:
    return [
        Run(EventLog.of_events(log_calls.log), cell=run.cell, notebook=run.notebook)
        for log_calls in LogCalls.read_all(run.log)
        if log_calls.rows and log_calls.list_repeatable()
    ]


def compare_notebooks(paths: Sequence[Path]) -> list[Diff]:
    """Return the differences between the runs of two notebooks, cell by cell.

    Of each cell, the runs of the newest execution are compared, in their order. With one notebook,
    they are compared with those of the execution before. Raises UsageError if there is nothing to
    compare, or for more than two notebooks.
    """
    if len(paths) > 2:
        raise UsageError(f"diff compares one notebook or two, not {len(paths)}.")
    sides = [list(_read_executions(path, earlier=len(paths) == 1)) for path in paths]
    pairs = _pair_by_cell(*sides) if len(sides) == 2 else _pair_newest(*sides)
    return [
        compare_runs(
            () if a is None else a.log,
            () if b is None else b.log,
            cells=("" if a is None else a.cell, "" if b is None else b.cell),
        )
        for before, now in pairs
        for a, b in zip_longest(before, now)
    ]


_Executions = tuple[Sequence[Run], Sequence[Run]]  # the runs of two executions of cells


def _read_executions(path: Path, *, earlier: bool) -> Iterator[_Executions]:
    """Yield the runs of each cell's newest execution and, if `earlier`, of the one before."""
    if path.suffix != NOTEBOOK_SUFFIX:
        yield list(_read_file_runs(path, every=True)), ()
        return
    for cell, records, used in _read_cells(path):
        newest = records.newest_execution(used[0])
        rest = CellRecords(r for r in records if r not in newest or r.get("id") in used[1])
        both = (newest, rest.newest_execution(used[1]) if earlier else [])
        one, other = ([Run(log_of(r), cell=cell, notebook=str(path)) for r in e] for e in both)
        yield one, other


def _pair_by_cell(first: list[_Executions], second: list[_Executions]) -> list[_Executions]:
    """Return the newest executions, paired by cell, or by position if no cell has a partner."""
    if not first or not second:
        raise UsageError("There is no recorded run to compare.")
    by_cell = {newest[0].cell: newest for newest, _ in second if newest[0].cell}
    pairs = [(runs, by_cell[runs[0].cell]) for runs, _ in first if runs[0].cell in by_cell]
    return pairs or [(one, other) for (one, _), (other, _) in zip(first, second, strict=False)]


def _pair_newest(executions: list[_Executions]) -> list[_Executions]:
    """Return the two newest executions of each cell, the older one first."""
    pairs = [(before, newest) for newest, before in executions if before]
    if not pairs:
        raise UsageError("No cell has two recorded runs to compare. Name a second notebook.")
    return pairs
