"""The button "Run live" of a replayed cell: the same prompt and options, asked of the model, in the
place of the replay.

Why apart from the cell's run: it begins when the cell is long over, by a message of the front end.

Rules
- The run happens in the context of its cell, so that what it shows lands there. It holds up other
  cells as a running cell does where clicks are heard nevertheless (ipykernel 7.4); elsewhere the
  kernel stays free, so that they are. Whoever stops it stops the cells that it held up too.
- A press while the conversation is in use starts nothing and says so.
- The page of a replay is static; the button stands below it until it is pressed or the cell runs
  again, and without a Jupyter server, which never saves it, until the next cell runs.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any

from ...errors import AgentStopped
from ...view.run_live import RunLiveButton
from ..files.notebook_path import SESSION
from ..notices import warn
from .failure import AgentCellError
from .frontend import hears_beside_cells
from .kernel_interrupts import abort_queue
from .publish import publish


class RunLive:
    """One button. Make it in the cell; `go` runs the cell live, `busy` says why it cannot be now
    ("": it can).
    """

    def __init__(
        self, shell: Any, go: Callable[[], Awaitable[None]], busy: Callable[[], str]
    ) -> None:
        self._shell, self._go, self._busy = shell, go, busy
        self._loop = asyncio.get_running_loop()
        self._context = contextvars.copy_context()
        self._task: asyncio.Task[None] | None = None
        self._button: RunLiveButton | None = None

    @property
    def going(self) -> bool:
        """Whether its run goes on."""
        return self._task is not None and not self._task.done()

    def offer(self, run: str) -> RunLiveButton:
        """Show the button below the page of `run`; return it."""
        self._button = RunLiveButton(publish, self.press, run)
        return self._button

    def press(self) -> None:
        """Start the run, once; from any thread."""
        self._loop.call_soon_threadsafe(self._begin, context=self._context)

    def _begin(self) -> None:
        if self.going:
            return
        if why := self._busy():
            warn(why)
            if self._button is not None:
                self._button.unpress()
            return
        self._task = self._loop.create_task(self._run(), context=self._context)

    async def _run(self) -> None:
        lock = getattr(getattr(self._shell, "kernel", None), "_main_asyncio_lock", None)
        held = lock if isinstance(lock, asyncio.Lock) and hears_beside_cells() else None
        async with held or nullcontext():
            try:
                await self._go()
            except AgentCellError:
                return  # the cards say it
            except AgentStopped:
                if held:
                    abort_queue(self._shell.kernel)


def until_next_cell(shell: Any, button: RunLive, close: Callable[[], None]) -> None:
    """Call `close` when the next cell starts, unless a Jupyter server takes care of what is saved;
    not while the button's run goes on.
    """
    if os.environ.get(SESSION):
        return

    def begun(*_: Any) -> None:
        if not button.going:
            shell.events.unregister("pre_run_cell", begun)
            close()

    shell.events.register("pre_run_cell", begun)
