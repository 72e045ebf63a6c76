"""Messages of a widget that arrive in order while the cell works.

- ipykernel 7.4 passes them to the thread that made the widget, busy or not; here they take the way
  that the front end chose (a subshell).
- It does not report that a message arrived beside a running cell, and the front end holds back the
  next change until then.
- On a subshell, 7.x attributes later prints of the user's plain threads to the message; here they
  stay with the cell.

There are no public ways to do this. Without a kernel or subshells this does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any


def hears_beside_cell(widget: Any) -> bool:
    """Return whether messages of a widget may arrive while the cell works."""
    return bool(getattr(_kernel(widget), "_supports_kernel_subshells", False))


def beside_cell(widget: Any) -> Callable[[], None]:
    """Have a widget's messages arrive while the cell works.

    Returns a function to call at each message of the front end, and only then.
    """
    if not hears_beside_cell(widget):
        return lambda: None
    kernel = _kernel(widget)
    cell = kernel.get_parent("shell")
    widget.comm._reply_subshell_for = None  # noqa: SLF001

    def heard() -> None:
        with suppress(Exception):
            kernel.shell.set_parent(cell)
            kernel._publish_status("idle", "shell")  # noqa: SLF001

    return heard


def _kernel(widget: Any) -> Any:
    return getattr(getattr(widget, "comm", None), "kernel", None)
