"""The screen of a cell that awaits a run of Python code: its interrupts, and no cards.

Why apart from `kernel_interrupts`: such a cell is plain code, in which the kernel's own handlers
receive each press, too.
"""

from __future__ import annotations

import asyncio
import builtins
from typing import Any

from .interrupts import Interrupts
from .kernel_interrupts import Request, find_hooks


class CellScreen:
    """An `agent.display.Screen`: it handles interrupts from `begin` until `close`.

    Both are called on the cell's thread. The kernel's handler receives each press, too, and cancels
    whatever else the cell awaits. `shown`: whether the run has cards, as in subclasses.
    """

    shown = False

    def __init__(self, shell: Any) -> None:
        self._hooks = find_hooks(shell)
        self.interrupts = Interrupts(shell.user_ns, shell.user_global_ns, hand_on=True)

    def begin(self) -> None:
        """Begin to wait; a press just before counts if it has not cancelled anything yet."""
        self.interrupts.__enter__()
        if (request := self._find_request()) is None:
            return
        presses, task = request.begin_wait(), asyncio.current_task()
        if presses and task is not None and not task.cancelling():
            self.interrupts.press()

    @property
    def stopped(self) -> str:
        """The source of the press that stopped the cell, "" if there was none."""
        return self.interrupts.by

    @property
    def abandoned(self) -> bool:
        """Whether a second press abandoned the run."""
        return self.interrupts.abandoned

    def stop(self) -> None:
        """Stop the cell as the Stop button of its cards does; from any thread."""
        self.interrupts.press("stop button")

    def close(self) -> Any:
        """End the wait: the run has ended, or is abandoned."""
        self.interrupts.__exit__()
        if (request := self._find_request()) is not None:
            request.early_presses = 0  # the kernel has handled these presses itself

    def _find_request(self) -> Request | None:
        """Return the request of plain code; None within an agent cell, which has its presses."""
        request = self._hooks.request if self._hooks is not None else None
        return request if request is not None and request.interrupts is None else None


def screen_without_cards(shell: Any) -> CellScreen | None:
    """Return the screen of a running cell, for interrupts only; None where no cell runs."""
    # IPython sets this builtin while a cell runs
    return CellScreen(shell) if hasattr(builtins, "get_ipython") else None
