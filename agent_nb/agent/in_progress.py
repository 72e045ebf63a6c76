"""A run in progress: iterate it for events, await it for the `Run`, stop it from any thread.

A run of an agent (`stream`), of another system (`external.watched_run`) and of another process
(`external.attached_run`) differ in where their events come from, not in how code uses them.

Rule: one task drives the run, in the event loop that started it. Code in another event loop can
await the run only after its end.
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

# seconds between two looks at whether the user has stopped the cell, of which no event is sent
POLL_INTERVAL = 0.05


class InProgress(Unpicklable, ABC):
    """The base of the three kinds of runs in progress.

    `other_loop_advice`: what to do instead of awaiting the run in a second event loop.
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

    def _finish_unbegun(self) -> None:
        """End a run whose task was cancelled before `_drive` began; nothing by default."""

    async def aclose(self) -> None:
        """Stop the run if its task has not ended, and wait for the end of the task.

        Raises UsageError if it runs in another event loop.
        """
        self._require_same_loop()
        if self._task is not None and not self._task.done():
            self._stop_here()
            await asyncio.wait([self._task])

    def _stop_here(self) -> None:
        """Stop the run, in its event loop."""
        self.stop()

    def _start_task(self, name: str) -> asyncio.Task[None]:
        """Start the task that runs `_drive`, called `name`, on the running event loop."""
        has_begun = False

        async def begin() -> None:
            nonlocal has_begun
            has_begun = True
            await self._drive()

        def end_unbegun(_: asyncio.Task[None]) -> None:
            if not has_begun:  # cancelled before its first step, as by the end of the event loop
                self._finish_unbegun()

        self._task = asyncio.get_running_loop().create_task(begin(), name=name)
        self._task.add_done_callback(end_unbegun)
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
        task: asyncio.Task[Any],
        screen: Screen | None,
        stop: Callable[[str], Any],
        *,
        stops_on_cancel: bool = True,
    ) -> None:
        """Wait until `task` is done. Call `stop` at most once, with the cause in words.

        - If the user stops the cell, call `stop`. The stop button also cancels the waiting code:
          drop that first cancellation. If the user stops the cell again, return at once.
        - If the waiting code is cancelled otherwise, as by a timeout: with `stops_on_cancel`, call
          `stop("")`, and raise the cancellation once the task has ended; else raise it at once.
        - Raise a second cancellation at once.
        """

        def find_cell_stop() -> str:
            return screen.stopped if screen is not None else ""

        if screen is not None:
            screen.begin()
        cancellation: asyncio.CancelledError | None = None  # the first one, if it was not raised
        has_called_stop = False
        interval = POLL_INTERVAL if screen is not None else None
        while not task.done() and not (screen is not None and screen.abandoned):
            cause = find_cell_stop()
            if (cause or cancellation) and not has_called_stop:
                has_called_stop = True
                stop(cause)
            try:
                await asyncio.wait([task], timeout=interval)
            except asyncio.CancelledError as cancelled:
                if cancellation or not (stops_on_cancel or find_cell_stop()):
                    raise
                cancellation = cancelled
        if cancellation and not find_cell_stop():
            raise cancellation
        if cancellation and (waiting := asyncio.current_task()) is not None:
            waiting.uncancel()  # the stop button's: the run has stopped, the waiting code goes on
