"""Reads any stream over HTTP as bytes for its codec; resumes server-sent events that have ids.

A long run of another system should survive a break of its connection. Servers differ in how they
resume a stream, and from which event. A break of a stream without ids is an error.

Rules
- Server-sent events with ids are passed on in whole frames, up to the newest id: a server that
  resumes at that id repeats the frames after it.
- When its connection breaks or ends, such a stream is requested again with `Last-Event-ID`, until
  the caller has everything (`done`), the server says so (status 204), or `Backoff.patience` seconds
  bring no new id.
- The repeated request also has `?lastEventId=` in its address, for servers that read it there. If a
  server refuses it, later requests leave it out: a signed address must not change.
- A new connection may repeat events: its first frames are dropped while id and content equal those
  of earlier frames, in order. After the first new frame none is dropped: ids need not be unique.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from typing import ClassVar
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
    read_reason,
    show_address,
    split_address,
    stream_body,
)

# two line ends in a row: an empty line ends a frame
_FRAME_ENDS = re.compile(rb"(?:\r?\n){2}|\r\r\n?")
_ID_PARAMETER = "lastEventId"  # in the query of the address
# any stream that a codec may know
ACCEPT = "text/event-stream, application/x-ndjson, application/json;q=0.9, */*;q=0.1"


class Frames:
    """Cuts a stream into frames and passes them on up to the newest id, without repeats.

    One object reads all connections of a stream. `last_id` is the newest id, "" before the first.
    """

    def __init__(self) -> None:
        self.last_id = ""
        self._buffer = bytearray()  # the beginning of a frame
        # frames since the newest id, with their hashes (0: a frame without data)
        self._held: list[tuple[bytes, int]] = []
        self._passed = array("q")  # hashes of the frames passed on, in order; 8 bytes for each
        self._resume_at = 0  # position in `_passed` after the newest id, where a server resumes
        self._repeats: _Repeats | None = None  # set while a new connection may repeat frames

    def feed(self, chunk: bytes) -> bytes:
        """Return the whole frames up to the newest with an id; before the first id, all of them.

        Raises WireError if a frame is larger than `SSEDecoder.FRAME_LIMIT`.
        """
        # the longest end of a frame has 4 bytes, of which 3 may be in the buffer already
        searched = max(len(self._buffer) - 3, 0)
        self._buffer += chunk
        out: list[bytes] = []  # frames to pass on
        start = 0
        for end in _FRAME_ENDS.finditer(bytes(self._buffer[searched:])):
            out.append(self._take_frame(bytes(self._buffer[start : searched + end.end()])))
            start = searched + end.end()
        del self._buffer[:start]
        if len(self._buffer) > SSEDecoder.FRAME_LIMIT:
            raise WireError(
                f"A frame is larger than {SSEDecoder.FRAME_LIMIT} bytes.",
                raw=self._buffer[:200].decode("utf-8", "replace"),
            )
        return b"".join(out)

    def _take_frame(self, frame: bytes) -> bytes:
        """Drop a repeat; hold another frame back until one has an id, then return all held ones."""
        decoder = SSEDecoder()
        decoded = decoder.feed(frame)  # none if the frame has no data
        frame_id, frame_hash = decoder.last_event_id or "", 0
        if decoded:
            frame_hash = hash((frame_id, decoded[0].event, decoded[0].data))
            if self._repeats is not None and self._repeats.take(frame_hash, has_id=bool(frame_id)):
                return b""
            self._repeats = None
        elif self._repeats is not None:
            frame_id = ""  # without data it cannot be compared: its id counts after the repeats
        self._held.append((frame, frame_hash))
        if not frame_id and self.last_id:
            return b""
        self.last_id = frame_id or self.last_id
        frames = self._pass_held()
        self._resume_at = len(self._passed)
        return frames

    def _pass_held(self) -> bytes:
        """Return the frames that were held back; remember the hashes of those with data."""
        frames, self._held = self._held, []
        self._passed.extend(frame_hash for _, frame_hash in frames if frame_hash)
        return b"".join(frame for frame, _ in frames)

    def end_connection(self) -> bytes:
        """Return the frames held back, because the connection has ended properly.

        An incomplete last frame is added only if the stream has no ids and so cannot be resumed.
        """
        incomplete = b"" if self.last_id else bytes(self._buffer)
        frames = self._pass_held()
        self.drop_held()  # nothing is held now: this prepares for the repeats of a next connection
        return frames + incomplete

    def drop_held(self) -> None:
        """Drop the frames held back, because the connection broke: the next one repeats them."""
        self._held, self._buffer = [], bytearray()
        self._repeats = _Repeats(self._passed, self._resume_at)


class _Repeats:
    """Recognises, at the beginning of a new connection, the frames that came on an earlier one.

    `passed`: the hashes of the earlier frames; a repetition keeps their order. A repetition begins
    at the first of them, at position `resume_at` (after the newest id), or where the connection's
    first frame with an id stands among them. While several beginnings fit, the first and last of
    them are tracked: a server may send one frame again and again.
    """

    MOST_TRACKED: ClassVar = 100

    def __init__(self, passed: array[int], resume_at: int) -> None:
        self._passed = passed
        # positions in `passed` where a repetition may begin; None after a frame with an id
        self._starts: set[int] | None = {0, resume_at}
        # positions in `passed` of the next frame, for each repetition that fits so far, in order
        self._next: list[int] = []

    def take(self, frame_hash: int, *, has_id: bool) -> bool:
        """Take the next frame, which has this hash; return whether it repeats an earlier one."""
        size = len(self._passed)
        positions: Iterable[int] = sorted({*self._next, *(self._starts or ())})
        if has_id and self._starts is not None:
            positions, self._starts = range(size), None
        fitting = [at + 1 for at in positions if at < size and self._passed[at] == frame_hash]
        half = self.MOST_TRACKED // 2
        self._next = fitting if len(fitting) <= 2 * half else fitting[:half] + fitting[-half:]
        return bool(fitting)


def read_stream(
    url: str,
    *,
    token: str = "",
    done: Callable[[], bool] = lambda: False,
    backoff: Backoff | None = None,
) -> AsyncGenerator[bytes, None]:
    """Return the bytes of any stream over HTTP as they arrive, for the codec that decodes it.

    `done` returns whether the caller has everything; a stream with ids is then not resumed.
    `token`: sent as the bearer token. Raises UsageError if the address is invalid or the server
    refuses, ModelError when the stream breaks off for good, WireError when a frame is too large.
    """
    if split_address(url) is None:
        raise UsageError(f"{show_address(url)!r} is not an http address.")
    return _Reader(url, Target(url, token=token), backoff or Backoff()).read(done)


class _Reader:
    """Reads one address over as many connections as the module's rules allow."""

    def __init__(self, url: str, target: Target, backoff: Backoff) -> None:
        self._url, self._target, self._backoff = url, target, backoff
        self._frames = Frames()
        self._ended = False  # the server has answered 204
        self._id_in_address = True  # whether the newest id is sent in the address too

    async def read(self, done: Callable[[], bool]) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of all connections; raise as `read_stream` does."""
        patience = Patience(self._backoff)
        while True:
            last_id = self._frames.last_id
            reason = "it ended before the run did"
            try:
                async with aclosing(self._read_connection(last_id)) as chunks:
                    async for chunk in chunks:
                        yield chunk
            except (httpx.HTTPError, OSError) as fault:
                reason = describe_fault(fault)
                if not self._frames.last_id:
                    raise ModelError(
                        f"{self._target.host_and_port} broke off: {reason}", code="attach"
                    ) from fault
                self._frames.drop_held()
            # without an id the server cannot resume: the end of the connection is the stream's end
            if self._ended or not self._frames.last_id or done():
                return
            if self._frames.last_id != last_id:
                patience.renew()
            if patience.waited > self._backoff.patience:
                raise ModelError(
                    f"{self._target.host_and_port} broke off, and nothing came for {patience.waited:.0f} s: {reason}",
                    code="attach",
                )
            await patience.wait()

    async def _read_connection(self, after: str) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of one connection that asks for the events after the id `after`."""
        # UTF-8: an id may hold any character
        headers = httpx.Headers({"Accept": ACCEPT}, encoding="utf-8")
        if after:
            headers["Last-Event-ID"] = after.strip(" \t")  # blanks around a value are no part of it
        url = _add_id(self._url, after) if after and self._id_in_address else self._url
        async with connect(self._target) as client:
            request = client.build_request("GET", url, headers=headers)
            opening = open_response(client, request, self._backoff.idle)
            async with aclosing(await opening) as response:
                await self._check_status(response, again=bool(after))
                self._ended = response.status_code == 204
                if self._ended:
                    return
                is_sse = "text/event-stream" in response.headers.get("content-type", "").lower()
                async with aclosing(stream_body(response)) as source:
                    async for chunk in source:
                        if data := self._frames.feed(chunk) if is_sse else chunk:
                            yield data
                if last_frames := self._frames.end_connection():
                    yield last_frames

    async def _check_status(self, response: httpx.Response, *, again: bool) -> None:
        """Raise on a refusal: httpx.ReadError if the next request may succeed, else UsageError.

        `again`: this request resumes a stream. Then a temporary refusal, a 404, and a refusal that
        the id in the address may have caused count as a break.
        """
        if response.status_code < 300:
            return
        reason = await read_reason(response)
        temporary = response.status_code >= 500 or response.status_code in (408, 425, 429)
        if again and (temporary or response.status_code == 404 or self._id_in_address):
            if not temporary:
                self._id_in_address = False
            raise httpx.ReadError(f"HTTP {response.status_code}: {reason}")
        raise UsageError(f"{self._target.host_and_port} answers {response.status_code}: {reason}")


def _add_id(url: str, last_id: str) -> str:
    """Return an address with `lastEventId`; the rest of its query stays unchanged."""
    parts = urlsplit(url)
    pairs = [
        pair for pair in parts.query.split("&") if pair and not pair.startswith(f"{_ID_PARAMETER}=")
    ]
    query = "&".join([*pairs, f"{_ID_PARAMETER}={quote(last_id, safe='')}"])
    return urlunsplit(parts._replace(query=query))
