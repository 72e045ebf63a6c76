"""The controls of a cell's run: its Stop button, its questions, and the cell that it inserts.

What they can do depends on the view, which is chosen only when the cell's options have been read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...tools import ApprovalSource
from ..identity import Cell
from .approvals import ButtonApprovals, ask_by_click_or_input, ask_by_input
from .display import Display
from .driver import Driver
from .frontend import can_click_now, can_ever_click
from .offered_cells import ChosenCell
from .unseen import UnseenQuestions


class Controls:
    """The controls of one cell. Only views of kind `widgets` have buttons.

    `display` returns the display of the run. `by_button`: the button Run live started the run and
    no cell runs, so clicks always arrive, and no cell can be inserted.
    """

    def __init__(
        self, shell: Any, cell: Cell, display: Callable[[], Display], *, by_button: bool = False
    ) -> None:
        self._shell, self._cell, self._display, self._by_button = shell, cell, display, by_button
        self._clicks = ButtonApprovals()
        self.unseen = UnseenQuestions(lambda: display().views)
        self.chosen = ChosenCell()
        self._clickable = False
        self._driver: Driver | None = None

    @property
    def actions(self) -> dict[str, Callable[..., None]]:
        """The functions that the buttons call."""
        insert = {} if self._by_button else {"insert": self.chosen.choose}
        return {"stop": self._stop, **self._clicks.actions, **insert}

    @property
    def can_ask(self) -> bool:
        """Whether the user can be asked, by buttons or on the keyboard."""
        return self._clickable or self._cell.stdin

    def set_view_kind(self, kind: str) -> None:
        """Note the kind of the view; call it before the first question."""
        self._clickable = kind == "widgets" and (can_ever_click(self._cell) or self._by_button)

    def set_driver(self, driver: Driver) -> None:
        """Let the Stop button stop what `driver` runs from now on."""
        self._driver = driver

    def can_click(self) -> bool:
        """Return whether clicks on buttons arrive now; may be called from any thread."""
        return self._clickable and (self._by_button or can_click_now(self._shell, self._cell))

    def approval_source(self, driver: Driver) -> ApprovalSource:
        """Return an approval source for the run of `driver`."""
        stdin = self._cell.stdin
        typed = ask_by_input(driver.host.call, stdin, lambda: self._display().caught_up)
        if not self._clickable:
            return typed
        return ask_by_click_or_input(self._clicks, typed, self.can_click, self.unseen)

    def _stop(self) -> None:
        if self._driver is not None:
            self._driver.stop()
