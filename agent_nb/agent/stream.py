"""The stream of one run: iterate it for the events, await it for the run.

Rules
- A run executes once, however many readers iterate its stream. The log of a run that started ends
  with `end`, even if nobody reads it or the run is stopped.
- If the user stops a cell that awaits a run, or stops its run from elsewhere (another cell, a
  server), the cell ends with AgentStopped. After `stop` and `cancel`, awaiting returns the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Protocol

import anyio
import msgspec

from ..errors import AgentStopped, Cancelled, UsageError
from ..events import (
    ABANDONED,
    End,
    Error,
    Event,
    EventLog,
    Result,
    RunStart,
    User,
    complete_log,
    list_missing_events,
)
from ..models import collect_secrets
from ..tools import OutputCapture
from ..wire import Redaction
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
    from .recorded_turns import RecordedTurns
    from .replay_check import ReplayStrictness


#: Makes the driver of a run, which works in the given cancel scope.
DriverFactory = Callable[[anyio.CancelScope], "Driver"]
#: Returns what makes the driver of a replay of recorded turns. Also takes how strictly a test
#: compares (None: as in any replay).
PlayerFactory = Callable[["RecordedTurns", "ReplayStrictness | None"], DriverFactory]


class RunRequest(msgspec.Struct, frozen=True):
    """What a notebook needs to record a run, or to play a record in its place.

    `user`: the event of the prompt. `inputs`: what the record of the run is found by. `tools`:
    those of the run. `is_scripted`: whether the model is a script, which runs even offline.
    """

    user: User
    inputs: RunInputs
    tools: Toolset
    is_scripted: Callable[[], bool]
    make_player: PlayerFactory


class Driver(Protocol):
    """An object that carries out a run: a loop, a player, a map."""

    async def run(self) -> None:
        """Write the log to its end."""

    def cancel(self, why: Cancelled) -> None:
        """Stop on the event loop's thread; `run` then ends the log."""


class Stream(InProgress):
    """One run: iterate it for events (deltas included), await it for the `Run`.

    - `make_driver`: called when the run starts.
    - `questions`: those that followers of the run may answer (`registry`).
    - `view`: how a cell that awaits the run shows it (None: not at all).
    - `check`: awaiting a failed run raises RunFailed.
    - `request`: what a notebook needs to record the run (None: no notebook records it).
    - `output`: the type of the answer (None: text).
    - `is_replay`: the stream plays a recorded run.
    - `make_redaction`: makes a filter that removes the secrets known then.
    """

    is_map = False  # one run, not a map

    def __init__(
        self,
        log: EventLog,
        make_driver: DriverFactory,
        questions: Questions | None = None,
        *,
        view: str | None = None,
        check: bool = True,
        request: RunRequest | None = None,
        output: OutputType | None = None,
        is_replay: bool = False,
        make_redaction: Callable[[], Redaction] = lambda: Redaction(collect_secrets()),
    ) -> None:
        super().__init__("call the agent again")
        self.log = log
        self.run = Run(log, output=output)
        self.request = request
        self.is_replay = is_replay
        self.questions = questions or Questions()
        self.recorder: display.Recorder | None = None
        self._check = check
        self._view = view
        self._make_driver = make_driver
        self._make_redaction = make_redaction
        self._announced: Announced | None = None  # held, as the registry has only a weak reference
        self._screen: display.Screen | None = None
        self._host: display.CellHost | None = None
        self._driver: Driver | None = None
        self._stop_cause: Cancelled | None = None  # the first reason given to `cancel`
        self._stopped_elsewhere = ""  # for AgentStopped: how another cell or a server stopped it

    def start(self) -> Stream:
        """Start the run on the running event loop, once; return the stream.

        Raises UsageError if it runs in another loop.
        """
        self._require_same_loop()
        if self._task is None:
            self._host = display.find_host(self._screen)
            self.recorder = self.recorder or display.announce_run(self)
            self._announced = REGISTRY.announce(
                self.log, questions=self.questions, cancel=self._stop_for_follower
            )
            self._start_task(f"agent run {self.log.run}")
        return self

    def _stop_for_follower(self) -> None:
        """Stop the run for a follower of the registry; the cell then ends with AgentStopped."""
        self._stopped_elsewhere = "from elsewhere"
        self.stop()

    def stop(self, detail: str = "stopped from elsewhere") -> None:
        """Stop the run as `cancel` does, from any thread; `detail` is logged."""
        # noted at once: the run may not have begun
        self._stop_cause = self._stop_cause or Cancelled("user", detail)
        self._call_on_loop(self.cancel)

    def cancel(self, reason: str = "user", detail: str = "") -> None:
        """Stop the run, on the event loop's thread; the first reason counts.

        The log keeps its events and ends with `interrupt`, which names the reason, and `end`.
        """
        self._stop_cause = self._stop_cause or Cancelled(reason, detail)
        if self._driver is not None:
            self._driver.cancel(self._stop_cause)

    def _stop_here(self) -> None:
        self.cancel()  # unlike `stop`, it logs no "from elsewhere"

    # the parameters keep their names, since code outside this package may use them
    def play(self, tape: RecordedTurns, wish: ReplayStrictness | None) -> None:
        """Replay a recorded run, `tape`, instead of this one, which has not begun.

        `wish`: how strictly a test compares (None: as in any replay).
        """
        assert self.request is not None  # only a notebook calls this, for a run that it records
        self.log.run = tape.run
        self._make_driver = self.request.make_player(tape, wish)

    def refuse(self, why: str) -> None:
        """Let this run, which has not begun, end with an error that says `why`."""

        def raise_refusal(_: anyio.CancelScope) -> Driver:
            raise UsageError(why)

        self._make_driver = raise_refusal

    async def run_here(self) -> None:
        """Run to the end in the current task, for a caller that shows and announces the run."""
        await self._drive()

    async def _drive(self) -> None:
        """Run the driver to its end; then complete the log, whatever happened."""
        display.enter_run(self._host)
        try:
            self._driver = self._make_driver(anyio.CancelScope())
            if self._stop_cause is not None:
                self._driver.cancel(self._stop_cause)
            await self._driver.run()
        except Exception as fault:
            self._log_fault(fault)
        finally:  # even if the event loop shuts down
            self._complete_log()

    def _complete_log(self) -> None:
        """Complete the log, and leave the cell."""
        for event in list_missing_events(self.log):
            self.log.append(event)
        if self._host is not None:
            self._host.close()

    def _finish_unbegun(self) -> None:
        self._log_beginning()
        self._complete_log()

    def _log_beginning(self) -> None:
        """Log the start and the prompt, if the driver has not."""
        if not len(self.log):
            self.log.append(RunStart())
            if self.request is not None:
                self.log.append(self.request.user)

    def _log_fault(self, fault: Exception) -> None:
        """End the log with the error of a driver that could not be made, or that broke off."""
        if self.log.ended:
            raise fault
        is_usage = isinstance(fault, UsageError)
        why = str(fault) if is_usage else f"{type(fault).__name__}: {fault}"
        self._log_beginning()
        open_calls = [e for e in list_missing_events(self.log) if isinstance(e, Result)]
        message = self._make_redaction().value(why)
        error = Error(code="usage" if is_usage else "internal", message=message)
        for event in (*open_calls, error, End(status="error")):
            self.log.append(event)

    async def _wait(self) -> Run:
        """Start the run if need be, show it in the cell that awaits it, and wait for its end."""
        __tracebackhide__ = True
        self._require_same_loop()
        screen = self._screen = self._find_screen(self._view)
        try:
            # the task inherits the mark: output of its tools need not go to the cell's streams
            with nullcontext() if screen is None else OutputCapture.mark_shown():
                self.start()
            if self.recorder is not None and screen is not None and screen.shown:
                self.recorder.leave_to_cards()
            assert self._task is not None
            # if the waiting code is cancelled, a run that the cell shows ends; any other goes on
            await self._wait_for_task(
                self._task,
                screen,
                self._stop_by_cell,
                stops_on_cancel=screen is not None and screen.shown,
            )
        finally:
            if screen is not None:
                screen.close()
        if screen is not None and (cause := screen.stopped or self._stopped_elsewhere):
            raise self._make_agent_stopped(cause)
        return self.run.raise_for_status() if self._check else self.run

    def _find_screen(self, view: str | None) -> display.Screen | None:
        """Return the screen of the cell that awaits this run here; see `display.find_screen`."""
        return display.find_screen(self, view)

    def _make_agent_stopped(self, by: str) -> AgentStopped:
        """Return the exception that ends a stopped cell; `by`: how it was stopped, in words.

        If the run has not ended, the exception has a copy of it that is closed as abandoned.
        """
        if self.log.ended:
            return AgentStopped(by, self.run)
        log = EventLog.of_events(complete_log(self.log, ABANDONED))
        return AgentStopped(by, Run(log, output=self.run.type))

    def _stop_by_cell(self, by: str) -> None:
        """Stop the run because the cell that awaits it was stopped ("": its code was cancelled)."""
        self.cancel("user", by or "cancelled by the code that awaited it")

    @property
    def played(self) -> Played:
        """The outcome so far of a replay; of a live run, its log alone."""
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
