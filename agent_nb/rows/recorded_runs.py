"""Collects the recorded runs of a notebook, a folder or a glob, for a DataFrame of all of them.

Why: what a project cost, or how two models compare, is spread over many notebooks and cells.

    runs("notebooks/**/*.ipynb").to_frame(RUNS)

Rules
- Runs are in the order of `NotebookRuns.list_all`. Runs with the same id and record hash are copies
  and count once. The id alone does not decide, since imported runs of other systems may share one.
- `Runs.rows` holds the runs of map rows that records contain; `map.known_rows.row_runs` reads those
  in a store.
- An unreadable file raises nothing; it is listed in `problems` as `path: reason`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

from ..agent import Run
from ..events import Event, Place
from ..record import InnerRecords, NotebookRuns, find_notebooks, log_of, read_notebook

if TYPE_CHECKING:
    from ..events import EventFrame


class Runs(Sequence[Run]):
    """Recorded runs, each with its `cell` and `notebook`; a slice is a `Runs` too.

    `problems`: what could not be read, one line each.
    """

    def __init__(self, runs: Iterable[Run] = (), problems: Iterable[str] = ()) -> None:
        self._runs: Sequence[Run] = runs if isinstance(runs, Sequence) else list(runs)
        self.problems = list(problems)

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Runs: ...
    def __getitem__(self, index: int | slice) -> Run | Runs:
        selected = self._runs[index]
        return Runs(selected, self.problems) if isinstance(selected, Sequence) else selected

    def __len__(self) -> int:
        return len(self._runs)

    def __repr__(self) -> str:
        # any other sequence reads its runs from a store, which a repr must not do
        notebooks = {run.notebook for run in self._runs} if isinstance(self._runs, list) else ()
        where = ""
        if any(notebooks) or not self:
            where = f" in {len(notebooks)} notebook{'' if len(notebooks) == 1 else 's'}"
        count = len(self.problems)
        broken = f", {count} problem{'' if count == 1 else 's'}" if count else ""
        return f"<Runs: {len(self)}{where}{broken}>"

    @property
    def rows(self) -> Runs:
        """The runs of map rows, from the records of the maps, each with its cell and notebook.

        The rows of one map are in the order in which they began. Those of a large map are in its
        store, and `MapStream.runs` reads them.
        """
        return Runs(
            Run(log, cell=run.cell, notebook=run.notebook)
            for run in self._runs
            for log in sorted(map(log_of, InnerRecords.of_log(run.log).values()), key=_began)
        )

    def to_frame(self, columns: Any = None) -> EventFrame:
        """Return one frame of all runs, by default one row per event (see `events.frame`)."""
        from ..events import to_frame

        events: list[Event] = []
        places: dict[str, Place] = {}
        for run in self._runs:
            events.extend(run.log)
            places[run.id] = Place(run.cell, run.notebook)
        return to_frame(events, columns, places=places)


def runs(path: str | os.PathLike[str]) -> Runs:
    """Return every recorded run of `path`: a notebook, a folder (recursively) or a glob."""
    recorded: list[Run] = []
    problems: list[str] = []
    seen: set[tuple[str, str]] = set()
    paths = find_notebooks(path)
    if not paths:
        problems.append(f"{path}: no notebook found")
    for file in paths:
        try:
            notebook = read_notebook(file)
        except (OSError, ValueError, RecursionError) as fault:
            problems.append(f"{file}: {fault}")
            continue
        for item in NotebookRuns(notebook).list_all():
            run = Run(log_of(item.record), cell=item.cell, notebook=str(file))
            if not len(run.log):
                problems.append(f"{file}: a record of cell {item.cell or '?'} has no events")
            elif (key := (run.id, str(item.record.get("hash", "")))) not in seen:
                seen.add(key)
                recorded.append(run)
    return Runs(recorded, problems)


def _began(log: Sequence[Event]) -> float:
    return log[0].ts if log else 0.0
