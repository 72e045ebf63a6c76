"""Find a file in the notebook's folder or a folder above it, such as `.env` or a configuration.

Why: a notebook in a sub-folder uses the files of its project.

Rule: the search ends with the root of the repository (a folder with `.git`), the user's home or the
root of the disk.
"""

from __future__ import annotations

import os
from pathlib import Path


def find_nearest(name: str, folder: Path | None = None) -> Path | None:
    """Return the nearest file `name`, in `folder` (None: the current one) or above it, or None."""
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
