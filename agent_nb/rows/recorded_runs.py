"""The recorded runs of a notebook, a folder or a glob, for one DataFrame of all of them.

    from agent_nb import RUNS, runs

    runs("notebooks/**/*.ipynb").to_frame(RUNS)

Runs with the same id and record hash are copies of one run. The id alone does not decide, because
imported runs of other systems may share one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

from ..agent import Run
from ..events import Place
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
        text = f"<Runs: {len(self)}"
        if any(notebooks) or not self:
            text += f" in {len(notebooks)} notebook{'' if len(notebooks) == 1 else 's'}"
        if count := len(self.problems):
            text += f", {count} problem{'' if count == 1 else 's'}"
        return f"{text}>"

    @property
    def rows(self) -> Runs:
        """The runs of map rows in these runs' records, each with its cell and notebook.

        The rows of one map are in the order in which they began. Those of a large map are in its
        store, and `MapStream.runs` reads them. `problems` stay with the runs of the maps.
        """
        return Runs(
            Run(log, cell=run.cell, notebook=run.notebook)
            for run in self._runs
            for log in sorted(
                map(log_of, InnerRecords.of_log(run.log).values()),
                key=lambda log: log[0].ts if log else 0.0,
            )
        )

    def to_frame(self, columns: Any = None) -> EventFrame:
        """Return one frame of all runs, by default one row per event (see `events.frame`)."""
        from ..events import to_frame

        recorded = list(self._runs)  # read once, where they come from a store
        events = [event for run in recorded for event in run.log]
        places = {run.id: Place(run.cell, run.notebook) for run in recorded}
        return to_frame(events, columns, places=places)


def runs(path: str | os.PathLike[str]) -> Runs:
    """Return every recorded run of `path`: a notebook, a folder (recursively) or a glob.

    Files are in the order of their paths, the runs of a file in the order of its cells (deleted
    cells last), and those of one cell oldest first. An unreadable file raises nothing: the
    `problems` of the result list it as `path: reason`.
    """
    distinct: dict[tuple[str, str], Run] = {}  # (id, hash of the record) -> run
    paths = find_notebooks(path)
    problems = [] if paths else [f"{path}: no notebook found"]
    for file in paths:
        try:
            notebook = read_notebook(file)
        except (OSError, ValueError, RecursionError) as fault:
            problems.append(f"{file}: {fault}")
            continue
        for item in NotebookRuns(notebook).list_all():
            run = Run(log_of(item.record), cell=item.cell, notebook=str(file))
            if len(run.log):
                distinct.setdefault((run.id, str(item.record.get("hash", ""))), run)
            else:
                problems.append(f"{file}: a record of cell {item.cell or '?'} has no events")
    return Runs(distinct.values(), problems)
