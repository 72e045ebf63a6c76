"""What a run needs from a notebook: a screen that shows it, a recorder, a host for its tools.

These are protocols because agents stand below the view and the notebook and import neither. The
notebook implements `Presenter`. A process without IPython imports nothing of the notebook, unless
the caller demands to show a run (`show_run`, `follow_run`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import UsageError, unknown_name
from ..events import EventLog
from ..tools import Host
from .context import Context
from .presenter import load_presenter

if TYPE_CHECKING:
    from ..tools import Toolset

_presenter: Callable[[], Presenter] = load_presenter
# set by `enter_run`
_inside_run: ContextVar[bool] = ContextVar("agent_nb_inside", default=False)
_run_host: ContextVar[CellHost | None] = ContextVar("agent_nb_host", default=None)


class ShownRun(Protocol):
    """A run that can be shown."""

    @property
    def log(self) -> EventLog:
        """The events of the run."""


class ShownStream(ShownRun, Protocol):
    """The stream of a run of an agent."""

    @property
    def request(self) -> object:
        """What a notebook needs to record the run, None if it is not recorded."""


class Recorder(Protocol):
    """What a stream uses of the object that records it (`notebook.cell.recording`)."""

    def leave_to_cards(self) -> None:
        """Publish the record with the cards that show the run, not as a separate output."""


class Screen(Protocol):
    """The cell that awaits a run: shows the run, and knows whether the user stopped the cell.

    `shown`: whether the cell shows the run in cards.
    """

    shown: bool

    def begin(self) -> None:
        """Note that the cell waits for the run from now on."""

    @property
    def stopped(self) -> str:
        """How the user stopped the cell, in words, "" if not."""

    @property
    def abandoned(self) -> bool:
        """Whether the cell was stopped a second time because the run did not end."""

    def close(self) -> Any:
        """End the display with the final output."""


class CellHost(Host, Protocol):
    """Runs, on the kernel's main thread, the tools of a run that a cell has begun."""

    def close(self) -> None:
        """Refuse further jobs: the run has ended."""


class Presenter(Protocol):
    """What a notebook implements (`notebook.presenter`)."""

    def make_screen(self, stream: ShownStream, view: str | None) -> Screen | None:
        """Return the screen of the running cell, which awaits an agent's run; None without a cell.

        `view`: as in `find_screen`; with None the screen has no cards.
        """

    def begin_recording(self, stream: ShownStream) -> Recorder | None:
        """Return the recorder of a run that is about to begin, None outside IPython."""

    def find_host(self, screen: Screen | None) -> CellHost | None:
        """Return the host of a run that the running cell begins, None if none runs here.

        `screen`: the cell's, if the cell awaits the run.
        """

    def make_source_screen(self, source: Any, *, insist: bool) -> Screen | None:
        """Return the screen of the running cell, which awaits a run of another system, or None.

        `insist`: show cards even in a terminal.
        """

    def show_run(self, run: ShownRun, view: str) -> None:
        """Show a run."""

    def gather_context(
        self, mode: str | None, tools: Toolset, prompt: str, *, hosted: bool
    ) -> Context:
        """Return the context that the running cell gives to a run that it begins."""


def find_host(screen: Screen | None = None) -> CellHost | None:
    """Return the host of a run that the running cell begins: its tools work in the cell's kernel.

    None for a run that begins elsewhere (a script, a row): its tools have variables of their own.
    """
    if _inside_run.get() or "IPython" not in sys.modules:
        return None
    return _presenter().find_host(screen)


def enter_run(host: CellHost | None = None) -> None:
    """Mark this context (of `contextvars`) as part of a run whose tools work with `host`."""
    _inside_run.set(True)
    _run_host.set(host)


def entered_host() -> CellHost | None:
    """Return the host of the run that this context is part of."""
    return _run_host.get()


def find_screen(stream: ShownStream, view: str | None) -> Screen | None:
    """Return the screen of the cell that awaits a run here, or None.

    `view`: `auto`, `widgets`, `html` or `text`; None: do not show it.
    """
    if _inside_run.get() or stream.log.ended or "IPython" not in sys.modules:
        return None
    return _presenter().make_screen(stream, view)


def gather_context(mode: str | None, tools: Toolset, prompt: str, *, hosted: bool) -> Context:
    """Return the context that the running cell gives to a run; it is empty outside a notebook.

    `mode`: one of `Context.MODES` (None: the notebook's default). `hosted`: the tools of the run
    work in the kernel. Raises UsageError on an unknown mode.
    """
    if mode is not None and mode not in Context.MODES:
        raise UsageError(unknown_name("context", mode, Context.MODES))
    if mode == "none" or _inside_run.get() or "IPython" not in sys.modules:
        return Context()
    return _presenter().gather_context(mode, tools, prompt, hosted=hosted)


def announce_run(stream: ShownStream) -> Recorder | None:
    """Announce that a run is about to begin; return its recorder, or None.

    The recorder may make the run a replay of a record.
    """
    if stream.request is None or "IPython" not in sys.modules:
        return None
    return _presenter().begin_recording(stream)


def follow_run(source: Any, show: bool | None) -> Screen | None:
    """Return the screen of the cell that awaits a run of another system, or None.

    `show`: True insists on cards, None shows them where possible, False returns None.
    """
    if show is False or (show is None and "IPython" not in sys.modules):
        return None
    return _presenter().make_source_screen(source, insist=bool(show))


def show_run(run: ShownRun, view: str) -> None:
    """Show a run in the running cell, live if it has not ended; without a notebook as text."""
    _presenter().show_run(run, view)
