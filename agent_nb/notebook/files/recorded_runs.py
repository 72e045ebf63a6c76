"""The recorded runs of notebooks and event files, and their differences, for the command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
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
    load_notebook,
    log_of,
    user_key,
)
from ...rows import Runs
from .run_diff import Diff, compare_runs


def read_runs(
    paths: Sequence[Path], *, every: bool = False, id_: str = "", row_calls: bool = False
) -> Runs:
    """Return the runs of notebooks and event files whose id begins with `id_`.

    Each cell yields the run that a replay would try first, or with `every` all its runs. With
    `row_calls` a map is followed by the runs of those rows whose calls can run again: nothing else
    shows these calls. Raises UsageError for a file that is neither a notebook nor an event file,
    and, with `row_calls`, for a record with too many calls.
    """
    runs = [run for path in paths for run in _read_file_runs(path, every) if run.id.startswith(id_)]
    return Runs([r for run in runs for r in (run, *(_rows_with_calls(run) if row_calls else ()))])


def _read_file_runs(path: Path, every: bool) -> Iterator[Run]:
    """Yield the runs of a notebook, or the run of an event file."""
    if path.suffix != NOTEBOOK_SUFFIX:
        yield Run(EventLog.of_events(decode(path)), notebook=str(path))
        return
    entries = NotebookRuns(load_notebook(path)).list_all()
    for cell, cell_entries in groupby(entries, key=lambda entry: entry.cell):
        records = [entry.record for entry in cell_entries]
        for record in records if every else CellRecords(records).rank(user_key())[:1]:
            yield Run(log_of(record), cell=cell, notebook=str(path))


def _rows_with_calls(run: Run) -> list[Run]:
    return [
        Run(EventLog.of_events(log_calls.log), cell=run.cell, notebook=run.notebook)
        for log_calls in LogCalls.read_all(run.log)
        if log_calls.rows and log_calls.list_repeatable()
    ]


def compare_notebooks(paths: Sequence[Path]) -> list[Diff]:
    """Return the differences between the runs of two notebooks, cell by cell.

    Of each cell, the runs that a replay would try first are compared. With one notebook, each
    cell's newest run is compared with the run before. Raises UsageError if there is nothing to
    compare, or for more than two notebooks.
    """
    if len(paths) > 2:
        raise UsageError(f"diff compares one notebook or two, not {len(paths)}.")
    if len(paths) == 2:
        pairs = _pair_by_cell(read_runs(paths[:1]), read_runs(paths[1:]))
    else:
        pairs = _pair_newest(read_runs(paths, every=True))
    return [compare_runs(a.log, b.log, cells=(a.cell, b.cell)) for a, b in pairs]


def _pair_by_cell(first: Sequence[Run], second: Sequence[Run]) -> list[tuple[Run, Run]]:
    """Return runs of two notebooks, paired by cell, or by position if no cell has a partner."""
    if not first or not second:
        raise UsageError("There is no recorded run to compare.")
    by_cell = {run.cell: run for run in second if run.cell}
    pairs = [(run, by_cell[run.cell]) for run in first if run.cell in by_cell]
    return pairs or list(zip(first, second, strict=False))


def _pair_newest(runs: Sequence[Run]) -> list[tuple[Run, Run]]:
    """Return the two newest runs of each cell, of `runs` in which the oldest come first."""
    by_cell: dict[str, list[Run]] = {}
    for run in runs:
        by_cell.setdefault(run.cell, []).append(run)
    pairs = [(listed[-2], listed[-1]) for listed in by_cell.values() if len(listed) > 1]
    if not pairs:
        raise UsageError("No cell has two recorded runs to compare. Name a second notebook.")
    return pairs
