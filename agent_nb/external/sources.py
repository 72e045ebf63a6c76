"""Read the items of any source as they come: an address, a path, a text, an open file, an iterator.

Rules
- Blocking sources (files, pipes, generators) are read in a thread. Stopping does not wait for them.
- A file may be gzipped, which its first bytes say.
- An address is read by `http_stream`, which resumes it if its events are numbered.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from ..codecs import classify_source, read_chunks
from ..errors import UsageError
from ..wire import FileDecompressor, decompress_body, read_unzipped

PAUSE = 0.2  # seconds between two looks at a file that is being written
_END: Any = object()


async def items_of(
    source: Any, done: Callable[[], bool] = lambda: True, *, follow: bool = False
) -> AsyncGenerator[Any, None]:
    """Yield the items of a source.

    `done` returns whether what came is complete. Until then an address with numbered events is
    asked again, and, with `follow`, a file is read on. Raises UsageError, ModelError.
    """
    found = _opened(source, done, follow=follow)
    try:
        async for item in found:
            yield item
    finally:
        close = getattr(found, "aclose", None)
        if close is not None:
            await close()


def _opened(source: Any, done: Callable[[], bool], *, follow: bool) -> AsyncIterable[Any]:
    kind = classify_source(source)
    if kind == "url":
        return _get(source, done)
    if kind == "text":
        return _each([source] if isinstance(source, str) else read_unzipped([source]))
    if kind == "path":
        return _file(Path(source).expanduser(), done if follow else None)
    if kind == "response":
        return _response(source)
    if kind == "async":
        found: AsyncIterable[Any] = source
        return found
    if kind == "file":
        return _each(read_unzipped(read_chunks(source)))
    if kind == "items":
        return _each(source)
    raise UsageError(
        f"A {type(source).__name__} cannot be watched. Give an address, a path, an open file or an iterator."
    )


def _response(source: Any) -> AsyncIterable[bytes]:
    """Return the body of an open HTTP response, decompressed in pieces.

    Its client would decompress whole chunks at once.
    """
    if not hasattr(source, "aiter_raw") or getattr(source, "is_stream_consumed", False):
        found: AsyncIterable[bytes] = source.aiter_bytes()
        return found
    return decompress_body(source.aiter_raw(), source.headers.get("content-encoding", ""))


async def _get(url: str, done: Callable[[], bool]) -> AsyncGenerator[bytes, None]:
    from . import http_stream

    async with aclosing(http_stream.read_stream(url, done=done)) as chunks:
        async for chunk in chunks:
            yield chunk


async def _file(path: Path, done: Callable[[], bool] | None) -> AsyncGenerator[bytes, None]:
    door = _Door(path)
    with door:
        try:
            file = await _in_thread(door.open)
        except OSError as fault:
            raise UsageError(f"{path}: {fault.strerror or fault}.") from None
        unzipped = FileDecompressor()
        while True:
            async for chunk in _each(read_chunks(file)):
                for piece in unzipped.feed(chunk):
                    yield piece
            if done is None or done():
                break
            await anyio.sleep(PAUSE)
        if rest := unzipped.close():
            yield rest


class _Door:
    """A file that a thread opens.

    Opening a pipe blocks until its other end is open. If the reader leaves first, the thread closes
    the file.
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


async def _each(items: Iterable[Any]) -> AsyncGenerator[Any, None]:
    """Yield the items of a list at once, those of a generator as a thread reads them."""
    if isinstance(items, list | tuple):
        for item in items:
            yield item
        return
    iterator = iter(items)
    while (item := await _in_thread(lambda: next(iterator, _END))) is not _END:
        yield item


async def _in_thread(work: Callable[[], Any]) -> Any:
    """Do blocking work in a thread; a cancellation leaves the thread behind."""
    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
