"""The stream of one run: iterate it for the events, await it for the run.

Why separate from the agent: an agent holds no run state; a stream is one run in progress.

Rules
- A run executes once, however many readers iterate its stream. A late reader receives the stored
  events first, then the live ones.
- Read or not, stopped or not, the log of a run ends with `end`.
- A stream belongs to the event loop that started it.
- A notebook cell that awaits it ends with AgentStopped if the user stops the cell or the run; code
  that cancels it receives the run.
- Awaiting a run that ended in an error raises RunFailed, unless it was made with `check=False`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Protocol

import anyio
import msgspec

from ..errors import AgentStopped, Cancelled
from ..events import (
    ABANDONED,
    End,
    Error,
    Event,
    EventLog,
    RunStart,
    User,
    complete_log,
    list_missing_events,
)
from ..tools import OutputCapture
from . import display
from .drift import Played
from .in_progress import InProgress
from .registry import REGISTRY, Announced, Questions
from .replay import Player
from .run import Run
from .typed.output_type import OutputType

if TYPE_CHECKING:
    from ..record import RunInputs
    from ..tools import Toolset
    from .replay_check import ReplayStrictness
    from .tape import Tape


#: Makes the player of a tape; with a wish it compares as strictly as that says.
Play = Callable[["Tape", "ReplayStrictness | None"], Callable[[anyio.CancelScope], "Driver"]]


class RunRequest(msgspec.Struct, frozen=True):
    """The request of one run: message, inputs, tools, whether its model is a script; its player."""

    user: User
    inputs: RunInputs
    tools: Toolset
    scripted: Callable[[], bool]
    player: Play


class Driver(Protocol):
    """What carries out a run: a loop, a player, a map."""

    async def run(self) -> None:
        """Write the log to its end."""

    def cancel(self, why: Cancelled) -> None:
        """Stop."""


class Refused:
    """Drives a run that was refused: its log holds the message and the reason."""

    def __init__(self, log: EventLog, request: RunRequest | None, why: str) -> None:
        self._log, self._request, self._why = log, request, why

    async def run(self) -> None:
        """Write the log."""
        user = [self._request.user] if self._request else []
        for event in (
            RunStart(),
            *user,
            Error(code="usage", message=self._why),
            End(status="error"),
        ):
            self._log.append(event)

    def cancel(self, why: Cancelled) -> None:
        """Do nothing: the run ends at once."""


class Stream(InProgress):
    """One run: iterate it for events (deltas included), await it for the `Run`.

    `make` makes the driver of the run, in its cancel scope. `questions`: questions that followers
    of the run may answer (`registry`). `view`: how a cell that awaits it shows it (`display`).
    `check`: awaiting a failed run raises RunFailed. `request`: set if a notebook may record
    the run or play a record in its place. `output`: the type of its answer. `is_replay`: a
    recorded run is replayed.
    """

    is_map = False  # one run, not a map

    def __init__(
        self,
        log: EventLog,
        make: Callable[[anyio.CancelScope], Driver],
        questions: Questions | None = None,
        *,
        view: str | None = None,
        check: bool = True,
        request: RunRequest | None = None,
        output: OutputType | None = None,
        is_replay: bool = False,
    ) -> None:
        super().__init__("call the agent again")
        self.log = log
        self.request = request
        self.is_replay = is_replay
        self.recorder: display.Recorder | None = None
        self._check = check
        self.run = Run(log, output=output)
        self.questions = questions or Questions()
        self._announced: Announced | None = None
        self._view = view
        self._make = make
        self._screen: display.Screen | None = None
        self._host: display.CellHost | None = None
        self._driver: Driver | None = None
        self._stop: Cancelled | None = None
        self._stopped = ""  # how the run was stopped outside the cell

    def start(self) -> Stream:
        """Start the run on the running event loop, once; return the stream.

        Raises UsageError if it runs in another loop.
        """
        self._same_loop()
        if self._task is None:
            self._host = display.find_host(self._screen)
            self.recorder = self.recorder or display.announce_run(self)
            self._announced = REGISTRY.announce(
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
        """Stop the run, on the event loop's thread.

        The log keeps its events and ends with `interrupt` and `end`.
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

    def play(self, tape: Tape, wish: ReplayStrictness | None) -> None:
        """Play a recorded run instead of this one, which has not begun; `wish`: how strictly."""
        assert self.request is not None
        self.log.run = tape.run
        self._make = self.request.player(tape, wish)

    def refuse(self, why: str) -> None:
        """End the run, which has not begun, with an error that gives the reason."""
        self._make = lambda _: Refused(self.log, self.request, why)

    async def _drive(self) -> None:
        display.enter_run(self._host)
        self._driver = self._make(anyio.CancelScope())
        if self._stop is not None:
            self._driver.cancel(self._stop)
        try:
            await self._driver.run()
        finally:  # even if its event loop was shut down
            for event in list_missing_events(self.log):
                self.log.append(event)
            if self._host is not None:
                self._host.close()

    async def _wait(self) -> Run:
        __tracebackhide__ = True
        self._same_loop()
        screen = self._screen = self._find_screen(self._view)
        try:
            with nullcontext() if screen is None else OutputCapture.mark_shown():
                self.start()
            if self.recorder is not None and screen is not None and screen.shown:
                self.recorder.leave_to_cards()
            assert self._task is not None
            await self._wait_for(
                self._task, screen, self._cancelled, ends=screen is not None and screen.shown
            )
        finally:
            if screen is not None:
                screen.close()
        if screen is not None and (by := screen.stopped or self._stopped):
            raise self._stopped_by(by)
        return self.run.raise_for_status() if self._check else self.run

    def _find_screen(self, view: str | None) -> display.Screen | None:
        """Return the screen of the cell that awaits this run here; see `display.find_screen`."""
        return display.find_screen(self, view)

    def _stopped_by(self, by: str) -> AgentStopped:
        """Return the end of a cell that was stopped; a run that goes on counts as abandoned."""
        if self.log.ended:
            return AgentStopped(by, self.run)
        log = EventLog.of_events(complete_log(self.log, ABANDONED))
        return AgentStopped(by, Run(log, output=self.run.type))

    def _cancelled(self, by: str) -> None:
        self.cancel("user", by or "cancelled by the code that awaited it")

    @property
    def played(self) -> Played:
        """The outcome so far of a recorded run that is played."""
        return self._driver.played if isinstance(self._driver, Player) else Played(log=self.log)

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield every event until `end`: the stored ones, then the live ones, deltas included."""
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
