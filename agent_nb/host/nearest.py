"""A file of the notebook's folder or of a folder above it, up to the repository or the user's home.

Rules: the nearest file counts. Finding a file reads nothing and allows nothing (`trust`).
"""

from __future__ import annotations

import os
from pathlib import Path


def find_nearest(name: str, folder: Path | None = None) -> Path | None:
    """Return the file `name` of a folder (None: the current one) or the next above it, or None."""
    try:
        here, home = Path.cwd() if folder is None else folder.resolve(), Path.home()
    except (OSError, RuntimeError):
        return None
    folder_path, last = str(here), str(home)  # each cell looks: text is quicker than paths
    while True:
        if os.path.isfile(file := os.path.join(folder_path, name)):
            return Path(file)
        above = os.path.dirname(folder_path)
        if folder_path in (last, above) or os.path.exists(os.path.join(folder_path, ".git")):
            return None
        folder_path = above
