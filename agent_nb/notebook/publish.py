"""Sending mime bundles to the front end as they are.

Why not `display`: IPython's display objects take a text that happens to name a file for that file; raw bundles have no such meaning.

Rules: whoever calls it decides on the thread; a thread of its own must run in a copy of the cell's context, or its output is lost.
"""

from __future__ import annotations

from typing import Any


def publish(data: dict[str, Any], metadata: dict[str, Any], transient: dict[str, Any], update: bool) -> None:
    """Publish a bundle as a new display, or with `update` as the new content of the display `transient["display_id"]`."""
    from IPython.display import publish_display_data

    publish_display_data(data, metadata, transient=transient, update=update)
