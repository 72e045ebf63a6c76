"""What a cell's front end can do: its kind of view, and whether clicks arrive while the cell runs.

Why: a kernel does not know what shows its output. A Jupyter notebook sends cell ids, a console
offers a keyboard and no ids, a headless runner neither; our own runner identifies itself. In doubt
the plainer view is chosen. ipykernel 7.4 handles messages beside an awaited cell; 7.0 to 7.3 on a
subshell, which the front end creates with the first widget: `can_click_now` is known only then.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from ...errors import UsageError
from ..identity import Cell


def is_headless(cell: Cell) -> bool:
    """Return whether no user watches: our runner, plain nbclient, a script with a kernel client."""
    # a notebook sends cell ids and a console offers a keyboard; these clients do neither
    is_bare_client = cell.kernel and not cell.id and not cell.stdin
    return is_bare_client or bool(cell.runner_options.get("headless"))


def is_unshown(cell: Cell) -> bool:
    """Return whether the outputs of a cell are dropped, as in a test: then nothing is drawn."""
    return cell.runner_options.get("unshown") is True


@lru_cache
def supports_widgets() -> bool:
    """Return whether widgets can be made: with ipywidgets 8, not 7.7 (Colab); imports nothing."""
    try:
        return int(version("ipywidgets").partition(".")[0]) >= 8
    except (PackageNotFoundError, ValueError):
        return False


def choose_view_kind(option: str, cell: Cell) -> str:
    """Return `widgets`, `html` or `text` for a `--view` option; `auto` chooses by front end.

    Raises UsageError if widgets are asked for where they cannot be made.
    """
    if option == "widgets" and not supports_widgets():
        raise UsageError(
            "The view `widgets` needs ipywidgets 8 or later. Leave --view out: the view is `html` then, and questions are asked on the keyboard."
        )
    if option != "auto":
        return option
    if not cell.kernel:
        return "text"  # a terminal
    if is_headless(cell):
        return "html"  # nobody clicks, and a file shows it without a kernel
    if not cell.id and "google.colab" not in sys.modules:
        return "text"  # jupyter console does not show updates of a display
    return "widgets" if supports_widgets() else "html"


def can_ever_click(cell: Cell) -> bool:
    """Return whether clicks can arrive while the cell runs, perhaps only after the first view."""
    return cell.kernel and not is_headless(cell) and _read_version() >= (7, 0)


def can_click_now(shell: Any, cell: Cell) -> bool:
    """Return whether clicks arrive now while the cell runs; from any thread."""
    if not can_ever_click(cell):
        return False
    try:
        return handles_messages_beside_cells() or bool(
            shell.kernel.shell_channel_thread.manager.list_subshell()
        )
    except Exception:  # half-private names of ipykernel, which other versions do not have
        return False


def handles_messages_beside_cells() -> bool:
    """Return whether the kernel handles messages beside an awaited cell (ipykernel 7.4)."""
    return _read_version() >= (7, 4)


def _read_version() -> tuple[int, ...]:
    """Return the first two numbers of ipykernel's version, () without ipykernel."""
    try:
        import ipykernel

        return tuple(ipykernel.version_info[:2])
    except (ImportError, AttributeError):
        return ()
