"""The base of `watch` and `attach`: runs of another system or process that are followed here.

Both are awaited, shown and stopped in the same way; only how their events arrive differs.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from ..agent import InProgress, Run, Screen
from ..errors import AgentStopped
from ..events import EventLog


class FollowedRuns(InProgress):
    """One or more runs of another system or process; `run` is the latest.

    `other_loop_advice`: for the error of awaiting this in a second event loop: what to do instead.
    `show`: show the cards when awaited (None: only in a notebook).
    """

    def __init__(self, other_loop_advice: str, *, show: bool | None) -> None:
        super().__init__(other_loop_advice)
        self._on_run: Callable[[EventLog], None] = lambda _: None
        self._show = show

    def set_run_callback(self, on_run: Callable[[EventLog], None]) -> None:
        """Call `on_run` with each log before its first event; replaces the former callback."""
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
        """Read until the runs end, `stop` is called, or the user stops the awaiting cell."""

    def _screen(self) -> Screen | None:
        return self._find_foreign_screen(self._show)

    def _raise_read_error(self) -> None:
        """Raise the error that kept the runs from being read; this base class notes none."""

    async def _wait(self) -> Run:
        """Follow to the end, with cards if a cell waits; return the latest run.

        Overrides `InProgress._wait`. Raises UsageError in a second event loop, AgentStopped if the
        user stops the cell, else what `follow` and `_raise_read_error` raise.
        """
        self._require_same_loop()
        screen = self._screen()
        try:
            await self.follow(screen)
        finally:
            shown_cards = screen.close() if screen is not None else None
        if screen is not None and screen.stopped:
            raise AgentStopped(screen.stopped, self.run if self.logs else None)
        self._raise_read_error()
        # `seen` keeps a cell that showed the cards from showing them again as its value
        return self.run if shown_cards is None else Run(self.run.log, seen=shown_cards)
