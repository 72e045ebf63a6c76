"""Read any stream over HTTP as bytes, for the codec that decodes it; resume numbered ones.

Rules
- Server-sent events with ids: only whole frames are passed on, up to the newest id. After a break
  the stream is requested again with `Last-Event-ID`, waiting longer each time nothing new came,
  until the caller has what it wants (`done`), the server ends the stream (204), or
  nothing came for `Backoff.patience` seconds.
- Every other stream is passed on as it comes; a break is an error.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from urllib.parse import urlsplit

import httpx

from ..errors import ModelError, UsageError, WireError
from ..wire.sse import LIMIT, SSEDecoder
from .connect import Backoff, Patience, Target, beginning, body, connect

_ENDS = re.compile(rb"\r\n\r\n|\n\n|\r\r(?!\n)")
ACCEPT = "text/event-stream, application/x-ndjson, application/json;q=0.9, */*;q=0.1"


class Frames:
    """Bytes in, whole frames up to the newest id out. `last_id` is that id, "" before the first."""

    def __init__(self) -> None:
        self.last_id = ""
        self._buffer = bytearray()
        self._held: list[bytes] = []  # whole frames since the newest id
        # frames passed on at the end of a connection, after the newest id: they may come again
        self._given: list[bytes] = []

    def feed(self, chunk: bytes) -> bytes:
        """Return the whole frames up to the newest with an id; all of them while no id has come."""
        seen = max(len(self._buffer) - 3, 0)  # an end may have begun in the chunk before
        self._buffer += chunk
        out: list[bytes] = []
        start = 0
        for end in _ENDS.finditer(bytes(self._buffer[seen:])):
            self._take(bytes(self._buffer[start : seen + end.end()]), out)
            start = seen + end.end()
        del self._buffer[:start]
        if len(self._buffer) > LIMIT:
            raise WireError(
                f"A frame is larger than {LIMIT} bytes.",
                raw=self._buffer[:200].decode("utf-8", "replace"),
            )
        return b"".join(out)

    def _take(self, frame: bytes, out: list[bytes]) -> None:
        number = _id(frame)
        if not number and self._given[:1] == [frame]:
            del self._given[0]
            return
        self._held.append(frame)
        if number or not self.last_id:
            self.last_id = number or self.last_id
            out += self._held
            self._held, self._given = [], []

    def ended(self) -> bytes:
        """End a connection: return what was held back.

        The torn frame at its end is among it only if it cannot come again.
        """
        held, torn = b"".join(self._held), b"" if self.last_id else bytes(self._buffer)
        self._given = self._held if self.last_id else []
        self._held, self._buffer = [], bytearray()
        return held + torn

    def broken(self) -> None:
        """Drop what was held back when a connection breaks: it comes again."""
        self._held, self._buffer = [], bytearray()


def _id(frame: bytes) -> str:
    found = SSEDecoder().feed(frame)
    return next((f.id for f in reversed(found) if f.id), "") if b"id:" in frame else ""


async def read(
    url: str,
    *,
    token: str = "",
    headers: Mapping[str, str] | None = None,
    done: Callable[[], bool] = lambda: False,
    backoff: Backoff | None = None,
) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of any stream over HTTP, for the codec that decodes it.

    `done` returns whether what came is complete; a stream with ids is then not resumed. Raises
    UsageError if the address is invalid or the server refuses, ModelError when the stream breaks
    off for good, WireError when a frame is too large.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{url!r} is not an http address.")
    reader = _Reader(
        url, Target(url, token=token), {"Accept": ACCEPT, **(headers or {})}, backoff or Backoff()
    )
    async with aclosing(reader.read(done)) as chunks:
        async for chunk in chunks:
            yield chunk


class _Reader:
    def __init__(self, url: str, where: Target, headers: dict[str, str], backoff: Backoff) -> None:
        self._url, self._where, self._headers, self._backoff = url, where, headers, backoff
        self._frames = Frames()
        self._over = False

    async def read(self, done: Callable[[], bool]) -> AsyncGenerator[bytes, None]:
        patience = Patience(self._backoff)
        while True:
            before = self._frames.last_id
            why = "it ended before the run did"
            try:
                async with aclosing(self._once(before)) as chunks:
                    async for chunk in chunks:
                        yield chunk
            except (httpx.HTTPError, OSError) as fault:
                why = str(fault) or type(fault).__name__
                if not self._frames.last_id:
                    raise ModelError(
                        f"{self._where.place} broke off: {why}", code="attach"
                    ) from fault
                self._frames.broken()
            if self._over or not self._frames.last_id or done():
                return
            if self._frames.last_id != before:
                patience.renew()
            if patience.over(self._backoff.patience):
                raise ModelError(
                    f"{self._where.place} broke off, and nothing came for {self._backoff.patience:g} s: {why}",
                    code="attach",
                )
            await patience.wait()

    async def _once(self, after: str) -> AsyncGenerator[bytes, None]:
        headers = {**self._headers, **({"Last-Event-ID": after} if after else {})}
        async with (
            connect(self._where) as client,
            client.stream("GET", self._url, headers=headers) as response,
        ):
            await self._accept(response, again=bool(after))
            if self._over:
                return
            numbered = response.headers.get("content-type", "").startswith("text/event-stream")
            async with aclosing(body(response)) as source:
                async for chunk in source:
                    if data := self._frames.feed(chunk) if numbered else chunk:
                        yield data
            if rest := self._frames.ended():
                yield rest

    async def _accept(self, response: httpx.Response, *, again: bool) -> None:
        """Raise on a refusal; a passing one counts as a break once the stream has begun."""
        self._over = response.status_code == 204
        if response.status_code < 300:
            return
        said = (await beginning(response, 300)).decode("utf-8", "replace")
        if again and (response.status_code >= 500 or response.status_code in (404, 408, 425, 429)):
            raise httpx.ReadError(f"HTTP {response.status_code}: {said}")
        raise UsageError(f"{self._where.place} answers {response.status_code}: {said}")
