"""The cards of `await agent_nb.watch(…)` and `await agent_nb.attach(…)` in the cell that awaits.

Why apart from `cell.awaited_run`, which shows the runs of this kernel's agents: here another system
makes the runs. A run that equals its record keeps that record with its times, so that executing a
notebook twice writes the same file.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from ..cell.cell_screen import CellScreen, screen_without_cards
from ..cell.display import Actions
from ..cell.frontend import can_click_now
from ..cell.rerun import rerun_mode
from ..files.library import Library
from ..identity import Cells
from ..notices import make_printable
from ..options import Options
from ..session import find_session
from .cards import Cards, are_equal_but_for_times

DETACHED = "The viewer detached; the run went on."


def source_screen(followed: Any, *, insist: bool = False) -> Any:
    """Return the `agent.display.Screen` of the cell that awaits a source, None outside IPython.

    In a terminal the screen has no cards, unless the caller insists (`insist`).
    """
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is None:
        return None
    if getattr(shell, "kernel", None) is None and not insist:
        return screen_without_cards(shell)
    return AwaitedSource(followed, shell)


class AwaitedSource(CellScreen):
    """The cards of a source that a cell awaits: of its runs so far, and of those to come.

    `followed`: a watch, or a run of a server (`external.followed`).
    """

    shown = True

    def __init__(self, followed: Any, shell: Any) -> None:
        super().__init__(shell)
        self._shell, self._execution_count = shell, shell.execution_count
        session = find_session(shell)
        cells = session.cells if session is not None else Cells()
        library = session.library if session is not None else Library(shell.user_ns)
        # the name of the source stands for the cell's text, by which records are found
        cell = cells.current(shell, "", followed.name)
        self._followed = followed
        self._cards = Cards(
            cell,
            Options(),
            actions=source_actions(followed, self.stop),
            can_click=can_click_now(shell, cell),
            title=lambda: followed.title,
            earlier=[] if rerun_mode("", cell) == "live" else library.rank_records(cell),
            are_same=are_equal_but_for_times if followed.live else operator.eq,
        )
        followed.set_run_callback(self._cards.open)
        for log in followed.logs:
            self._cards.open(log)

    def close(self) -> Callable[[], bool]:
        """Leave static pages and records; return a check of whether this cell still runs."""
        detached = getattr(self._followed, "detached", False)  # a watch cannot be detached from
        detail = print_stop_advice(self._followed) if detached else ""
        for run in self._cards.close(detail):
            self._shell.user_ns["_agent"] = run
        super().close()
        shell, count = self._shell, self._execution_count
        return lambda: bool(shell.execution_count == count)


def source_actions(followed: Any, stop: Callable[[], None]) -> Actions:
    """Return the functions of the buttons: `stop`, and the answers that the source takes."""
    answer = getattr(followed, "answer", None)
    if answer is None:
        return {"stop": stop}
    answers = {"approve": partial(answer, allow=True), "deny": partial(answer, allow=False)}
    return {"stop": stop, **answers}


def print_stop_advice(attached: Any) -> str:
    """Print how to stop a run that the cell has detached from, if the run can be stopped from here.

    Return the detail of the interrupt event that closes the log of the run.
    """
    if attached.stoppable:
        text = f'Detached; the run goes on there. To stop it: await agent_nb.attach("{attached.address}").cancel()'
        sys.stdout.write(make_printable(text) + "\n")
    return DETACHED
