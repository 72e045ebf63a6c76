"""Mime bundles to the front end, as they are, and known as ours.

Why: IPython's display objects read a file when a text happens to be the name of one; what models
and tools say must never get there.

Rules
- It is there from loading on, so what takes time to import is imported when something is shown.
- Only `publish` shows records. What marks an output as ours (the record's MIME type, our key in the
  metadata) is taken out of whatever else the cells and tools of a guarded shell display: a saved
  output must not pass for a run because of what a tool has shown.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

_ours: ContextVar[bool] = ContextVar("agent_nb_publishing", default=False)


def publish(
    data: dict[str, Any], metadata: dict[str, Any], transient: dict[str, Any], update: bool
) -> None:
    """Show `data` in the cell of the running context, or with `update` in place of the display
    `transient["display_id"]`.
    """
    from IPython.display import publish_display_data

    token = _ours.set(True)
    try:
        publish_display_data(data, metadata, transient=transient, update=update)
    finally:
        _ours.reset(token)


def ours() -> bool:
    """Return whether what this context displays comes from `publish`."""
    return _ours.get()


class _Guarded:
    """Stands in for the `publish` of a display publisher."""

    def __init__(self, plain: Callable[..., Any]) -> None:
        self.plain = plain

    def __call__(self, data: Any, metadata: Any = None, *args: Any, **options: Any) -> Any:
        from ...record.record import KEY, MIME

        if not _ours.get():
            data, metadata = _without(data, MIME), _without(metadata, KEY)
        return self.plain(data, metadata, *args, **options)


def guard(shell: Any) -> None:
    """Let what this shell displays pass for ours only if it is; once is enough."""
    display = shell.display_pub
    if not isinstance(vars(display).get("publish"), _Guarded):
        display.publish = _Guarded(display.publish)


def unguard(shell: Any) -> None:
    """Take the guard back, unless somebody has put something above it: then it stays below."""
    display = shell.display_pub
    if isinstance(vars(display).get("publish"), _Guarded):
        del display.publish


def _without(bundle: Any, key: str) -> Any:
    return (
        {k: v for k, v in bundle.items() if k != key}
        if isinstance(bundle, dict) and key in bundle
        else bundle
    )
