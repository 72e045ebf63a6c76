"""Reads the items of any source: an address, a path, a text, an open file, an iterator.

Rule: blocking sources (files, pipes, generators) are read in a thread, not on the event loop, and
stopping does not wait for them.
"""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from ..codecs import classify_source, read_chunks
from ..errors import UsageError
from ..wire import FileDecompressor, decompress_body, read_unzipped

PAUSE = 0.2  # seconds between two looks at a file that is being written
_END: Any = object()  # in place of an item: the iterator is exhausted


async def read_items(
    source: Any, done: Callable[[], bool] = lambda: True, *, follow: bool = False
) -> AsyncGenerator[Any, None]:
    """Yield the items of a source.

    `done` returns whether the items so far are complete. Until then a stream over HTTP with ids is
    resumed after a break, and a file is read on at its end if `follow`. The caller's asynchronous
    iterator is closed at the end. Raises UsageError, ModelError, WireError.
    """
    items = _open_source(source, done, follow=follow)
    try:
        async for item in items:
            yield item
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            await close()


def _open_source(source: Any, done: Callable[[], bool], *, follow: bool) -> AsyncIterable[Any]:
    """Return the items of a source, by its kind (`codecs.classify_source`)."""
    kind = classify_source(source)
    if kind == "url":
        from .http_stream import read_stream  # loads httpx, which other sources do not need

        return read_stream(source, done=done)
    if kind == "text":
        return _iterate([source] if isinstance(source, str) else read_unzipped([source]))
    if kind == "path":
        return _read_file(Path(os.path.expanduser(source)), done if follow else None)
    if kind == "response":
        return _read_response(source)
    if kind == "async":
        items: AsyncIterable[Any] = source
        return items
    if kind == "file":
        return _iterate(read_unzipped(read_chunks(source)))
    if kind == "items":
        return _iterate(source)
    raise UsageError(
        f"A {type(source).__name__} cannot be watched. Give an address, a path, an open file or an iterator."
    )


def _read_response(source: Any) -> AsyncIterable[bytes]:
    """Return the body of an open HTTP response, decompressed in pieces.

    httpx itself would decompress each chunk whole, whatever size that has.
    """
    # of another library, or read already: then only the decoded body can be had
    if not hasattr(source, "aiter_raw") or getattr(source, "is_stream_consumed", False):
        body: AsyncIterable[bytes] = source.aiter_bytes()
        return body
    return decompress_body(source.aiter_raw(), source.headers.get("content-encoding", ""))


async def _read_file(path: Path, done: Callable[[], bool] | None) -> AsyncGenerator[bytes, None]:
    """Yield a file, unzipped if need be; with `done`, read on at its end until that is True."""
    opening = _CancellableOpen(path)
    with opening:
        try:
            file = await _in_thread(opening.open)
        except (OSError, ValueError) as fault:  # ValueError: the path holds NUL
            raise UsageError(f"{path}: {getattr(fault, 'strerror', None) or fault}.") from None
        unzipped = FileDecompressor()
        while True:
            async for chunk in _iterate(read_chunks(file)):
                for piece in unzipped.feed(chunk):
                    yield piece
            if done is None or done():
                break
            await anyio.sleep(PAUSE)
        if tail := unzipped.close():
            yield tail


class _CancellableOpen:
    """Opens a file in a thread.

    Opening a named pipe blocks until its other end is open. If the `with` block ends before that,
    the thread closes the file as soon as it is open.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._file: Any = None
        self._is_left = False

    def open(self) -> Any:
        """Open the file. Raises OSError, or ValueError for a path with NUL."""
        file = self._path.open("rb", buffering=0)
        with self._lock:
            self._file = file
            if self._is_left:
                file.close()
        return file

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._is_left = True
            if self._file is not None:
                self._file.close()


async def _iterate(items: Iterable[Any]) -> AsyncGenerator[Any, None]:
    """Yield the items of an iterable; unless it is a list or tuple, a thread waits for each."""
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
