"""The cards of `await agent_nb.watch(…)` and `await agent_nb.attach(…)` in the cell that awaits.

Rules
- The cell runs this code again each time. A run that equals its record keeps that record with its
  times, so that executing a notebook twice writes the same file.
- Stopping the cell detaches and ends it with AgentStopped. If the run goes on at a server and may
  be stopped from here, the cell says how.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from ...events import EventLog
from ..cell.display import Actions
from ..cell.frontend import can_click
from ..cell.kernel_interrupts import Waiting, interrupts_of_cell
from ..cell.rerun import rerun_mode
from ..files.library import Library
from ..identity import Cells
from ..notices import make_printable
from ..options import Options
from .cards import Cards, are_equal, same_but_for_times

DETACHED = "The viewer detached; the run went on."


class Followed(Protocol):
    """A source that a cell follows: a watch, or a run of a server (`attach`).

    `live`: events that bring no time have that of their arrival.
    """

    name: str
    title: str
    logs: list[EventLog]
    live: bool

    def each_run(self, hear: Callable[[EventLog], None]) -> None:
        """Call `hear` with the log of each run that begins from now on."""

    def stop(self) -> None:
        """Stop following, from any thread."""


def source_screen(followed: Any, *, insist: bool = False) -> Any:
    """Return the `agent.display.Screen` of the cell that awaits a `Followed`, None where none does.

    In a terminal it has no cards, unless the caller insists.
    """
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is None:
        return None
    if getattr(shell, "kernel", None) is None and not insist:
        return interrupts_of_cell(shell)
    return AwaitedSource(followed, shell)


class AwaitedSource(Waiting):
    """The cards of a source that a cell awaits."""

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
        self._cards = Cards(
            cell,
            Options(),
            actions=source_actions(followed, self.stop),
            can_click=can_click(shell, cell),
            title=lambda: followed.title,
            known=[] if rerun_mode("", cell) == "live" else library.of(cell),
            same=same_but_for_times if followed.live else are_equal,
        )
        followed.each_run(self._cards.opened)
        for log in followed.logs:
            self._cards.opened(log)

    def close(self) -> Callable[[], bool]:
        """Leave static pages and records; return a test of whether this cell still runs."""
        left = getattr(self._followed, "detached", False)
        for run in self._cards.close(detached=print_stop_advice(self._followed) if left else ""):
            self._shell.user_ns["_agent"] = run
        super().close()
        shell, count = self._shell, self._count
        return lambda: bool(shell.execution_count == count)


def source_actions(followed: Any, stop: Callable[[], None]) -> Actions:
    """Return what the buttons call: `stop`, and the answers if the source takes any."""
    answer = getattr(followed, "answer", None)
    if answer is None:
        return {"stop": stop}
    return {
        "stop": stop,
        "approve": partial(answer, allow=True),
        "deny": partial(answer, allow=False),
    }


def print_stop_advice(attached: Any) -> str:
    """Print how to stop the run that was detached from, if it can be stopped.

    Return the detail of the interrupt that closes its log.
    """
    if attached.stoppable:
        url = f"{attached.where.server}/runs/{attached.log.run}"
        sys.stdout.write(
            make_printable(
                f'Detached; the run goes on there. To stop it: await agent_nb.attach("{url}").cancel()'
            )
            + "\n"
        )
    return DETACHED
