"""What a source of a stream is: an address, a path, a text, an open file or an iterator.

Rules: pure looks, nothing is opened or read; the name of a source holds no folder, no password and
no query.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_TEXT = ("{", "[", ":", "data:", "event:", "id:", "retry:", "\ufeff")


def is_url(source: Any) -> bool:
    """Return whether a source is an address of the web."""
    return isinstance(source, str) and source.lower().startswith(("http://", "https://"))


def is_text(source: Any) -> bool:
    """Return whether a `str` is the stream itself, not the name of one."""
    if not isinstance(source, str) or is_url(source):
        return False
    return not source.strip() or "\n" in source.strip() or source.lstrip().startswith(_TEXT)


def is_live(source: Any, follow: bool) -> bool:
    """Return whether what a source gives is news: what stands in a file or a list is not."""
    if follow or is_url(source):
        return True
    if isinstance(source, str | os.PathLike) and not is_text(source):
        return _is_pipe(Path(source).expanduser())
    return not isinstance(source, str | bytes | bytearray | list | tuple) and not _is_regular(
        source
    )


def _is_pipe(path: Path) -> bool:
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def _is_regular(source: Any) -> bool:
    """Return whether a source is an open file on disk or a buffer in memory."""
    if not hasattr(source, "read"):
        return False
    try:
        return stat.S_ISREG(os.fstat(source.fileno()).st_mode)
    except (OSError, AttributeError, TypeError, ValueError):
        return hasattr(source, "getvalue")


def name_of(source: Any) -> str:
    """Return a short name of a source: no folder, no password, no query."""
    if is_url(source):
        parts = urlsplit(source)
        return f"{parts.netloc.rpartition('@')[2]}{parts.path}"
    if isinstance(source, str | os.PathLike) and not is_text(source):
        return Path(source).name
    return (
        "a text"
        if isinstance(source, str | bytes | bytearray)
        else "a file"
        if hasattr(source, "read")
        else "a stream"
    )
