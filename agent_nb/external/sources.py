"""What can be watched: an address, a path, a text, an open file, an iterator; how it is told what
it is, and how its items come.

Rules
- Blocking sources (files, pipes, generators) are read in a thread. Stopping does not wait for them.
- A name of a source holds no folder, no password and no query.
"""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from ..codecs.sources import is_text, is_url
from ..errors import UsageError
from ..wire.compression import decoded

CHUNK = 64 * 1024
PAUSE = 0.2  # seconds between two looks at a file that is being written


async def items_of(
    source: Any, done: Callable[[], bool] = lambda: True, *, follow: bool = False
) -> AsyncGenerator[Any, None]:
    """Yield the items of a source. `done` says whether what came is complete: an address with
    numbered events is asked again until then, a file, with `follow`, looked at again. Raises
    UsageError, ModelError.
    """
    if is_url(source):
        found: AsyncIterable[Any] = _get(source, done)
    elif is_text(source) or isinstance(source, bytes | bytearray | memoryview):
        found = _each([source])
    elif isinstance(source, str | os.PathLike):
        found = _file(Path(source).expanduser(), done if follow else None)
    elif hasattr(source, "aiter_bytes"):
        found = _response(source)
    elif hasattr(source, "__aiter__"):
        found = source
    elif hasattr(source, "read"):
        found = _reading(source)
    elif isinstance(source, Iterable):
        found = _each(source)
    else:
        raise UsageError(
            f"A {type(source).__name__} cannot be watched. Give an address, a path, an open file or an iterator."
        )
    try:
        async for item in found:
            yield item
    finally:
        close = getattr(found, "aclose", None)
        if close is not None:
            await close()


def _response(source: Any) -> AsyncIterable[bytes]:
    """Return the body of an open HTTP response; its client would decompress whole
    chunks at once.
    """
    if not hasattr(source, "aiter_raw") or getattr(source, "is_stream_consumed", False):
        found: AsyncIterable[bytes] = source.aiter_bytes()
        return found
    return decoded(source.aiter_raw(), source.headers.get("content-encoding", ""))


async def _get(url: str, done: Callable[[], bool]) -> AsyncGenerator[bytes, None]:
    from .http_stream import read

    async with aclosing(read(url, done=done)) as chunks:
        async for chunk in chunks:
            yield chunk


async def _file(path: Path, done: Callable[[], bool] | None) -> AsyncGenerator[bytes, None]:
    door = _Door(path)
    with door:
        try:
            file = await _elsewhere(door.open)
        except OSError as fault:
            raise UsageError(f"{path}: {fault.strerror or fault}.") from None
        while True:
            async for chunk in _reading(file):
                yield chunk
            if done is None or done():
                return
            await anyio.sleep(PAUSE)


class _Door:
    """A file that a thread opens, which may take as long as somebody else takes to open the other
    end; closed whoever comes last.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._file: Any = None
        self._left = False

    def open(self) -> Any:
        """Open the file. Raises OSError."""
        file = self._path.open("rb", buffering=0)
        with self._lock:
            self._file = file
            if self._left:
                file.close()
        return file

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._left = True
            if self._file is not None:
                self._file.close()


async def _reading(file: Any) -> AsyncGenerator[Any, None]:
    read = getattr(file, "read1", None) or file.read
    while chunk := await _elsewhere(lambda: read(CHUNK)):
        yield chunk


async def _each(items: Iterable[Any]) -> AsyncGenerator[Any, None]:
    """Yield the items of a list at once, those of a generator as a thread gets them."""
    if isinstance(items, list | tuple):
        for item in items:
            yield item
        return
    iterator = iter(items)
    while (item := await _elsewhere(lambda: next(iterator, _END))) is not _END:
        yield item


_END: Any = object()


async def _elsewhere(work: Callable[[], Any]) -> Any:
    """Do blocking work in a thread; a cancellation leaves it behind."""
    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
