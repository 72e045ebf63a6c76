"""In a test, refuse the hosts that a notebook must not ask; a cell that asks such a host fails.

Why: a test that asks a model costs money, and proves nothing. The guard works without the
extension, which a notebook need not load.

Rules
- Hosts of models are refused in every notebook, and once a tape is on (it records model calls of
  other libraries) every host but this machine. A child process is held to this only as far as it
  reads the variables of proxies.
- Hosts that the project allows come with the options of our runner, so a notebook can allow none.
"""

from __future__ import annotations

import weakref
from contextvars import copy_context
from typing import Any

from ...events import new_run_id
from ...record import METADATA_KEY
from ...tape import HostWatch
from ...wire import as_list
from ..identity import Cell, Cells
from .publish import is_captured, publish_display


class HostGuard:
    """The guard of one shell; `watch` sees the look-ups."""

    def __init__(self, shell: Any) -> None:
        self.watch = HostWatch(self._list_allowed, models_only=True)
        self._shell = weakref.ref(shell)
        self._cells = Cells()
        self._proxy = ""  # the address of a proxy that refuses what child processes ask, or ""
        self._begin_cell()
        shell.events.register("pre_run_cell", self._begin_cell)
        shell.events.register("post_run_cell", self._end_cell)
        self.watch.start()

    def refuse_all(self, proxy: str) -> None:
        """Refuse every host but this machine, and point child processes to a proxy, for good."""
        self.watch.models_only = False
        # start anew, above wrappers that other code has made meanwhile: they would hide look-ups
        self.watch.stop()
        self.watch.start()
        self._proxy = proxy
        self._begin_cell()

    def _list_allowed(self) -> frozenset[str]:
        return frozenset(map(str, as_list(self._find_cell().runner_options.get("allowed_hosts"))))

    def _find_cell(self) -> Cell:
        # the context of `_begin_cell`, since a thread has another; here, not there, since most
        # cells of a test ask no host
        return self._context.copy().run(self._cells.current, self._shell(), "", "")

    def _begin_cell(self, _: Any = None) -> None:
        self._context = copy_context()  # it holds the kernel's request, which identifies the cell
        if self._proxy:
            self.watch.lead_to_proxy(self._proxy)

    def _end_cell(self, _: Any = None) -> None:
        if not is_captured() and (contacts := self.watch.take_contacts()):
            publish_errors(self._find_cell(), [contact.refusal for contact in contacts])


_guards: weakref.WeakKeyDictionary[Any, HostGuard] = weakref.WeakKeyDictionary()


def guard_hosts(shell: Any) -> HostGuard:
    """Return the guard of a shell, which refuses from its first use on."""
    if shell not in _guards:
        _guards[shell] = HostGuard(shell)
    return _guards[shell]


def publish_errors(cell: Cell, errors: list[str]) -> None:
    """Make a cell fail in a test, also where its code catches the errors.

    Each error becomes an empty output with the facts of a failed run, which our runner reads.
    """
    from .summary import VERSION  # not above: most kernels report no error

    for number, error in enumerate(errors, 1):
        facts = {"version": VERSION, "run": new_run_id(), "recorded": False, "ordinal": number}
        facts |= {"error": error, "cell_id": cell.id}
        publish_display({"text/plain": ""}, {METADATA_KEY: facts}, {}, False)
