"""The cell execution that a run of Python code belongs to, wherever the run is started.

Why: such a run is recorded with the cell that began it. One cell may ask the same thing twice, so a
record is found again by its number among the runs of the execution.

Rule: the execution is a context variable, which tasks and `asyncio.to_thread` inherit. A thread
belongs to the execution that started it, else to the cell that runs or ran last; without the
extension, the request that the kernel handles identifies the cell.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from ...events import new_run_id
from ...host import Inherited
from ...record import agent_cell
from ..files.library import Library
from ..identity import Cell, Cells, current_request
from .capture import is_capturing
from .publish import is_captured

_EVENT = "pre_run_cell"


class Execution:
    """One execution of a cell; its runs are recorded with its `id`."""

    def __init__(self, cell: Cell) -> None:
        self.id = new_run_id()
        self.cell = cell
        self.played: set[str] = set()  # the ids of the recorded runs that were replayed
        self.lock = threading.Lock()  # guards `played` and the count of runs
        self._runs = 0

    def count_run(self) -> int:
        """Count a run that begins now and return its number; the first is 1."""
        with self.lock:
            self._runs += 1
            return self._runs


_current: Inherited[Execution] = Inherited("agent_nb_execution")


class Executions:
    """The executions of one shell. `latest` is the one that runs now or ran last.

    `library` keeps the records where the extension, whose session has a library, is not loaded.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = weakref.ref(shell)
        self._cells = Cells()
        self._request = ""  # the id of the request that `latest` was made for, without our hook
        self.latest: Execution | None = None
        self.library = Library(shell.user_ns)

    def begin(self, info: Any = None) -> None:
        """Begin an execution: a cell's code is about to run (IPython's event `pre_run_cell`)."""
        if not is_capturing() and not is_captured():
            self.latest = self._make_execution(
                str(getattr(info, "raw_cell", "") or current_request(self._shell())[1])
            )
            _current.set(self.latest)

    def current(self) -> Execution:
        """Return the execution that the running code belongs to."""
        execution = _current.get()
        if execution is not None:
            return execution
        request, code = current_request(self._shell())
        if self.latest is None or (request != self._request and not self.has_hook()):
            self.latest, self._request = self._make_execution(code), request
        return self.latest

    def has_hook(self) -> bool:
        """Return whether IPython calls `begin` before each cell, which keeps `latest` current."""
        shell = self._shell()
        return shell is not None and self.begin in shell.events.callbacks.get(_EVENT, ())

    def _make_execution(self, text: str) -> Execution:
        """Return an execution of the running cell, whose code is `text`."""
        line, body = agent_cell(text) or ("", text)
        return Execution(self._cells.current(self._shell(), line, body))


# shell -> the function that stops new threads from inheriting its executions
_end_inheritance: weakref.WeakKeyDictionary[Any, Callable[[], None]] = weakref.WeakKeyDictionary()
_by_shell: weakref.WeakKeyDictionary[Any, Executions] = weakref.WeakKeyDictionary()


def executions_of(shell: Any) -> Executions:
    """Return the executions of a shell; from any thread, so that all get the same ones."""
    existing = _by_shell.get(shell)
    return existing if existing is not None else _by_shell.setdefault(shell, Executions(shell))


def install_executions(shell: Any) -> None:
    """Note each cell that the shell runs from now on; installing twice changes nothing."""
    executions = executions_of(shell)
    if not executions.has_hook():
        _end_inheritance[shell] = _current.reach_threads()
        shell.events.register(_EVENT, executions.begin)
        executions.begin()  # the running cell began before the hook


def uninstall_executions(shell: Any) -> None:
    """Remove the hooks of `install_executions`."""
    executions = executions_of(shell)
    _end_inheritance.pop(shell, lambda: None)()
    if executions.has_hook():
        shell.events.unregister(_EVENT, executions.begin)
