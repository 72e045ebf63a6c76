"""Locks that show whether the process that wrote a file still runs.

Why: a killed process cannot clean up, but the operating system releases its locks. On Windows,
which has no such locks, the caller judges by something else, such as the age of the file.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if sys.platform == "win32":

    def take_lock(file: int) -> None:
        """Do nothing: Windows has no locks of this kind."""

    def is_locked(path: Path) -> bool | None:
        """Return None: whether a process still writes the file is unknown on Windows."""
        return None

else:
    import fcntl

    def take_lock(file: int) -> None:
        """Lock an open file (its descriptor) until it is closed.

        Raises OSError if the lock is held through another open file.
        """
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def is_locked(path: Path) -> bool | None:
        """Return whether a process holds the lock on a file. Raises OSError if the file is gone."""
        # the only way to ask is to take a lock; closing the file releases it at once. The lock is
        # shared, so that two processes that ask do not take each other for the writer
        file = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            return False
        finally:
            os.close(file)
