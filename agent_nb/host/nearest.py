"""A file of the notebook's folder or of a folder above it, up to the repository or the user's home.

Rules: the nearest file counts. Finding a file reads nothing and allows nothing (`trust`).
"""

from __future__ import annotations

from pathlib import Path


def nearest(name: str, folder: Path | None = None) -> Path | None:
    """Return the file `name` of a folder (None: the current one) or the next above it, or None."""
    try:
        here, home = Path.cwd() if folder is None else folder.resolve(), Path.home()
    except (OSError, RuntimeError):
        return None
    for place in (here, *here.parents):
        if (place / name).is_file():
            return place / name
        if (place / ".git").exists() or place == home:
            return None
    return None
