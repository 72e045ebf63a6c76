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
        start, home = Path.cwd() if folder is None else folder.resolve(), Path.home()
    except (OSError, RuntimeError):
        return None
    folder_path, last = str(start), str(home)  # done for each cell: text is quicker than paths
    while True:
        if os.path.isfile(file := os.path.join(folder_path, name)):
            return Path(file)
        above = os.path.dirname(folder_path)
        if folder_path in (last, above) or os.path.exists(os.path.join(folder_path, ".git")):
            return None
        folder_path = above
