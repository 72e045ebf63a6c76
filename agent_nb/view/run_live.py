"""A button below a page that stands still, in a display of its own.

Why: what stays of a run needs no kernel to be read, the button does; so nothing else is a widget,
and when the kernel is gone, nothing else is lost.

Rules
- It is pressed once; `unpress` lets it be pressed again. A press only calls `press`, which must
  return at once.
- Its output is marked (`BUTTON`), so that a Jupyter server never saves it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from ..record.record import BUTTON, KEY
from .nodes import Button, Buttons, Page, Section

if TYPE_CHECKING:
    from .widgets import Board

WIDGET = "application/vnd.jupyter.widget-view+json"


class Publish(Protocol):
    """Sends a mime bundle to the front end: a new display, or with `update` a new content of the
    display `transient["display_id"]`.
    """

    def __call__(
        self,
        data: dict[str, Any],
        metadata: dict[str, Any],
        transient: dict[str, Any],
        update: bool,
    ) -> None:
        """Publish."""


def new_display() -> str:
    """Return the id of a new display."""
    return f"agent-nb-{uuid.uuid4().hex[:16]}"


def widget(root: Any) -> dict[str, Any]:
    """Return the mime bundle that shows a widget."""
    return {WIDGET: {"version_major": 2, "version_minor": 0, "model_id": root.model_id}}


class RunLiveButton:
    """The button "Run live" of a replay. Raises ImportError where ipywidgets is missing."""

    def __init__(self, publish: Publish, press: Callable[[], None], run: str) -> None:
        from .widgets import Board

        self._publish, self._press = publish, press
        self._metadata = {KEY: {BUTTON: run}}
        self._display = {"display_id": new_display()}
        self._pressed = self._closed = False
        self._board: Board = Board(self._take)
        self._draw()
        publish(widget(self._board.root), self._metadata, self._display, False)

    def _take(self, _: Button) -> None:
        if not self._pressed:
            self._pressed = True
            self._draw()
            self._press()

    def _draw(self) -> None:
        label = "starting…" if self._pressed else "↻ Run live"
        hint = "Ask the model again; the new run takes the place of this one."
        button = Button("run_live", label, enabled=not self._pressed, hint=hint)
        self._board.draw(Page(hint, (Section("again", Buttons((button,))),)))

    def unpress(self) -> None:
        """Let it be pressed again: the press led to nothing."""
        self._pressed = False
        self._draw()

    def close(self, *, gone: bool = False) -> None:
        """Take it away; `gone`: its output is no longer there. Calling it again does nothing."""
        if self._closed:
            return
        self._closed = True
        with suppress(Exception):
            if not gone:
                self._publish({}, self._metadata, self._display, True)
            self._board.close()
