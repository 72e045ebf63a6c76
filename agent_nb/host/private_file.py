"""Files of the user's folders that only the user can read."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def write_private(target: Path, data: bytes) -> None:
    """Write a file atomically, with mode 0600 in a folder of mode 0700. Raises OSError."""
    _write_beside(target, data, lambda new: new.replace(target))


def make_private(target: Path, data: bytes) -> None:
    """Make a file with mode 0600, whole as soon as it is there; keep the one of another process.

    Raises OSError.
    """
    _write_beside(target, data, lambda new: put_file(new, target))


def _write_beside(target: Path, data: bytes, move: Callable[[Path], object]) -> None:
    """Write a file beside `target`, and let `move` put it there; leave nothing if that fails."""
    make_private_folder(target.parent)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        move(Path(name))
    finally:
        with suppress(OSError):
            Path(name).unlink()


def make_private_folder(folder: Path) -> None:
    """Make a folder with mode 0700, and so the parents that are missing. Raises OSError."""
    if not folder.is_dir():
        make_private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def put_file(new: Path, target: Path) -> None:
    """Move a file to its place unless one is there, which stays. Raises OSError."""
    try:
        os.link(new, target)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        if not os.path.lexists(target):
            new.rename(target)
