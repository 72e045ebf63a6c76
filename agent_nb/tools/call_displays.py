"""What the code of one call displays, kept for its card: pictures, charts, tables, widgets.

Rules
- A picture, a chart, a table or a widget belongs to its call: it stands in its card, and is not
  displayed below the cards.
- What only a script or a frame can show (JavaScript, a map of folium) stays a display of the cell,
  and so does what a front end draws by a type that is not known here. The tool has its text.
- Text that is displayed is text that is printed.
- Everything that is kept is redacted first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from .base import Outcome
from .charts import prefer_json
from .pictures import Figures
from .results import convert_formatted


class CallDisplays:
    """Takes the displays of one call, as `capture.Displays`; `figures` has what it keeps.

    `write` receives the text that stands for a display. `clean` returns a MIME bundle without
    secrets. `through`: nobody sees the card, so everything is displayed as well.
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
        """Return the MIME bundle of a formatted value, with a chart as JSON."""
        bundle = prefer_json(value, bundle)
        self.figures.note_figure(value, bundle)
        return bundle

    def take(self, bundle: dict[str, Any], key: str, *, update: bool) -> dict[str, Any] | None:
        """Keep a display for the call; return what is displayed below the cards all the same.

        `key`: the id of the display. `update`: it replaces the one with this id.
        """
        data, text = Figures.read_display(bundle, self._clean)
        if update and not self.figures.has(key):
            return data  # it stands where it was displayed
        kept, caption = self.figures.add_display(data, key)
        if not update and (said := caption or text):
            self._write(said)
        return data if self._through or not kept else None

    def add_figure(self, figure: Any) -> None:
        """Keep a figure that nothing displayed."""
        if (picture := Figures.draw(figure)) is not None:
            self._write(f"{self.figures.add(picture)}\n")

    def add_to(self, outcome: Outcome) -> Outcome:
        """Return an outcome with what was shown, unless it has attachments."""
        if outcome.attachments or not self.all:
            return outcome
        return msgspec.structs.replace(outcome, attachments=self.all)

    def clear(self) -> None:
        """Forget what was shown."""
        self.figures.clear()

    def convert_value(
        self, value: Any, bundle: Mapping[str, Any], *, quiet: bool = False
    ) -> Outcome:
        """Return the outcome of a cell whose last expression has a value, formatted as `bundle`.

        `quiet`: the code ends with a semicolon, so that only the model gets the value, as text.
        """
        outcome = convert_formatted(value, self._clean(dict(bundle)), self.figures)
        return msgspec.structs.replace(outcome, display=None) if quiet else outcome
