"""Read any stream over HTTP as bytes, for the codec that decodes it; resume numbered ones.

Rules
- Server-sent events with ids: only whole frames are passed on, up to the newest id. After a break
  the stream is requested again with `Last-Event-ID`, waiting longer each time nothing new came,
  until the caller has what it wants (`done`), the server ends the stream (204), or
  nothing came for `Backoff.patience` seconds.
- Such a request also has `?lastEventId=` in its address, for servers that read it there, until one
  refuses it (an address may be signed).
- After a reconnection, frames are dropped while their id and content are those of frames that came
  before, up to the first that differs: a server may repeat everything, or from an earlier place.
  Within a connection nothing is dropped, since ids need not be unique.
- Every other stream is passed on as it comes; a break is an error.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from urllib.parse import quote, urlsplit, urlunsplit

import httpx

from ..errors import ModelError, UsageError, WireError
from ..wire import SSEDecoder
from .connect import (
    Backoff,
    Patience,
    Target,
    connect,
    describe_fault,
    open_response,
    read_beginning,
    split_address,
    stream_body,
)

# the end of a frame; after CR a LF may still come
_ENDS = re.compile(rb"\r\n\r\n|\n\n|\r\r(?!\n)")
_ID = "lastEventId"  # in the address
# any stream that a codec may know
ACCEPT = "text/event-stream, application/x-ndjson, application/json;q=0.9, */*;q=0.1"


class Frames:
    """Passes on whole frames up to the newest id, without repeats.

    `last_id` is that id, "" before the first.
    """

    def __init__(self) -> None:
        self.last_id = ""
        self._buffer = bytearray()
        self._held: list[tuple[bytes, int]] = []  # frames since the newest id, with their hashes
        self._taken = array("q")  # hashes of the frames that were passed on, in order
        self._resume = 0  # how many of them a server that honours the newest id does not repeat
        self._repeats: _Repeats | None = None  # in the part of a connection that may repeat

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
        if len(self._buffer) > SSEDecoder.FRAME_LIMIT:
            raise WireError(
                f"A frame is larger than {SSEDecoder.FRAME_LIMIT} bytes.",
                raw=self._buffer[:200].decode("utf-8", "replace"),
            )
        return b"".join(out)

    def _take(self, frame: bytes, out: list[bytes]) -> None:
        """Hold back a frame that is not a repeat; pass on all of them when one has an id."""
        decoder = SSEDecoder()
        decoded = decoder.feed(frame)  # none if the frame has no data
        # a bare id may be a repeat, so it counts only once repeats are over
        number = (decoder.last_event_id or "") if decoded or self._repeats is None else ""
        mark = hash((number, decoded[0].event, decoded[0].data)) if decoded else 0
        if decoded and self._repeats is not None:
            if self._repeats.knows(mark, numbered=bool(number)):
                return
            self._repeats = None
        self._held.append((frame, mark))
        if number or not self.last_id:
            self.last_id = number or self.last_id
            out.append(self._pass_held())
            self._resume = len(self._taken)

    def _pass_held(self) -> bytes:
        """Return the frames that were held back; remember them as taken."""
        held, self._held = self._held, []
        self._taken.extend(mark for _, mark in held if mark)
        return b"".join(frame for frame, _ in held)

    def end_connection(self) -> bytes:
        """Return what was held back when a connection ends properly.

        The torn frame at its end is among it only if it cannot come again.
        """
        torn = b"" if self.last_id else bytes(self._buffer)
        held = self._pass_held()
        self.drop_held()
        return held + torn

    def drop_held(self) -> None:
        """Drop what was held back when a connection breaks: it comes again."""
        self._held, self._buffer = [], bytearray()
        self._repeats = _Repeats(self._taken, self._resume)


class _Repeats:
    """Recognises, at the beginning of a new connection, the frames that came on an earlier one.

    They repeat `taken` in its order: from the newest id on (`resume`), from the very first, or, if
    they have an id, from anywhere. Each is a hash of id, name and data.
    """

    def __init__(self, taken: array[int], resume: int) -> None:
        self._taken = taken
        self._starts: set[int] | None = {0, resume}  # None after a frame with an id
        # positions in `taken` that the next frame has if it continues a repetition
        self._next: set[int] = set()

    def knows(self, mark: int, *, numbered: bool) -> bool:
        """Return whether a frame repeats one that was taken."""
        places = self._next | (self._starts or set())
        if numbered and self._starts is not None:
            places, self._starts = set(range(len(self._taken))), None
        size = len(self._taken)
        self._next = {at + 1 for at in places if at < size and self._taken[at] == mark}
        return bool(self._next)


async def read_stream(
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
    if split_address(url) is None:
        raise UsageError(f"{url!r} is not an http address.")
    reader = _Reader(
        url, Target(url, token=token), {"Accept": ACCEPT, **(headers or {})}, backoff or Backoff()
    )
    async with aclosing(reader.read(done)) as chunks:
        async for chunk in chunks:
            yield chunk


class _Reader:
    """Reads one address over as many connections as it takes; see the rules."""

    def __init__(self, url: str, where: Target, headers: dict[str, str], backoff: Backoff) -> None:
        self._url, self._where, self._headers, self._backoff = url, where, headers, backoff
        self._frames = Frames()
        self._over = False
        self._in_address = True  # send the newest id in the address too

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
                why = describe_fault(fault)
                if not self._frames.last_id:
                    raise ModelError(
                        f"{self._where.place} broke off: {why}", code="attach"
                    ) from fault
                self._frames.drop_held()
            if self._over or not self._frames.last_id or done():
                return
            if self._frames.last_id != before:
                patience.renew()
            if patience.over(self._backoff.patience):
                raise ModelError(
                    f"{self._where.place} broke off, and nothing came for {patience.waited:.0f} s: {why}",
                    code="attach",
                )
            await patience.wait()

    async def _once(self, after: str) -> AsyncGenerator[bytes, None]:
        headers = httpx.Headers(self._headers, encoding="utf-8")
        if after:
            headers["Last-Event-ID"] = after
        url = _with_id(self._url, after) if after and self._in_address else self._url
        async with (
            connect(self._where) as client,
            aclosing(
                await open_response(
                    client, client.build_request("GET", url, headers=headers), self._backoff.idle
                )
            ) as response,
        ):
            await self._accept(response, again=bool(after))
            if self._over:
                return
            numbered = response.headers.get("content-type", "").startswith("text/event-stream")
            async with aclosing(stream_body(response)) as source:
                async for chunk in source:
                    if data := self._frames.feed(chunk) if numbered else chunk:
                        yield data
            if rest := self._frames.end_connection():
                yield rest

    async def _accept(self, response: httpx.Response, *, again: bool) -> None:
        """Raise on a refusal; a passing one counts as a break once the stream has begun."""
        self._over = response.status_code == 204
        if response.status_code < 300:
            return
        reason = (await read_beginning(response, 300)).decode("utf-8", "replace")
        passing = response.status_code >= 500 or response.status_code in (408, 425, 429)
        if again and (passing or response.status_code == 404 or self._in_address):
            self._in_address = self._in_address and passing
            raise httpx.ReadError(f"HTTP {response.status_code}: {reason}")
        raise UsageError(f"{self._where.place} answers {response.status_code}: {reason}")


def _with_id(url: str, number: str) -> str:
    """Return an address with `lastEventId`; the rest of its query stays as it is written."""
    parts = urlsplit(url)
    pairs = [pair for pair in parts.query.split("&") if pair and not pair.startswith(f"{_ID}=")]
    query = "&".join([*pairs, f"{_ID}={quote(number, safe='')}"])
    return urlunsplit(parts._replace(query=query))
