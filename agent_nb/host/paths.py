"""Write paths as people read them, with `~` for the home folder.

Why: a message is shorter without the home folder, and does not name the user.
"""

from __future__ import annotations

import os
from pathlib import Path


def shorten_path(path: Path) -> str:
    """Return a path as text, the home folder as `~`."""
    # not `Path.home()`, which raises an error for a user without a home
    home = Path(os.path.expanduser("~"))
    return str(Path("~", path.relative_to(home)) if path.is_relative_to(home) else path)
