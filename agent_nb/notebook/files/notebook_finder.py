"""Find the file of the notebook that a kernel runs, again and again while it may be renamed.

Why apart from `notebook_path`: the answers there are momentary; a kernel reuses them from cell to
cell.

Rule: the first of these counts: the path that the runner, our environment variable or VS Code
names, while its file exists; a Jupyter server's answer; the path of its session; the only notebook
of the start folder that holds a cell which ran, as long as it holds each cell that runs.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...host import Launch
from ..identity import Cell
from ..runner_options import NO_OPTIONS, RunnerOptions
from .folder_search import FolderSearch
from .notebook_file import read_notebook_file
from .notebook_path import explicit_path, served_path, session_path

FRESH_SECONDS = 5.0  # for which the answer of a Jupyter server is reused
SILENT_SECONDS = 60.0  # before asking again, if no Jupyter server knew this kernel
UNKNOWN = f"The kernel does not know which notebook it runs: if that is recorded, name the file in {Launch.NOTEBOOK}."
AMBIGUOUS = f"The kernel does not know which notebook it runs, for this cell stands in {{names}}: name the file in {Launch.NOTEBOOK}."


class NotebookFinder:
    """Finds the notebook of one kernel; `namespace` is the user's."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self._explicit: Path | None = None  # the path last named to this kernel
        self._served: Path | None = None  # the path that a Jupyter server named last
        self._ask_at = 0.0  # when servers are asked next, by the monotonic clock
        visited = namespace.get("_dh")  # the folders that IPython has visited, the first one first
        start = str(visited[0]) if isinstance(visited, list) and visited else os.curdir
        self._folder = FolderSearch(start)
        self._in_folder: Path | None = None  # the notebook that `search` found
        self._warned = False  # `ambiguity_warning` has returned its warning

    def path(self, options: RunnerOptions = NO_OPTIONS, *, ask: bool = False) -> Path | None:
        """Return the path of the notebook, None if it is unknown.

        `options` are those that the runner sent with the running cell. `ask`: ask servers if the
        last answer is old; without `ask`, they are asked only if the file they named is gone.
        """
        self._explicit = explicit_path(options, self._namespace) or self._explicit
        if self._explicit is not None and self._explicit.is_file():
            return self._explicit
        now = time.monotonic()
        is_renamed = self._served is not None and not self._served.is_file()
        if is_renamed or (ask and now >= self._ask_at):
            self._served = served_path()
            self._ask_at = now + (FRESH_SECONDS if self._served is not None else SILENT_SECONDS)
        return self._served or session_path() or self._in_folder

    def search(self, cell: Cell) -> None:
        """Look for the notebook of a cell in the start folder, unless its path is known."""
        if self.path(cell.runner_options, ask=True) != self._in_folder:
            return
        paths = self._folder.find_holding(cell.text_hash)
        if self._in_folder not in paths:
            self._in_folder = paths[0] if len(paths) == 1 else None

    def advice(self, cell: Cell) -> str:
        """Return advice for the user if the path of a cell's notebook is unknown, else ""."""
        if self.path(cell.runner_options) is not None:
            return ""
        paths = self._find_holders(cell)
        return AMBIGUOUS.format(names=_join_names([p.name for p in paths])) if paths else UNKNOWN

    def ambiguity_warning(self, cell: Cell) -> str:
        """Return a warning, once, that nothing is replayed because several notebooks hold the cell.

        "" if that is not so, or if none of them has a record that could be replayed.
        """
        if self._warned or self.path(cell.runner_options) is not None:
            return ""
        self._warned = any(read_notebook_file(path).runs for path in self._find_holders(cell))
        return f"Nothing is replayed. {self.advice(cell)}" if self._warned else ""

    def _find_holders(self, cell: Cell) -> list[Path]:
        """Return the notebooks of the start folder that hold a cell; a terminal has none."""
        return self._folder.find_holding(cell.text_hash) if cell.kernel else []


def _join_names(names: Sequence[str], most: int = 5) -> str:
    more = [f"{len(names) - most} more"] if len(names) > most else []
    *first, last = [*names[:most], *more]
    return f"{', '.join(first)} and {last}" if first else last
