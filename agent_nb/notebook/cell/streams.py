"""A cell's stream as the driver runs it and as its view hears it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...agent.agent import Agent
from ...agent.stream import Replay, Stream
from ...events import Event
from ...view.live import LiveView
from .approvals import Clicks
from .driver import Driver


class Place:
    """Where the runs of one execution of a cell are shown, one after the other.

    `view` is open, or else `display_id` names the static page that stands there ("": nothing does).
    `driver` runs the present one, `clicks` are the answers to its questions, `can_click` says
    whether its buttons are heard; `record` is that of the replay whose place is taken.
    """

    def __init__(self) -> None:
        self.view: LiveView | None = None
        self.display_id = ""
        self.driver: Driver | None = None
        self.record: Mapping[str, Any] | None = None
        self.clicks = Clicks()
        self.can_click: Callable[[], bool] = lambda: False

    def stop(self) -> None:
        """Stop the present run, as the view's Stop button does."""
        if self.driver is not None:
            self.driver.stop()


class Work:
    """A stream as the driver runs it."""

    def __init__(self, stream: Stream, agent: Agent, driver: Driver) -> None:
        self.stream = stream
        self._driver = driver
        self._agent = agent

    async def run(self) -> None:
        """Run to the end and close the model's connections."""
        try:
            await self.stream
        finally:
            await self._agent.aclose()

    def cancel(self) -> None:
        """Stop the run as the user's interrupt."""
        self.stream.cancel("user", self._driver.interrupts.by)


class UntilDrift:
    """The log of a replay as its view hears it: what closes the log of one that goes on live
    elsewhere is not shown.
    """

    def __init__(self, replay: Replay) -> None:
        self.run = replay.log.run
        self._replay = replay

    def subscribe(self, subscriber: Callable[[Event], None]) -> Callable[[], None]:
        """Call `subscriber` with every event up to a drift after which the run goes on; see
        `EventLog.subscribe`.
        """

        def hear(event: Event) -> None:
            if self._replay.played.resume is None:
                subscriber(event)

        return self._replay.log.subscribe(hear)
