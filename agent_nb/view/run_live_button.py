"""The button "Run live" below a replayed page, in a display of its own.

Why: a button needs a kernel, a finished page does not. If only the button is a widget, losing the
kernel loses nothing else. The metadata of its output keep it out of the saved notebook.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..record import METADATA_KEY, RunNumbers
from .display import Publish, new_display, widget
from .nodes import Button, Buttons, Page, Section

if TYPE_CHECKING:
    from .widgets import Board


class RunLiveButton:
    """The button below the replay of `run`; the constructor displays it.

    `press` must return at once; it is called once, and again only after `unpress`. Raises
    ImportError if ipywidgets is missing.
    """

    def __init__(self, publish: Publish, press: Callable[[], None], run: str) -> None:
        from .widgets import Board

        self._publish, self._press = publish, press
        self._metadata = {METADATA_KEY: {RunNumbers.BUTTON: run}}
        self._display = {"display_id": new_display()}
        self._pressed = self._closed = False
        self._board: Board = Board(self._on_press)
        self._draw()
        self._show(widget(self._board.root.model_id), update=False)

    def _show(self, bundle: dict[str, Any], *, update: bool) -> None:
        self._publish(bundle, self._metadata, self._display, update)

    def _on_press(self, _: Button) -> None:
        if not self._pressed:
            self._pressed = True
            self._draw()
            self._press()

    def _draw(self) -> None:
        label = "starting…" if self._pressed else "↻ Run live"
        purpose = "Ask the model again; the new run takes the place of this one."
        button = Button("run_live", label, enabled=not self._pressed, hint=purpose)
        # for assistive technology the page is named after the purpose of its only button
        self._board.draw(Page(purpose, (Section("again", Buttons((button,))),)))

    def unpress(self) -> None:
        """Enable the button again: the press started no run."""
        self._pressed = False
        self._draw()

    def close(self, *, gone: bool = False) -> None:
        """Remove the button; `gone`: its output no longer exists. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        with suppress(Exception):
            if not gone:
                self._show({}, update=True)
            self._board.close()
