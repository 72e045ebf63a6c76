"""Mime bundles to the front end, as they are.

Why: IPython's display objects read a file when a text happens to be the name of one; what models and tools say must never get
there.
"""

from __future__ import annotations

from typing import Any


def publish(data: dict[str, Any], metadata: dict[str, Any], transient: dict[str, Any], update: bool) -> None:
    """Show `data` in the cell of the running context, or with `update` in place of the display `transient["display_id"]`."""
    from IPython.display import publish_display_data

    publish_display_data(data, metadata, transient=transient, update=update)
