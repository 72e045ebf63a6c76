"""Locks that tell whether the process that wrote a file still runs.

Why: a process that was killed cannot tidy up; the system lets go of its locks, whatever became of
it.

Rule: where the system has no such locks (Windows) the answer is None, and the caller must know
another way.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if sys.platform == "win32":

    def take(file: int) -> None:
        """Lock an open file for this process. Does nothing here."""

    def held(path: Path) -> bool | None:
        """Return whether a process holds the lock on a file. It cannot be told here."""
        return None

else:
    import fcntl

    def take(file: int) -> None:
        """Lock an open file for this process until it is closed. Raises OSError when another has
        it.
        """
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def held(path: Path) -> bool | None:
        """Return whether a process holds the lock on a file. Raises OSError when the file cannot be
        opened.
        """
        file = os.open(path, os.O_RDONLY)
        try:
            take(file)
        except BlockingIOError:
            return True
        else:
            return False
        finally:
            os.close(file)
