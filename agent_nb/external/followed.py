"""A run that happens elsewhere, followed: the base of `watch` and `attach`.

Rules
- A notebook cell that awaits one shows its cards. A user who stops that cell ends it with
  AgentStopped.
- What `each_run` was given is called with each log before its first event.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from ..agent import InProgress, Run, Screen
from ..errors import AgentStopped
from ..events import EventLog


class Followed(InProgress):
    """A run of elsewhere. `show`: show the cards when awaited (None: in a notebook)."""

    def __init__(self, again: str, *, show: bool | None) -> None:
        super().__init__(again)
        self._on_run: Callable[[EventLog], None] = lambda _: None
        self._show = show

    def each_run(self, hear: Callable[[EventLog], None]) -> None:
        """Call `hear` with each log before its first event; the latest `hear` counts."""
        self._on_run = hear

    @property
    @abstractmethod
    def logs(self) -> list[EventLog]:
        """The logs of the runs so far."""

    @property
    @abstractmethod
    def run(self) -> Run:
        """The latest run, as far as it has come."""

    @abstractmethod
    async def follow(self, screen: Screen | None = None) -> None:
        """Follow to the end, or until `stop`, here or of the cell that shows it."""

    def _screen(self) -> Screen | None:
        return self._find_foreign_screen(self._show)

    def _check(self) -> None:
        """Raise what kept the run from being read."""

    async def _wait(self) -> Run:
        self._require_same_loop()
        screen = self._screen()
        try:
            await self.follow(screen)
        finally:
            seen = screen.close() if screen is not None else None
        if screen is not None and screen.stopped:
            raise AgentStopped(screen.stopped, self.run if self.logs else None)
        self._check()
        return self.run if seen is None else Run(self.run.log, seen=seen)
