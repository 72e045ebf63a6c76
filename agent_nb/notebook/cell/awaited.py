"""The cards of `await agent_nb.watch(…)` and `await agent_nb.attach(…)` in the cell that awaits.

Rules
- What a cell awaits is code and runs again. A run that says what it said before keeps its record
  and its times, so that executing a notebook twice gives the same file.
- Stopping detaches, and ends the cell with AgentStopped; a run of a server that goes on there, and
  that may be stopped from here, is said to be so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from ...events.log import EventLog
from ..files.library import Library
from ..notices import printable
from ..options import Options
from .frontend import can_click
from .identity import Cells
from .kernel_interrupts import Waiting, waiting
from .rerun import mode
from .screen import Screen, same, same_but_for_times

DETACHED = "The viewer detached; the run went on."


class Followed(Protocol):
    """What is followed: a watch, or a run of a server of ours. `live`: its times are those of
    arrival.
    """

    name: str
    title: str
    logs: list[EventLog]
    live: bool
    on_run: Callable[[EventLog], None]

    def stop(self) -> None:
        """Stop following, from any thread."""


def screen(followed: Any, *, insist: bool = False) -> Any:
    """Return what shows a `Followed` in the notebook cell that awaits it; without a notebook
    (unless one insists) it has no cards.
    """
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is None:
        return None
    if getattr(shell, "kernel", None) is None and not insist:
        return waiting(shell)
    return Awaited(followed, shell)


class Awaited(Waiting):
    """The cards of what a cell awaits; `close` leaves them and returns whether that cell still
    runs, as a function.
    """

    shown = True

    def __init__(self, followed: Followed, shell: Any) -> None:
        super().__init__(shell)
        self._shell, self._count = shell, shell.execution_count
        ours = shell.magics_manager.registry.get("AgentMagics")
        cells, library = (
            (ours.session.cells, ours.session.library)
            if ours is not None
            else (Cells(), Library(shell.user_ns))
        )
        cell = cells.current(shell, "", followed.name)
        self._followed = followed
        buttons, clicks = actions(followed, self.stop), can_click(shell, cell)
        self._screen = Screen(
            cell, Options(), actions=buttons, clicks=clicks, title=lambda: followed.title
        )
        self._screen.known = [] if mode("", cell) == "live" else library.of(cell)
        self._screen.same = same_but_for_times if followed.live else same
        followed.on_run = self._screen.opened
        for log in followed.logs:
            self._screen.opened(log)

    def close(self) -> Callable[[], bool]:
        """Swap the views for static ones."""
        if getattr(self._followed, "detached", False):
            self._screen.detached = leave(self._followed)
        for run in self._screen.close():
            self._shell.user_ns["_agent"] = run
        super().close()
        shell, count = self._shell, self._count
        return lambda: bool(shell.execution_count == count)


def actions(followed: Any, stop: Callable[[], None]) -> Mapping[str, Callable[..., None]]:
    """Return what the buttons of the cards call: `stop`, and the answers where the run can be
    answered from here.
    """
    answer = getattr(followed, "answer", None)
    found: dict[str, Callable[..., None]] = {"stop": stop}
    return (
        found
        if answer is None
        else {**found, "approve": partial(answer, allow=True), "deny": partial(answer, allow=False)}
    )


def leave(attached: Any) -> str:
    """Say how to stop a run that was detached from, where that is possible; return what the log
    says.
    """
    if attached.stoppable:
        url = f"{attached.where.server}/runs/{attached.log.run}"
        sys.stdout.write(
            printable(
                f'Detached; the run goes on there. To stop it: await agent_nb.attach("{url}").cancel()'
            )
            + "\n"
        )
    return DETACHED
