"""The button "Run live" of a replayed cell: run it live in the place of the replay.

A click starts the run long after the cell has ended; it uses the context of the cell, so that its
output lands there. From ipykernel 7.4 on it blocks other cells, as a running cell does. Older
versions would then handle no clicks, so there it blocks nothing.

Rule: a Jupyter server never saves the button. Without a server, the next cell that starts while no
run of the button goes on removes it.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any

from ...errors import AgentStopped
from ...view import RunLiveButton
from ..files.notebook_path import SESSION
from ..notices import print_warning
from .failure import AgentCellError
from .frontend import handles_messages_beside_cells
from .kernel_interrupts import abort_queue
from .publish import publish_display


class RunLive:
    """The button of one replayed cell; make it while that cell runs.

    `go` runs the cell live; `why_busy` returns why it cannot be run now, "" if it can.
    """

    def __init__(
        self, shell: Any, go: Callable[[], Awaitable[None]], why_busy: Callable[[], str]
    ) -> None:
        self._shell, self._go, self._why_busy = shell, go, why_busy
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._task: asyncio.Task[None] | None = None
        self._button: RunLiveButton | None = None

    @property
    def running(self) -> bool:
        """Whether the button's run goes on."""
        return self._task is not None and not self._task.done()

    def offer(self, run: str) -> RunLiveButton:
        """Show the button below the page of `run`; return it."""
        self._button = RunLiveButton(publish_display, self.press, run)
        return self._button

    def press(self) -> None:
        """Start the run unless it runs already; from any thread."""
        self._loop.call_soon_threadsafe(self._begin, context=self._context)

    def _begin(self) -> None:
        """Start the run on the kernel's loop, or warn why it cannot be started."""
        if self.running:
            return
        if why := self._why_busy():
            print_warning(why)
            if self._button is not None:
                self._button.unpress()
            return
        self._task = self._loop.create_task(self._run(), context=self._context)

    async def _run(self) -> None:
        """Run the cell; queued cells wait where the kernel can block them."""
        # ipykernel holds this lock while a cell runs: with it, cells wait for this run
        lock: Any = getattr(getattr(self._shell, "kernel", None), "_main_asyncio_lock", None)
        is_blocking = isinstance(lock, asyncio.Lock) and handles_messages_beside_cells()
        async with lock if is_blocking else nullcontext():
            try:
                await self._go()
            except AgentCellError:
                return  # the cards show it
            except AgentStopped:
                if is_blocking:
                    abort_queue(self._shell.kernel)


def until_next_cell(shell: Any, button: RunLive, close: Callable[[], None]) -> None:
    """Call `close`, which removes the button, when a cell starts while the button runs nothing.

    Do nothing with a Jupyter server: it never saves the button.
    """
    if os.environ.get(SESSION):
        return

    def on_cell(*_: Any) -> None:
        if not button.running:
            shell.events.unregister("pre_run_cell", on_cell)
            close()

    shell.events.register("pre_run_cell", on_cell)
