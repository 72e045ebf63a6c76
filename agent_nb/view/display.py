"""Displays, the outputs of a cell that can be replaced: their ids, and how bundles reach them.

Why not IPython's display objects: they may open the file or address that a string names.
"""

from __future__ import annotations

import uuid
from typing import Any, Protocol

from ..wire import Attachment


class Publish(Protocol):
    """Sends a mime bundle to the front end.

    It opens a new display with the id `transient["display_id"]`; with `update`, it replaces the
    content of the display that has this id.
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


def widget(model_id: str) -> dict[str, Any]:
    """Return the mime bundle that shows the widget with an id."""
    return {Attachment.WIDGET: {"version_major": 2, "version_minor": 0, "model_id": model_id}}
