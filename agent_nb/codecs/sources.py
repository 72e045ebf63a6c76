"""Classifies and reads the source of a stream: an address, path, text, open file or iterator.

`decode`, `convert` and `watch` take any source in one argument, and must agree on its kind. To
classify a source does not open it. `read_items` reads every source that needs no network and no
event loop; `watch` reads the rest.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from ..errors import UsageError
from ..wire import read_unzipped

CHUNK_SIZE = 64 * 1024  # bytes
#: `text`: text or bytes of the stream itself; `response`: an open HTTP response; `async`: an async
#: iterator; `items`: another iterable; "": not a source.
SourceKind = Literal["url", "text", "path", "response", "async", "file", "items", ""]
# beginnings by which a text is taken for the stream itself, not for a path
_TEXT_STARTS = ("{", "[", ":", "data:", "event:", "id:", "retry:", "\ufeff")


def classify_source(source: Any) -> SourceKind:
    """Return the kind of a source."""
    if is_url(source):
        return "url"
    if is_text(source) or isinstance(source, bytes | bytearray | memoryview):
        return "text"
    if isinstance(source, str | os.PathLike):
        return "path"
    if hasattr(source, "aiter_bytes"):
        return "response"
    if hasattr(source, "__aiter__"):
        return "async"
    if hasattr(source, "read"):
        return "file"
    return "items" if isinstance(source, Iterable) else ""


def is_url(source: Any) -> bool:
    """Return whether a source is a web address."""
    return isinstance(source, str) and source.lower().startswith(("http://", "https://"))


def is_text(source: Any) -> bool:
    """Return whether a source is text: blank, of several lines, or beginning like JSON or SSE."""
    if not isinstance(source, str) or is_url(source):
        return False
    return not source.strip() or "\n" in source.strip() or source.lstrip().startswith(_TEXT_STARTS)


def is_live(source: Any, follow: bool) -> bool:
    """Return whether the items of a source are still to come, unlike those of a file or list.

    `follow`: the caller waits for lines that are appended to the file.
    """
    kind = classify_source(source)
    if follow or kind == "url":
        return True
    if kind == "path":
        return _is_pipe(Path(os.path.expanduser(source)))
    return not (kind == "text" or isinstance(source, list | tuple) or _is_regular_file(source))


def _is_pipe(path: Path) -> bool:
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):  # ValueError: the path holds NUL
        return False


def _is_regular_file(source: Any) -> bool:
    """Return whether a source is an open file on disk or a buffer in memory."""
    if not hasattr(source, "read"):
        return False
    try:
        return stat.S_ISREG(os.fstat(source.fileno()).st_mode)
    except (OSError, AttributeError, TypeError, ValueError):
        return hasattr(source, "getvalue")  # `BytesIO` and `StringIO` have no file number


def name_source(source: Any) -> str:
    """Return a short name of a source: no folder of this machine, no password, no query.

    The name is the address, the name of the file, or words such as "a stream".
    """
    kind = classify_source(source)
    if kind == "url":
        parts = urlsplit(source)
        return f"{parts.netloc.rpartition('@')[2]}{parts.path}"
    if kind == "path":
        return Path(source).name
    return {"text": "a text", "file": "a file"}.get(kind, "a stream")


def read_items(source: Any) -> Iterator[Any]:
    """Yield the items of a source: chunks of a file, the items of an iterable.

    Raises UsageError if it is a missing file, or can only be read asynchronously.
    """
    kind = classify_source(source)
    if kind == "text":
        yield from read_unzipped([source])
    elif kind == "path":
        yield from read_unzipped(_read_file(Path(os.path.expanduser(source))))
    elif kind == "file":
        yield from read_unzipped(read_chunks(source))
    elif kind == "items":
        yield from source
    else:
        name = name_source(source) if kind else f"A {type(source).__name__}"
        or_watch = ", or watch it" if kind else ""
        raise UsageError(
            f"{name} cannot be decoded. Give a path, a text, an open file or an iterable{or_watch}."
        )


def _read_file(path: Path) -> Iterator[Any]:
    try:
        with path.open("rb") as file:
            yield from read_chunks(file)
    except (OSError, ValueError) as fault:  # ValueError: the path holds NUL
        reason = getattr(fault, "strerror", None) or fault
        raise UsageError(f"{path}: {reason}. A text to decode begins with {{ or data:.") from fault


def read_chunks(file: Any) -> Iterator[Any]:
    """Yield the chunks of an open file as soon as they arrive, so that a pipe is read live."""
    read = getattr(file, "read1", None) or file.read  # `read` would wait for a whole chunk
    while chunk := read(CHUNK_SIZE):
        yield chunk
