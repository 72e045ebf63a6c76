"""The outermost widget of a page, which reports how many views of it front ends show.

Why: a page that no front end shows any more, as after a reload, must be published again. The front
end counts views in the trait `_view_count` unless that is None, and sends the count by `set_state`.
A browser page that opens asks for the whole state (`get_state` without a key). Once the widget is
made, ipywidgets calls both only for messages of a front end.
"""

from __future__ import annotations

from typing import Any, Protocol

import ipywidgets as w

from .beside_cell import hear_beside_cell, is_heard_beside_cell


class Watch(Protocol):
    """Takes reports about the views of a page, on any thread (see `views`)."""

    def count(self, number: int) -> None:
        """Take the number of views that a front end reports."""

    def opened(self) -> None:
        """Note that a browser page opens, which counts its views from 0."""


class Root(w.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """A box whose views are counted after `begin`, until `end`."""

    _watch: Watch | None = None

    def begin(self, watch: Watch) -> None:
        """Make front ends count the views, unless counts would arrive only when the cell ends."""
        if is_heard_beside_cell(self):
            self._acknowledge = hear_beside_cell(self)
            self.set_trait("_view_count", 0)
            self._watch = watch

    def end(self) -> None:
        """Stop counting, so that no report arrives when the widget is closed."""
        if self._watch is not None:
            self._watch = None
            self.set_trait("_view_count", None)

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take a change of the front end."""
        super().set_state(sync_data)
        if self._watch is not None and "_view_count" in sync_data:
            self._acknowledge()  # without it, the front end would hold back its next change
            self._watch.count(self._view_count or 0)

    def get_state(self, key: Any = None, drop_defaults: bool = False) -> Any:
        """Return the state, or some of it (`key`); a browser page that opens asks for all."""
        if key is None and self._watch is not None:
            # the page that opens counts on from the number in the state that it gets
            self.set_trait("_view_count", 0)
            self._watch.opened()
        return super().get_state(key, drop_defaults)
