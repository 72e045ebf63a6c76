"""What the front end of a cell can do: which view it gets, and whether clicks arrive while the cell
runs.

Why: the kernel is not told what shows its output. A Jupyter notebook sends cell ids, a console a
keyboard and no ids, a headless runner neither; our own runner says what it is.

Rules
- An option always overrides. When in doubt the view works, if more plainly.
- Clicks: ipykernel 7.4 handles messages beside an awaited cell; 7.0 to 7.3 do in a subshell, if the
  front end has made one, which it does when the first widget of the kernel is shown: `may_click` is
  known before, `can_click` only then.
"""

from __future__ import annotations

import sys
from typing import Any

from .identity import HEADLESS, UNSHOWN, Cell


def headless(cell: Cell) -> bool:
    """Return whether nobody looks on: our runner, plain nbclient, a script that talks
    to a kernel.
    """
    return bool(cell.sent.get(HEADLESS)) or (cell.kernel and not cell.id and not cell.stdin)


def unshown(cell: Cell) -> bool:
    """Return whether what a cell shows is dropped, as a test drops it: then nothing needs to be
    drawn.
    """
    return cell.sent.get(UNSHOWN) is True


def view_kind(option: str, cell: Cell) -> str:
    """Return `widgets`, `html` or `text` for a `--view` option (`auto` chooses)."""
    if option != "auto":
        return option
    if not cell.kernel:
        return "text"
    if headless(cell):
        return "html"
    if not cell.id and "google.colab" not in sys.modules:
        return "text"  # jupyter console: it shows no updates of a display
    return "widgets"


def may_click(cell: Cell) -> bool:
    """Return whether clicks can arrive while the cell runs, perhaps only once widgets are shown."""
    return cell.kernel and not headless(cell) and _version() >= (7, 0)


def can_click(shell: Any, cell: Cell) -> bool:
    """Return whether a button pressed while the cell runs is heard at once; from any thread."""
    if not may_click(cell):
        return False
    try:
        return hears_beside_cells() or bool(
            shell.kernel.shell_channel_thread.manager.list_subshell()
        )
    except Exception:  # half-private names: what cannot be found out does not work
        return False


def hears_beside_cells() -> bool:
    """Return whether the kernel handles messages beside an awaited cell, whatever the front end
    does (ipykernel 7.4).
    """
    return _version() >= (7, 4)


def _version() -> tuple[int, ...]:
    """Return the first two numbers of ipykernel's version, nothing if there is none."""
    try:
        import ipykernel

        return tuple(ipykernel.version_info[:2])
    except (ImportError, AttributeError):
        return ()
