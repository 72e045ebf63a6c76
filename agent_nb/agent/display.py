"""The protocol by which a notebook shows and records runs, and how a cell waits for one.

Why: an agent knows no view and no notebook; in a script there is none.

Rules
- Nothing of the notebook is imported unless IPython is loaded.
- A run inside another run is not shown separately: it is part of the outer run's cards.
- Stopping the cell stops the run it awaits. Other cancellations, such as a timeout, are re-raised.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Protocol

from ..errors import UsageError
from ..events.log import EventLog
from ..host import plugins

TICK = 0.05  # seconds between polls; an untimed await would not notice a kernel interrupt
VIEWS = ("auto", "widgets", "html", "text")
_inside: ContextVar[bool] = ContextVar("agent_nb_inside", default=False)


class Shown(Protocol):
    """A run that can be shown."""

    @property
    def log(self) -> EventLog:
        """Its events."""


class Begun(Shown, Protocol):
    """The stream of our own run. `asked`: what was asked, None if the run is not recorded."""

    @property
    def asked(self) -> object:
        """What was asked."""


class Kept(Protocol):
    """Keeps the record of a run. `shown`: cards show the run too; else the record stands alone."""

    shown: bool


class Screen(Protocol):
    """What a cell offers a run it awaits. `shown`: whether there are cards."""

    shown: bool

    def begin(self) -> None:
        """Note that the cell waits from now on."""

    @property
    def stopped(self) -> str:
        """How the cell was stopped, "" if it was not."""

    @property
    def abandoned(self) -> bool:
        """Whether the cell was stopped a second time because the run did not end."""

    def close(self) -> Any:
        """Leave the final output."""


class Presenter(Protocol):
    """What a notebook implements (`notebook.cell.presenter`)."""

    def screen(self, stream: Begun, view: str | None) -> Screen | None:
        """Return the screen of the running cell for our own run that it awaits."""

    def begun(self, stream: Begun) -> Kept | None:
        """Return the recorder of a run that is about to begin."""

    def followed(self, source: Any, *, insist: bool) -> Screen | None:
        """Return the screen of the running cell for a run of another system that it awaits."""

    def show(self, run: Shown, view: str) -> None:
        """Show a run."""


def enter() -> None:
    """Mark the context as part of a run."""
    _inside.set(True)


def screen(stream: Begun, view: str | None) -> Screen | None:
    """Return the screen of the cell that awaits a run here, or None.

    `view`: one of `VIEWS`; None: do not show it.
    """
    if _inside.get() or stream.log.ended or "IPython" not in sys.modules:
        return None
    return _presenter().screen(stream, view)


def begun(stream: Begun) -> Kept | None:
    """Announce that a run is about to begin; return its recorder, or None.

    The recorder may play a record in its place.
    """
    if stream.asked is None or "IPython" not in sys.modules:
        return None
    return _presenter().begun(stream)


def followed(source: Any, show: bool | None) -> Screen | None:
    """Return the screen of the cell that awaits a run of another system, or None.

    `show`: True insists on cards, None shows them where possible.
    """
    if show is False or (show is None and "IPython" not in sys.modules):
        return None
    return _presenter().followed(source, insist=bool(show))


async def wait(
    task: asyncio.Task[Any], screen: Screen | None, stop: Callable[[str], Any], *, ends: bool
) -> None:
    """Wait for a run's `task`.

    When the cell is stopped, `stop` is called once with how; a second stop abandons the run.
    `ends`: a cancellation of the waiting code stops the run too (`stop` gets ""), and is re-raised
    once the run has ended, unless an interrupt of the cell caused it.
    """
    if screen is not None:
        screen.begin()
    cut, asked = None, False
    while not task.done() and not (screen is not None and screen.abandoned):
        by = screen.stopped if screen is not None else ""
        if (by or cut is not None) and not asked:
            asked = True
            stop(by)
        try:
            await asyncio.wait([task], timeout=TICK if screen is not None or ends else None)
        except asyncio.CancelledError as cancelled:
            if cut is not None or not (ends or (screen is not None and screen.stopped)):
                raise
            cut = cancelled
    if cut is not None:
        if screen is None or not screen.stopped:
            raise cut
        if (waiting := asyncio.current_task()) is not None:
            waiting.uncancel()


def same_loop(task: asyncio.Task[Any] | None, instead: str) -> None:
    """Raise UsageError if a run's `task` belongs to another event loop.

    `instead`: advice for the message.
    """
    if task is None or task.done() or task.get_loop() is asyncio.get_running_loop():
        return
    closed = ", which is closed," if task.get_loop().is_closed() else ""
    raise UsageError(
        f"This run was started in another event loop{closed} and can be awaited only there. Await it where it was started, or {instead}"
        " here; its `run` holds what has come so far."
    )


def show(run: Shown, view: str) -> None:
    """Show a run in the running cell, live if it has not ended; without a notebook as text."""
    _presenter().show(run, view)


def _presenter() -> Presenter:
    presenter: Presenter = plugins.presenter()
    return presenter
