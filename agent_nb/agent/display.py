"""The door between a run and the notebook that shows it; a script has none.

Why apart: an agent imports no view and no notebook.

Rules
- Nothing of a notebook is imported unless IPython is loaded.
- A run inside another run is not shown by itself: it is part of that run's cards.
- The tools of a run that a cell begins work in its kernel, as those of `%%agent` do. Runs that
  begin elsewhere (a script, another thread, a row of a map) have names of their own.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import UsageError, unknown_name
from ..events import EventLog
from ..tools import Host
from .context import Context
from .presenter import load_presenter

if TYPE_CHECKING:
    from ..tools import Toolset

_inside: ContextVar[bool] = ContextVar("agent_nb_inside", default=False)


class Shown(Protocol):
    """A run that can be shown."""

    @property
    def log(self) -> EventLog:
        """Its events."""


class Begun(Shown, Protocol):
    """The stream of our own run. `asked`: what was asked, None if the run is not recorded."""

    @property
    def request(self) -> object:
        """What was asked."""


class Recorder(Protocol):
    """Keeps the record of a run."""

    def leave_to_cards(self) -> None:
        """Leave the record with the cards that show the run; without cards it stands alone."""


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


class CellHost(Host, Protocol):
    """The kernel's main thread for the tools of a run that a cell has begun."""

    def close(self) -> None:
        """Refuse further jobs: the run has ended."""


_host: ContextVar[CellHost | None] = ContextVar("agent_nb_host", default=None)


class Presenter(Protocol):
    """What a notebook implements (`notebook.presenter`)."""

    def screen(self, stream: Begun, view: str | None) -> Screen | None:
        """Return the screen of the running cell for our own run that it awaits."""

    def begun(self, stream: Begun) -> Recorder | None:
        """Return the recorder of a run that is about to begin."""

    def host(self, screen: Screen | None) -> CellHost | None:
        """Return the host of a run that the running cell begins, None if none runs here.

        `screen`: what the cell offers the run, if it awaits it.
        """

    def followed(self, source: Any, *, insist: bool) -> Screen | None:
        """Return the screen of the running cell for a run of another system that it awaits."""

    def show(self, run: Shown, view: str) -> None:
        """Show a run."""

    def context(self, mode: str | None, tools: Toolset, prompt: str, *, hosted: bool) -> Context:
        """Return what a run that the running cell begins is given about the notebook."""


def find_host(screen: Screen | None = None) -> CellHost | None:
    """Return the host of a run that the running cell begins, None elsewhere."""
    if _inside.get() or "IPython" not in sys.modules:
        return None
    return _presenter().host(screen)


def enter_run(host: CellHost | None = None) -> None:
    """Mark the context as part of a run whose tools work with `host`."""
    _inside.set(True)
    _host.set(host)


def entered_host() -> CellHost | None:
    """Return the host of the run that this context is part of."""
    return _host.get()


def find_screen(stream: Begun, view: str | None) -> Screen | None:
    """Return the screen of the cell that awaits a run here, or None.

    `view`: `auto`, `widgets`, `html` or `text`; None: do not show it.
    """
    if _inside.get() or stream.log.ended or "IPython" not in sys.modules:
        return None
    return _presenter().screen(stream, view)


def gather_context(mode: str | None, tools: Toolset, prompt: str, *, hosted: bool) -> Context:
    """Return what a run is given about the notebook of the running cell, nothing elsewhere.

    `mode`: one of `Context.MODES` (None: the notebook's default). `hosted`: its tools run in the
    kernel. Raises UsageError on an unknown mode.
    """
    if mode is not None and mode not in Context.MODES:
        raise UsageError(unknown_name("context", mode, Context.MODES))
    if mode == "none" or _inside.get() or "IPython" not in sys.modules:
        return Context()
    return _presenter().context(mode, tools, prompt, hosted=hosted)


def announce_run(stream: Begun) -> Recorder | None:
    """Announce that a run is about to begin; return its recorder, or None.

    The recorder may play a record in its place.
    """
    if stream.request is None or "IPython" not in sys.modules:
        return None
    return _presenter().begun(stream)


def follow_run(source: Any, show: bool | None) -> Screen | None:
    """Return the screen of the cell that awaits a run of another system, or None.

    `show`: True insists on cards, None shows them where possible.
    """
    if show is False or (show is None and "IPython" not in sys.modules):
        return None
    return _presenter().followed(source, insist=bool(show))


def show_run(run: Shown, view: str) -> None:
    """Show a run in the running cell, live if it has not ended; without a notebook as text."""
    _presenter().show(run, view)


def _presenter() -> Presenter:
    presenter: Presenter = load_presenter()
    return presenter
