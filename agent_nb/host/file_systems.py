"""Which file systems are local: only there a write-ahead log with shared memory is safe.

Why a list of local types and not of network types: an unknown type then counts as remote, which is
slower but never wrong. The standard library does not name the type of a file system.

Rules: Linux says it in `/proc/self/mounts` (fstab(5)). Without such a table, every
file system counts as remote.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

MOUNTS = Path("/proc/self/mounts")
_TYPES = "ext2 ext3 ext4 xfs btrfs zfs bcachefs f2fs jfs reiserfs nilfs2 tmpfs ramfs overlay aufs ecryptfs ufs hfs hfsplus apfs"
LOCAL = frozenset(_TYPES.split())
_OCTAL = re.compile(r"\\([0-7]{3})")


def is_local(path: Path, mounts: str | None = None) -> bool:
    """Return whether `path` is known to be on a local file system.

    mounts: the text of the mount table (default: this process's).
    """
    try:
        table = MOUNTS.read_text("utf-8", "surrogateescape") if mounts is None else mounts
    except OSError:
        return False
    place = os.path.realpath(path)
    kind, depth = "", -1
    for line in table.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = _OCTAL.sub(lambda m: chr(int(m[1], 8)), fields[1]).rstrip("/")
        # a later mount hides an earlier one at the same point
        if len(point) >= depth and (place == point or place.startswith(point + "/")):
            kind, depth = fields[2], len(point)
    return kind in LOCAL
