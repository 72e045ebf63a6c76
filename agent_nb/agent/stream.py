"""The stream of one run: iterated it gives the events, awaited it gives the run, or raises
RunFailed.

Why apart from the agent: an agent is what a run is made of and holds no state of one; this is the
run that goes on.

Rules
- A run executes once, however many iterate over its stream; a late one gets the stored events first
  and then what comes live.
- A run ends properly whoever reads it: stopped or not, its log ends with `end`.
- A stream lives in the event loop that started it.
- A notebook cell that awaits it ends with AgentStopped when a person stops the cell or the run;
  code that cancels it gets the run.
- A run that ended in an error is an exception for whoever awaits it, unless it was made with
  `check=False`; who iterates sees the events.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING

import anyio
import msgspec

from ..errors import AgentStopped, Cancelled
from ..events import End, Error, Event, RunStart, User
from ..events.completion import ABANDONED, closed, missing
from ..events.log import EventLog
from ..tools.capture import shown
from . import display
from .drift import Played
from .in_progress import InProgress, wait
from .loop import Loop
from .registry import Announced, Questions, announce
from .replay import Player
from .run import Run

if TYPE_CHECKING:
    from ..record.given import Given
    from ..tools.toolset import Toolset
    from .strict import Wish
    from .tape import Tape


class Asked(msgspec.Struct, frozen=True):
    """What one run was asked: the user's words, all that was `given`, the tools it has and whether
    its model is a script; and what plays a tape of it.
    """

    user: User
    given: Given
    tools: Toolset
    scripted: Callable[[], bool]
    player: Callable[[Tape, Wish | None], Callable[[anyio.CancelScope], Player]]


class Refused:
    """Drives a run that may not begin: its log says what was asked and why nothing came of it."""

    def __init__(self, log: EventLog, asked: Asked | None, why: str) -> None:
        self._log, self._asked, self._why = log, asked, why

    async def run(self) -> None:
        """Write the log."""
        said = [self._asked.user] if self._asked else []
        for event in (
            RunStart(),
            *said,
            Error(code="usage", message=self._why),
            End(status="error"),
        ):
            self._log.append(event)

    def cancel(self, why: Cancelled) -> None:
        """It is over at once."""


class Stream(InProgress):
    """One run: iterate it for events (deltas included), await it for the `Run`. `make` makes what
    drives it, in its cancel scope.

    `questions` are those that may be answered from elsewhere, by whoever follows the run
    (`published`); `view`: how a cell that awaits it shows it (`showing`); `check`: awaiting a run
    that ended in an error raises RunFailed; `asked`: what was asked, where a notebook may keep a
    record of the run or play one in its place.
    """

    def __init__(
        self,
        log: EventLog,
        make: Callable[[anyio.CancelScope], Loop | Player | Refused],
        questions: Questions | None = None,
        *,
        view: str | None = None,
        check: bool = True,
        asked: Asked | None = None,
    ) -> None:
        super().__init__("call the agent again")
        self.log = log
        self.asked = asked
        self.kept: display.Kept | None = None
        self._check = check
        self.run = Run(log)
        self.questions = questions or Questions()
        self._announced: Announced | None = None
        self._view = view
        self._make = make
        self._driver: Loop | Player | Refused | None = None
        self._stop: Cancelled | None = None
        self._stopped = ""  # how a person who is not in the cell stopped it

    def start(self) -> Stream:
        """Begin the run on the running event loop, once; return the stream. Raises UsageError when
        it goes on in another loop.
        """
        self._same_loop()
        if self._task is None:
            self.kept = self.kept or display.begun(self)
            self._announced = announce(
                self.log, questions=self.questions, cancel=self._stop_from_elsewhere
            )
            self._begin(f"agent run {self.log.run}")
        return self

    def _stop_from_elsewhere(self) -> None:
        self._stopped = "from elsewhere"
        self.stop()

    def stop(self, detail: str = "stopped from elsewhere") -> None:
        """Stop the run as `cancel` does, from any thread."""
        self._call_soon(self.cancel, "user", detail)

    def cancel(self, reason: str = "user", detail: str = "") -> None:
        """Stop the run; call it on the event loop's thread. What there is is kept and the log ends
        with `interrupt` and `end`.
        """
        self._stop = self._stop or Cancelled(reason, detail)
        if self._driver is not None:
            self._driver.cancel(self._stop)

    async def aclose(self) -> None:
        """Stop the run and wait until its log has ended."""
        if self._task is None:
            return
        self.cancel()
        await asyncio.wait([self._task])

    def play(self, tape: Tape, wish: Wish) -> None:
        """Play a recorded run in the place of this one, which has not begun; it is looked at as
        `wish` says.
        """
        assert self.asked is not None
        self.log.run = tape.run
        self._make = self.asked.player(tape, wish)

    def refuse(self, why: str) -> None:
        """Let the run, which has not begun, end with an error that says why."""
        self._make = lambda _: Refused(self.log, self.asked, why)

    async def _drive(self) -> None:
        display.enter()
        self._driver = self._make(anyio.CancelScope())
        if self._stop is not None:
            self._driver.cancel(self._stop)
        try:
            await self._driver.run()
        finally:  # its event loop may have been shut down
            for event in missing(self.log):
                self.log.append(event)

    async def _wait(self) -> Run:
        __tracebackhide__ = True
        self._same_loop()
        screen = display.screen(self, self._view)
        try:
            with nullcontext() if screen is None else shown():
                self.start()
            if self.kept is not None and screen is not None and screen.shown:
                self.kept.shown = True
            assert self._task is not None
            await wait(
                self._task, screen, self._cancelled, ends=screen is not None and screen.shown
            )
        finally:
            if screen is not None:
                screen.close()
        if screen is not None and (by := screen.stopped or self._stopped):
            raise AgentStopped(
                by,
                self.run
                if self.log.ended
                else Run(EventLog.of_events(closed(self.log, ABANDONED))),
            )
        return self.run.raise_for_status() if self._check else self.run

    def _cancelled(self, by: str) -> None:
        self.cancel("user", by or "cancelled by the code that awaited it")

    @property
    def played(self) -> Played:
        """What has come so far of a recorded run that is played: the drift, and how to
        go on live.
        """
        return self._driver.played if isinstance(self._driver, Player) else Played(log=self.log)

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield every event: those stored so far, then what comes live, deltas included, until
        `end`.
        """
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
