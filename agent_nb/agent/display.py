"""The door between a run and the notebook that shows it; a script has none.

Why apart: an agent imports no view and no notebook.

Rules
- Nothing of a notebook is imported unless IPython is loaded.
- A run inside another run is not shown by itself: it is part of that run's cards.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from typing import Any, Protocol

from ..events.log import EventLog
from ..host import plugins

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


def show(run: Shown, view: str) -> None:
    """Show a run in the cell that runs now, live if it goes on; without a notebook as text."""
    _presenter().show(run, view)


def _presenter() -> Presenter:
    presenter: Presenter = plugins.presenter()
    return presenter
