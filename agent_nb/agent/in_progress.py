"""A run in progress: iterate it for events, await it for the `Run`, stop it from any thread.

Why shared: a run of an agent (`stream`), of another system (`external.watched_run`) and of another
process (`external.attached_run`) differ in where their events come from, not in how code uses them.

Rules
- One task drives the run, in the event loop that started it. Code in another event loop can await
  the run only after its end.
- If the user stops a cell, the run that the cell awaits is stopped. A cancellation that no user
  caused (a timeout) is raised as CancelledError.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import suppress
from typing import Any

from ..errors import UsageError
from ..events import Event
from ..wire import Unpicklable
from .display import Screen, follow_run
from .run import Run

# seconds between two looks of a cell that waits: an untimed await would not notice an interrupt
POLL_INTERVAL = 0.05


class InProgress(Unpicklable, ABC):
    """The base of the three kinds of runs in progress.

    `other_loop_advice`: ends the error raised when this is awaited in a second event loop.
    """

    _instead = "Await it, and send the events of its run: run.log.to_ndjson()."

    def __init__(self, other_loop_advice: str) -> None:
        self._other_loop_advice = other_loop_advice
        self._task: asyncio.Task[None] | None = None

    def __await__(self) -> Generator[Any, None, Run]:
        return self._wait().__await__()

    @abstractmethod
    def __aiter__(self) -> AsyncIterator[Event]:
        """Yield the stored events, then the live ones."""

    @abstractmethod
    def stop(self) -> None:
        """Stop the run, from any thread."""

    @abstractmethod
    async def _wait(self) -> Run:
        """Wait for the end, in a cell with cards; return the run."""

    @abstractmethod
    async def _drive(self) -> None:
        """Carry out the run, in its task."""

    async def aclose(self) -> None:
        """Stop the run if its task goes on, and wait for the end of the task."""
        if self._task is not None and not self._task.done():
            self.stop()
            await asyncio.wait([self._task])

    def _start_task(self, name: str) -> asyncio.Task[None]:
        """Start the task that runs `_drive`, called `name`, on the running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._drive(), name=name)
        return self._task

    def _call_on_loop(self, call: Callable[..., Any], *arguments: Any) -> None:
        """Call `call` on the event loop of the task, from any thread; do nothing without a task."""
        if self._task is not None:
            with suppress(RuntimeError):  # the loop is closed: the run is over
                self._task.get_loop().call_soon_threadsafe(call, *arguments)

    def _require_same_loop(self) -> None:
        """Raise UsageError if the task runs in another event loop than the current one."""
        task = self._task
        if task is None or task.done() or task.get_loop() is asyncio.get_running_loop():
            return
        closed = ", which is closed," if task.get_loop().is_closed() else ""
        raise UsageError(
            f"This run was started in another event loop{closed} and can be awaited only there. Await it where it was started, or {self._other_loop_advice}"
            " here; its `run` holds what has come so far."
        )

    def _find_foreign_screen(self, show: bool | None) -> Screen | None:
        """Return the screen of the cell that awaits this run of another system, or None.

        `show`: True insists on cards, None shows them where possible, False shows none.
        """
        return follow_run(self, show)

    @staticmethod
    async def _wait_for_task(
        task: asyncio.Task[Any], screen: Screen | None, stop: Callable[[str], Any], *, ends: bool
    ) -> None:
        """Wait until `task` is done. `stop` is called at most once, with the cause in words.

        - The user stops the cell: `stop` is called. The first cancellation of the waiting code is
          then the stop button's and is dropped. If the user stops the cell again, return at once.
        - The waiting code is cancelled otherwise, as by a timeout: with `ends`, `stop("")` is
          called, and the cancellation is raised once the task has ended; else it is raised at once.
        - A second cancellation is raised at once.
        """
        if screen is not None:
            screen.begin()
        cancellation, stopping = None, False
        interval = POLL_INTERVAL if screen is not None or ends else None
        while not task.done() and not (screen is not None and screen.abandoned):
            cause = screen.stopped if screen is not None else ""
            if (cause or cancellation is not None) and not stopping:
                stopping = True
                stop(cause)
            try:
                await asyncio.wait([task], timeout=interval)
            except asyncio.CancelledError as cancelled:
                stopped_by_user = screen is not None and screen.stopped
                if cancellation is not None or not (ends or stopped_by_user):
                    raise
                cancellation = cancelled
        if cancellation is not None:
            # the stop button cancelled this waiting task too; the run has stopped, so it may go on
            if screen is None or not screen.stopped:
                raise cancellation
            if (waiting := asyncio.current_task()) is not None:
                waiting.uncancel()
