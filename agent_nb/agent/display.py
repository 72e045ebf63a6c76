"""Where a run is shown that a notebook cell awaits, or that somebody asks to see, and how a cell
waits for it.

Why apart: an agent knows no view and no notebook, and in a script there is none; this is the door
between them.

Rules
- Nothing of a notebook is imported unless IPython is loaded.
- A run below another one is not shown by itself: it is part of that one's cards.
- Whoever stops the cell means the run that it waits for. A cancellation that is not a person's (a
  timeout) stays what it is.
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

# seconds; in a cell that waits without end an interrupt would be seen only when something else
# happens
TICK = 0.05
VIEWS = ("auto", "widgets", "html", "text")
_inside: ContextVar[bool] = ContextVar("agent_nb_inside", default=False)


class Shown(Protocol):
    """What is shown: a run, whoever made it."""

    @property
    def log(self) -> EventLog:
        """Its events."""


class Begun(Shown, Protocol):
    """The stream of a run of ours. `asked`: what was asked, None where nothing keeps its record."""

    @property
    def asked(self) -> object:
        """What was asked."""


class Kept(Protocol):
    """What keeps the record of a run: with `shown` its cards show it too, else the record stands
    alone.
    """

    shown: bool


class Screen(Protocol):
    """What the cell that awaits a run does for it: `shown` says whether there are cards."""

    shown: bool

    def begin(self) -> None:
        """The cell waits from now on."""

    @property
    def stopped(self) -> str:
        """How somebody stopped the cell, "" if nobody did."""

    @property
    def abandoned(self) -> bool:
        """Whether somebody stopped it again because it did not end."""

    def close(self) -> Any:
        """Leave what stays."""


class Presenter(Protocol):
    """What a notebook offers here (`notebook.cell.presenter`)."""

    def screen(self, stream: Begun, view: str | None) -> Screen | None:
        """Return what the running cell does for a run of ours that it awaits."""

    def begun(self, stream: Begun) -> Kept | None:
        """Return what keeps the record of a run that is about to begin."""

    def followed(self, source: Any, *, insist: bool) -> Screen | None:
        """Return what the running cell does for a run of another system that it awaits."""

    def show(self, run: Shown, view: str) -> None:
        """Show a run."""


def enter() -> None:
    """Say that what runs in this context from now on belongs to a run."""
    _inside.set(True)


def screen(stream: Begun, view: str | None) -> Screen | None:
    """Return what a cell does for a run that it awaits here, None where no cell does. `view`: one
    of `VIEWS`, None: it is not shown.
    """
    if _inside.get() or stream.log.ended or "IPython" not in sys.modules:
        return None
    return _presenter().screen(stream, view)


def begun(stream: Begun) -> Kept | None:
    """Say that a run is about to begin; return what keeps its record, None where no cell does. It
    may play a record in its place.
    """
    if stream.asked is None or "IPython" not in sys.modules:
        return None
    return _presenter().begun(stream)


def followed(source: Any, show: bool | None) -> Screen | None:
    """Return what a cell does for a run of another system that it awaits (`watch`, `attach`), None
    where no cell does. `show`: True insists on cards, None shows them where there are any.
    """
    if show is False or (show is None and "IPython" not in sys.modules):
        return None
    return _presenter().followed(source, insist=bool(show))


async def wait(
    task: asyncio.Task[Any], screen: Screen | None, stop: Callable[[str], Any], *, ends: bool
) -> None:
    """Wait for a run's `task`. When somebody stops the cell, `stop` is called with how, once; a
    second stop gives the run up.

    `ends` says whether a cancellation of who waits stops the run too (`stop` gets ""); it is raised
    when the run has ended. One that an interrupt of the cell brought about is not raised.
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
    """Raise UsageError when a run's `task` goes on in another event loop than this one; `instead`:
    what to do here.
    """
    if task is None or task.done() or task.get_loop() is asyncio.get_running_loop():
        return
    closed = ", which is closed," if task.get_loop().is_closed() else ""
    raise UsageError(
        f"This run was started in another event loop{closed} and can be awaited only there. Await it where it was started, or {instead}"
        " here; its `run` holds what has come so far."
    )


def show(run: Shown, view: str) -> None:
    """Show a run in the cell that runs now, live if it goes on; without a notebook as text."""
    _presenter().show(run, view)


def _presenter() -> Presenter:
    presenter: Presenter = plugins.presenter()
    return presenter
