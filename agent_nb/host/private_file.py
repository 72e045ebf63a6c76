"""Write files that only the user can read, such as keys, permissions and journals.

Why: on a shared machine other users must not read these files, not even while they are written.

Rule: a file appears complete or not at all: it is written beside its target, then moved or linked.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path


def write_private(target: Path, data: bytes, *, keep: bool = False) -> None:
    """Write a file of mode 0600; missing folders get mode 0700. Raises OSError.

    An existing file is replaced; with `keep` it stays as it is, and `data` is not written.
    """
    make_private_folder(target.parent)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")  # mode 0600
    new = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if keep:
            link_file(new, target)
        else:
            new.replace(target)
    finally:
        with suppress(OSError):  # moved files are gone already
            new.unlink()


def make_private_folder(folder: Path) -> None:
    """Make a folder and its missing parents with mode 0700. Raises OSError."""
    if not folder.is_dir():
        make_private_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def link_file(new: Path, target: Path) -> None:
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
