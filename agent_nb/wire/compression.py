"""Decompresses bodies in small pieces: memory stays bounded whatever a body expands to.

httpx decodes a whole chunk at once, and encodings within encodings, so that 2 KB become
4 GB before any limit is checked. Here `feed` is lazy and yields at most `PIECE` decompressed bytes
at a time, so that its caller can stop between two pieces.
"""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from typing import Any

import anyio.lowlevel

from ..errors import WireError

PIECE = 64 * 1024  # bytes
_SLICE = 8 * 1024  # bytes decompressed at once: zlib copies the rest for each piece and member
_KNOWN = ("gzip", "x-gzip", "deflate")
_MAGIC = b"\x1f\x8b"  # the first bytes of a gzipped file
_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32  # the first bytes decide


class Decompressor:
    """Decompresses one body; `encoding` is the value of its Content-Encoding header.

    gzip and deflate (zlib) are read, once; without an encoding, data pass unchanged. Raises
    WireError for any other encoding, and for several.
    """

    def __init__(self, encoding: str = "") -> None:
        parts = [part.strip() for part in encoding.lower().split(",")]
        names = [part for part in parts if part not in ("", "identity")]
        if len(names) > 1 or (names and names[0] not in _KNOWN):
            raise WireError(
                f"The answer is compressed as {encoding[:60]!r}; only gzip or deflate is read, and only once."
            )
        self._compressed = bool(names)
        self._zlib: Any = None  # None: no member of the body is open

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what `data` decodes to, piece by piece. Raises WireError."""
        if not self._compressed:
            yield data
            return
        for start in range(0, len(data), _SLICE):
            yield from self._feed_slice(data[start : start + _SLICE])

    def _feed_slice(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._zlib is None:
                data = data.lstrip(b"\0")  # members may be padded
                self._zlib = zlib.decompressobj(_GZIP_OR_ZLIB) if data else None
                continue
            try:
                piece = self._zlib.decompress(data, PIECE)
                while piece:
                    yield piece
                    piece = self._zlib.decompress(self._zlib.unconsumed_tail, PIECE)
            except zlib.error:
                raise WireError("The data are compressed, and cannot be decompressed.") from None
            data = self._zlib.unused_data
            if self._zlib.eof:
                self._zlib = None

    def close(self) -> None:
        """End the body. Raises WireError if it broke off."""
        if self._zlib is not None:
            raise WireError("The compressed data broke off.")


class FileDecompressor:
    """Decompresses a file that may be gzipped, as its first bytes show."""

    def __init__(self) -> None:
        self._head = b""
        self._body: Decompressor | None = None

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield what `data` decodes to, piece by piece. Raises WireError."""
        if self._body is None:
            data = self._head + data
            if len(data) < len(_MAGIC) and _MAGIC.startswith(data):
                self._head = data
                return
            self._body = Decompressor("gzip" if data.startswith(_MAGIC) else "")
        yield from self._body.feed(data)

    def close(self) -> bytes:
        """End the file; return what was held back. Raises WireError if it broke off."""
        if self._body is not None:
            self._body.close()
            return b""
        return self._head


def read_unzipped(chunks: Iterable[Any]) -> Iterator[Any]:
    """Yield the unzipped chunks of a file that may be gzipped; text passes. Raises WireError."""
    file = FileDecompressor()
    for chunk in chunks:
        if isinstance(chunk, bytes | bytearray | memoryview):
            yield from file.feed(bytes(chunk))
        else:
            yield chunk
    rest = file.close()
    if rest:
        yield rest


def decompress_body(
    source: AsyncGenerator[bytes, None], encoding: str = ""
) -> AsyncGenerator[bytes, None]:
    """Return the body of `source`, decompressed by `encoding`; the generator closes `source`.

    Between two pieces other tasks run, so that a stop or time limit takes effect. Raises WireError
    at once for an unknown encoding, and while it is read for damaged data.
    """
    return _decompress(source, Decompressor(encoding))


async def _decompress(
    source: AsyncGenerator[bytes, None], decompressor: Decompressor
) -> AsyncGenerator[bytes, None]:
    async with aclosing(source):
        async for data in source:
            for number, piece in enumerate(decompressor.feed(data)):
                if number:
                    await anyio.lowlevel.checkpoint()
                yield piece
        decompressor.close()
