"""The base of `watch` and `attach`: a run of another system or process that is followed here.

Why: both await, show and stop a run in the same way; only how its events arrive differs.

Rules
- A notebook cell that awaits such a run shows its cards. If the user stops that cell, awaiting
  raises AgentStopped.
- A followed source may hold several runs, each with a log of its own (`each_run`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from ..agent import InProgress, Run, Screen
from ..errors import AgentStopped
from ..events import EventLog


class Followed(InProgress):
    """A run of another system or process.

    `again`: what the user should do instead, for the error of awaiting it in another event loop.
    `show`: show the cards when awaited (None: only in a notebook).
    """

    def __init__(self, again: str, *, show: bool | None) -> None:
        super().__init__(again)
        self._on_run: Callable[[EventLog], None] = lambda _: None
        self._show = show

    def each_run(self, on_run: Callable[[EventLog], None]) -> None:
        """Call `on_run` with each log before its first event; a later callback replaces it."""
        self._on_run = on_run

    @property
    @abstractmethod
    def logs(self) -> list[EventLog]:
        """The logs of the runs so far."""

    @property
    @abstractmethod
    def run(self) -> Run:
        """The latest run, with the events so far."""

    @abstractmethod
    async def follow(self, screen: Screen | None = None) -> None:
        """Read the run until it ends, `stop` is called, or the user stops the awaiting cell."""

    def _screen(self) -> Screen | None:
        return self._find_foreign_screen(self._show)

    def _check(self) -> None:
        """Raise the error that kept the run from being read, if a subclass has noted one."""

    async def _wait(self) -> Run:
        """Follow to the end, with cards if a cell waits. Raises as the rules and `_check` say."""
        self._require_same_loop()
        screen = self._screen()
        try:
            await self.follow(screen)
        finally:
            seen = screen.close() if screen is not None else None
        if screen is not None and screen.stopped:
            raise AgentStopped(screen.stopped, self.run if self.logs else None)
        self._check()
        # `seen` keeps a cell that showed the cards from showing them again as its value
        return self.run if seen is None else Run(self.run.log, seen=seen)
