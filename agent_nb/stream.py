"""The stream of one run: iterated it gives the events, awaited it gives the run.

Why apart from the agent: an agent is what a run is made of and holds no state of one; this is the run that goes on.

Rules
- A run executes once, however many iterate over its stream; a late one gets the stored events first and then what comes live.
- A run ends properly whoever reads it: stopped or not, its log ends with `end`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import suppress
from typing import Any

import anyio

from . import showing
from .errors import Cancelled
from .events import Event
from .log import EventLog
from .loop import Loop
from .published import Announced, Questions, announce
from .replay import Played, Player
from .run import Run

TICK = 0.05  # s; in a cell that waits without end an interrupt would be seen only when something else happens


class Stream:
    """One run: iterate it for events (deltas included), await it for the `Run`. `make` makes what drives it, in its cancel scope.

    `questions` are those that may be answered from elsewhere, by whoever follows the run (`published`); `view`: how a cell that awaits
    it shows it (`showing`).
    """

    def __init__(
        self,
        log: EventLog,
        make: Callable[[anyio.CancelScope], Loop | Player],
        questions: Questions | None = None,
        *,
        view: str | None = None,
    ) -> None:
        self.log = log
        self.run = Run(log)
        self.questions = questions or Questions()
        self._announced: Announced | None = None
        self._view = view
        self._make = make
        self._task: asyncio.Task[None] | None = None
        self._driver: Loop | Player | None = None
        self._stop: Cancelled | None = None

    def start(self) -> Stream:
        """Begin the run on the running event loop, once; return the stream."""
        if self._task is None:
            self._announced = announce(self.log, questions=self.questions, cancel=self.stop)
            self._task = asyncio.get_running_loop().create_task(self._drive(), name=f"agent run {self.log.run}")
        return self

    def stop(self, detail: str = "stopped from elsewhere") -> None:
        """Stop the run as `cancel` does, from any thread."""
        if self._task is not None:
            with suppress(RuntimeError):  # its loop is closed: the run is over
                self._task.get_loop().call_soon_threadsafe(self.cancel, "user", detail)

    def cancel(self, reason: str = "user", detail: str = "") -> None:
        """Stop the run; call it on the event loop's thread. What there is is kept and the log ends with `interrupt` and `end`."""
        self._stop = self._stop or Cancelled(reason, detail)
        if self._driver is not None:
            self._driver.cancel(self._stop)

    async def aclose(self) -> None:
        """Stop the run and wait until its log has ended."""
        if self._task is None:
            return
        self.cancel()
        await asyncio.wait([self._task])

    async def _drive(self) -> None:
        showing.enter()
        self._driver = self._make(anyio.CancelScope())
        if self._stop is not None:
            self._driver.cancel(self._stop)
        await self._driver.run()

    async def _wait(self) -> Run:
        screen = showing.screen(self, self._view)
        try:
            self.start()
            assert self._task is not None
            while not self._task.done():
                await asyncio.wait([self._task], timeout=None if screen is None else TICK)
        except asyncio.CancelledError:
            if screen is not None:  # whoever stops the cell means the run that it shows
                self.cancel("user", "kernel interrupt")
                await self.aclose()
            raise
        finally:
            if screen is not None:
                screen.close()
        return self.run

    def __await__(self) -> Generator[Any, None, Run]:
        return self._wait().__await__()

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield every event: those stored so far, then what comes live, deltas included, until `end`."""
        queue: asyncio.Queue[Event] = asyncio.Queue()
        detach = self.log.subscribe(queue.put_nowait)
        try:
            self.start()
            while True:
                event = await queue.get()
                yield event
                if event.type == "end" and not event.span:
                    return
        finally:
            detach()


class Replay(Stream):
    """A recorded run played again."""

    @property
    def played(self) -> Played:
        """What has come of it so far: the drift, and how to go on live."""
        return self._driver.played if isinstance(self._driver, Player) else Played(log=self.log)
