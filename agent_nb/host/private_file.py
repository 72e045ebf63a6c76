"""Writes files that only the user can read, such as keys, permissions and journals.

On a shared machine other users must not read these files, not even while they are written.

Rule: code that reads such a file, changes it and writes it back holds its lock (`hold_lock`), or it
could undo a change of another process. On Windows the lock does nothing.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def write_private(target: Path, data: bytes, *, keep: bool = False) -> None:
    """Write a file of mode 0600; missing folders get mode 0700. Raises OSError.

    The file appears complete or not at all. An existing one is replaced, or with `keep` left alone.
    """
    make_private_folder(target.parent)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")  # mode 0600
    new = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if keep:
            _link_file(new, target)
        else:
            new.replace(target)
    finally:
        with suppress(OSError):  # moved files are gone already
            new.unlink()


@contextmanager
def hold_lock(target: Path) -> Iterator[None]:
    """Let no other process change `target` until the block ends: a lock on `.NAME.lock` beside it.

    Wait for the process that holds the lock. Where no lock file can be made, do nothing: the target
    cannot be written there, either.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    lock = -1
    with suppress(OSError):
        make_private_folder(target.parent)
        lock = os.open(target.with_name(f".{target.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if lock >= 0:
            os.close(lock)


def make_private_folder(folder: Path) -> None:
    """Make a folder and its missing parents with mode 0700. Raises OSError."""
    if not folder.is_dir():
        make_private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def _link_file(new: Path, target: Path) -> None:
    """Give a file the name `target`, unless that is taken. Raises OSError.

    `new` may be left: the caller removes it.
    """
    try:
        os.link(new, target)  # fails if the target exists, unlike a rename
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        # not safe: another process may make the target between these two lines
        if not os.path.lexists(target):
            new.rename(target)
