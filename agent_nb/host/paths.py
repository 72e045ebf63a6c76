"""Finds the files of a project from a folder upwards, and writes paths as people read them.

A notebook in a sub-folder uses the files of its project, such as `.env`. A message is shorter
without the home folder, and does not name the user.
"""

from __future__ import annotations

import os
from pathlib import Path


def shorten_path(path: Path) -> str:
    """Return a path as text, the home folder as `~`."""
    # not `Path.home()`, which raises an error for a user without a home
    home = Path(os.path.expanduser("~"))
    return str(Path("~", path.relative_to(home)) if path.is_relative_to(home) else path)


def find_nearest(name: str, folder: Path | None = None) -> Path | None:
    """Return the nearest file `name`, in `folder` (None: the current one) or above it, or None.

    The last folder searched is the root of the repository (it holds `.git`), the user's home or the
    root of the disk.
    """
    try:
        folder_path = str(Path.cwd() if folder is None else folder.resolve())
    except (OSError, RuntimeError):  # the folder was deleted, or is a link to itself
        return None
    home = os.path.expanduser("~")
    while True:  # done for each cell: text is quicker than paths
        if os.path.isfile(file := os.path.join(folder_path, name)):
            return Path(file)
        above = os.path.dirname(folder_path)
        if folder_path in (home, above) or os.path.exists(os.path.join(folder_path, ".git")):
            return None
        folder_path = above
