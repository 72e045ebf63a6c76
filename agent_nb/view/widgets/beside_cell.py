"""Make messages of a widget arrive while the cell works, on a subshell of the kernel.

ipykernel has no public way to do this. So this file changes three things in it:
- 7.4 handles a message on the thread that made the widget, even while the cell keeps it busy. Here,
  the subshell that the front end chose handles it.
- It does not report that a message beside a running cell was handled, and the front end holds back
  the widget's next change until it does. Here, `acknowledge` reports it.
- On a subshell, 7.x attributes later prints of the user's threads to the message. Here, they stay
  with the cell.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any


def is_heard_beside_cell(widget: Any) -> bool:
    """Return whether messages of a widget may arrive while the cell works."""
    return bool(getattr(_kernel(widget), "_supports_kernel_subshells", False))


def hear_beside_cell(widget: Any) -> Callable[[], None]:
    """Make a widget's messages arrive while the cell works; return `acknowledge`.

    Call `acknowledge` whenever a message of the front end has arrived.
    """
    if not is_heard_beside_cell(widget):
        return lambda: None
    kernel = _kernel(widget)
    cell = kernel.get_parent("shell")  # the message that runs the cell
    widget.comm._reply_subshell_for = None  # noqa: SLF001  (None: on the subshell of the message)

    def acknowledge() -> None:
        # these are ipykernel's own: if one fails, the front end only holds back the next change
        with suppress(Exception):
            kernel.shell.set_parent(cell)
            kernel._publish_status("idle", "shell")  # noqa: SLF001

    return acknowledge


def _kernel(widget: Any) -> Any:
    return getattr(getattr(widget, "comm", None), "kernel", None)
