"""How many files and connections this process may open.

A thousand answers at once need a thousand connections. Many systems give a process a limit of 1,024
open files, which the process may raise by itself.
"""

from __future__ import annotations

import importlib
from contextlib import suppress
from types import ModuleType

resource: ModuleType | None = None
with suppress(ImportError):  # Windows has no such module
    resource = importlib.import_module("resource")

SPARE = 4096  # files in reserve: for the kernel, the user, and three more for each call on a tape


def allow_files(files: int) -> None:
    """Raise the limit to `files` plus `SPARE`, or as near to that as the system allows.

    Never lowers the limit; does nothing on Windows, which has none.
    """
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = files + SPARE
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    most = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    if most > soft:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def read_file_limit() -> int:
    """Return how many files may be open at once, 0 if that is unknown or unlimited."""
    if resource is None:
        return 0
    soft: int = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return max(0, soft)
