"""Where a run is shown that a notebook cell awaits, or that somebody asks to see: the notebook's cards, or nowhere.

Why apart: an agent knows no view and no notebook, and in a script there is none; this is the door between them.

Rules
- Nothing of a notebook is imported unless IPython is loaded.
- A run below another one is not shown by itself: it is part of that one's cards.
"""

from __future__ import annotations

import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .run import Run
    from .stream import Stream

VIEWS = ("auto", "widgets", "html", "text")
_inside: ContextVar[bool] = ContextVar("agent_nb_inside", default=False)


class Screen(Protocol):
    """Shows one run from now on."""

    def close(self) -> None:
        """Leave what stays."""


def enter() -> None:
    """Say that what runs in this context from now on belongs to a run."""
    _inside.set(True)


def screen(stream: Stream, view: str | None) -> Screen | None:
    """Return what shows a run that is awaited here, or None where there is nothing to show it in. `view`: one of `VIEWS`, None: nowhere."""
    if view is None or _inside.get() or stream.log.ended or "IPython" not in sys.modules:
        return None
    from .notebook.shown import screen as found

    return found(stream, view)


def show(run: Run, view: str) -> None:
    """Show a run in the cell that runs now, live if it goes on; without a notebook as text."""
    from .notebook.shown import show as shown

    shown(run, view)
