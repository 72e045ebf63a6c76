"""Keep what the code of a call displays (pictures, charts, tables, widgets) for the call's card.

Why: people look for a picture in the card of the call that made it, not below all cards. The cell
itself displays what needs a script, a frame or an extension of the front end; the result of the
call then has the text of that display.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from .base import Outcome
from .charts import prefer_json
from .failures import convert_error
from .figures import Figures
from .results import convert_formatted


class CallDisplays:
    """The `capture.Displays` of one call; `figures` holds what it keeps.

    `write` receives the text that stands for a display in the output. `on_change`: see `Figures`.
    `clean` returns a MIME bundle without secrets. `through`: no view shows the card, so the cell
    displays everything as well.
    """

    def __init__(
        self,
        write: Callable[[str], object],
        on_change: Callable[[int, dict[str, Any] | None], None] = lambda index, shown: None,
        clean: Callable[[Any], Any] = lambda bundle: bundle,
        *,
        through: bool = False,
    ) -> None:
        self.figures = Figures(on_change)
        self._write, self._clean, self._through = write, clean, through

    @property
    def all(self) -> tuple[dict[str, Any], ...]:
        """What is kept so far, as attachments."""
        return self.figures.all

    def format_value(self, value: Any, bundle: dict[str, Any]) -> dict[str, Any]:
        """Return the bundle of a formatted value, with a chart as JSON; keep a figure's data."""
        bundle = prefer_json(value, bundle)
        self.figures.remember_figure(value, bundle)
        return bundle

    def keep(self, bundle: dict[str, Any], key: str, *, update: bool) -> dict[str, Any] | None:
        """Keep a display for the call; return the bundle that the cell must display, or None.

        `key`: the id of the display. `update`: it replaces the one with this id.
        """
        data, text = Figures.read_display(bundle, self._clean)
        earlier = self.figures.find(key)
        if update and earlier is None:
            return data  # the display to update is in the cell, not in the card
        is_kept, caption = self.figures.add_display(data, key)
        # an update that replaces the earlier one writes nothing: the output has the text of that
        is_replaced = update and self.figures.find(key) is not earlier
        if not is_replaced and (summary := caption or text):
            self._write(summary)
        return data if self._through or not is_kept else None

    def add_figure(self, figure: Any) -> None:
        """Keep a figure that the code made but did not display."""
        if (picture := Figures.draw(figure)) is not None:
            self._write(f"{self.figures.add(picture)}\n")

    def add_to(self, outcome: Outcome) -> Outcome:
        """Return an outcome with the displays as its attachments, unless it has its own."""
        if outcome.attachments or not self.all:
            return outcome
        return msgspec.structs.replace(outcome, attachments=self.all)

    def convert_stop(self, stop: BaseException) -> Outcome:
        """Return the outcome of a cell that was stopped."""
        return self.add_to(convert_error(stop))

    def clear(self) -> None:
        """Forget what was shown."""
        self.figures.clear()

    def convert_value(
        self, value: Any, bundle: Mapping[str, Any], *, quiet: bool = False
    ) -> Outcome:
        """Return the outcome of a cell; the shell has formatted `value`, that of the cell's last
        expression, as `bundle`.

        `quiet`: the code ends with a semicolon, so that only the model gets the value, as text.
        """
        outcome = self.add_to(convert_formatted(value, self._clean(dict(bundle)), self.figures))
        return msgspec.structs.replace(outcome, display=None) if quiet else outcome
