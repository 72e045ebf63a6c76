"""The outermost widget of a page, which reports how many views of it front ends show.

Rule: the front end's count arrives by `set_state`, and a page that opens asks for the whole state
(`get_state` without a key). ipywidgets calls both for messages of a front end only.
"""

from __future__ import annotations

from typing import Any, Protocol

import ipywidgets as w

from .beside_cell import beside_cell, hears_beside_cell


class Watch(Protocol):
    """Hears about the views of a page, from any thread."""

    def count(self, number: int) -> None:
        """Take the number of views that a front end reports."""

    def opened(self) -> None:
        """Note that a page opens, whose views are counted from 0."""


class Root(w.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """A box whose views are counted after `begin`, until `end`."""

    _watch: Watch | None = None

    def begin(self, watch: Watch) -> None:
        """Have front ends count the views; do nothing where messages do not arrive in time."""
        if hears_beside_cell(self):
            self._heard = beside_cell(self)
            self.set_trait("_view_count", 0)
            self._watch = watch

    def end(self) -> None:
        """Have front ends count no more: a last report would find the widget closed."""
        if self._watch is not None:
            self._watch = None
            self.set_trait("_view_count", None)

    def set_state(self, sync_data: dict[str, Any]) -> None:
        """Take a change of the front end."""
        super().set_state(sync_data)
        if self._watch is not None and "_view_count" in sync_data:
            self._heard()
            self._watch.count(self._view_count or 0)

    def get_state(self, key: Any = None, drop_defaults: bool = False) -> Any:
        """Return the state, or some of it (`key`); the whole is for a page that opens."""
        if key is None and self._watch is not None:
            self.set_trait("_view_count", 0)
            self._watch.opened()
        return super().get_state(key, drop_defaults)
