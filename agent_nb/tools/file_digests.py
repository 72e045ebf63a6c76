"""Digests of the files that the calls of a run read.

Why: when a file has changed, a recorded result made from it is stale.

Rule: only a file that is the same at each read and at the end of the run has a digest. Its name is
relative to the notebook's folder, and is checked by `paths` at each opening.
"""

from __future__ import annotations

import hashlib
import io
import os
from typing import Any

from ..errors import ToolError
from .paths import ConfinedPath, open_confined

LARGEST = 64_000_000  # bytes of a file that is hashed
# key in `ToolContext.state`: name -> digest, "" for one that changed between reads or is too large
_STATE = "files read"


def add_digest(state: dict[str, Any], path: ConfinedPath, raw: io.BufferedReader) -> None:
    """Add the digest of the file `path`, just opened as `raw`, to `state` (`ToolContext.state`)."""
    digests = state.setdefault(_STATE, {})
    name, digest = "/".join(path.parts), _hash_file(raw)
    digests[name] = digest if digests.get(name, digest) == digest else ""


def list_unchanged_digests(state: dict[str, Any], folder: str) -> dict[str, str]:
    """Return the digests by name of the files that were read and have not changed since."""
    return {
        name: digest
        for name, digest in sorted(state.get(_STATE, {}).items())
        if digest and digest == digest_file(folder, name)
    }


def digest_file(folder: str, name: str) -> str:
    """Return the digest of a file below `folder`, "" if it cannot be read or is too large."""
    try:
        with open_confined(folder, name) as raw:
            return _hash_file(raw)
    except (ToolError, OSError):
        return ""


def _hash_file(raw: io.BufferedReader) -> str:
    if os.fstat(raw.fileno()).st_size > LARGEST:
        return ""
    # 64 bits are enough to notice a change
    digest = hashlib.file_digest(raw, "sha256").hexdigest()[:16]
    raw.seek(0)  # the tool reads the file after this
    return digest
