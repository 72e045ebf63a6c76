"""Checks whether a file belongs to another user.

Everyone can write to a folder such as /tmp. Another user who places a file at our path first could
read what we store in it, or change it.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

ROOT = 0


def belongs_to_other(path: Path) -> bool:
    """Return whether a file, or the symbolic link at `path`, is another user's. Raises OSError.

    Files of this user and of root are not. Nor are files with the owner that a new file gets in the
    same folder: network file systems may give all files one owner. For root, a file is another's
    only in a folder that everyone can write to, because root works in the folders of users. On
    Windows every file counts as the user's own.
    """
    owner = os.lstat(path).st_uid
    user = _user()
    if owner in (user, ROOT):
        return False
    if user == ROOT and not os.stat(path.parent).st_mode & stat.S_IWOTH:
        return False
    return owner != _owner_of_new_file(path.parent)


def _user() -> int:
    """Return the id of this process's user; ROOT on Windows, where every file has the owner 0."""
    return os.geteuid() if hasattr(os, "geteuid") else ROOT


def _owner_of_new_file(folder: Path) -> int:
    """Return the owner of new files in a folder; -1, which no file has, where none can be made."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            return os.fstat(file.fileno()).st_uid
    except OSError:
        return -1
