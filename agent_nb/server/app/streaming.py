"""The stream of a run as an HTTP response: server-sent events or JSON lines.

Here threads meet the event loop: runs publish from their own threads, and a client may disconnect
at any time. A stream is read at the client's speed. It holds one subscription, and closes it in any
case when it ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import Any

import anyio
import msgspec
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ...codecs import MEDIA, Codec, Framing, named
from ...errors import UsageError
from ...events import Position
from ..channel import Channel, Gap
from ..filters import Filter
from ..frames import CANONICAL, Frames
from ..hub import Hub
from ..subscription import Overflow, Subscription
from .settings import Settings


class Streams:
    """Opens streams for a server, and counts those that are open."""

    def __init__(self, hub: Hub, settings: Settings) -> None:
        self._hub = hub
        self._settings = settings
        self._open = 0

    def check(self, request: Request) -> _StreamFormat:
        """Return the format of a stream. Raises HTTPException if it cannot be opened now."""
        if self._open >= self._settings.streams or self._hub.closed:
            raise HTTPException(
                503, "Too many streams are open. Try again later.", headers={"Retry-After": "5"}
            )
        return _read_format(request)

    def respond(self, request: Request, channel: Channel, after: str) -> Response:
        """Return the stream of a run after the event id `after`. Raises HTTPException."""
        query = request.query_params
        wanted, selection = self.check(request), _read_filter(query)
        overflow: Overflow = "disconnect" if query.get("overflow") == "disconnect" else "gap"
        gap: Gap | None = None
        if wanted.codec.name == CANONICAL:
            frames = Frames(
                wanted.codec, wanted.variant, wanted.framing, internal=selection.internal
            )
        else:
            frames, gap = _begin_at_start(wanted, channel, after, internal=selection.internal)
            after = ""
        subscription = self._hub.subscribe(channel.run, selection, after=after, overflow=overflow)
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no", **wanted.codec.headers}
        self._open += 1
        return _StreamResponse(
            self._pull(subscription, frames, gap),
            partial(self._close, subscription),
            headers=headers,
            media_type=MEDIA[wanted.framing],
            sep="\n",
            ping=self._settings.keepalive,
            ping_message_factory=_SIGNS_OF_LIFE[wanted.framing],
            shutdown_event=anyio.Event(),  # never set: the hub ends the streams at shutdown
            shutdown_grace_period=self._settings.grace,
        )

    def _close(self, subscription: Subscription) -> None:
        subscription.close()
        self._open -= 1

    async def _pull(
        self, subscription: Subscription, frames: Frames, gap: Gap | None
    ) -> AsyncIterator[bytes]:
        """Yield the bytes of a stream at the client's speed, those of `gap` first."""
        loop, awake = asyncio.get_running_loop(), asyncio.Event()
        subscription.wake_with(lambda: loop.call_soon_threadsafe(awake.set))
        if gap is not None:
            yield frames.encode([gap])
        while True:
            awake.clear()
            entries = subscription.take()
            if data := frames.encode(entries):
                yield data
            if not entries:
                if subscription.closed:
                    break
                await awake.wait()
        if data := frames.close(subscription.end):
            yield data


class _StreamResponse(EventSourceResponse):
    """A response, SSE or JSON lines, that calls `close` at its end.

    Why not `finally` in `body`: a generator that was never iterated does not run its `finally`.
    """

    def __init__(
        self, body: AsyncIterator[bytes], close: Callable[[], object], **options: Any
    ) -> None:
        super().__init__(body, **options)
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._close()


#: What a stream sends after `Settings.keepalive` seconds of silence: a comment or a blank line.
_SIGNS_OF_LIFE: dict[Framing, Callable[[], Any]] = {
    "sse": lambda: ServerSentEvent(comment="keep-alive", sep="\n"),
    "ndjson": lambda: b"\n",
}


class _StreamFormat(msgspec.Struct, frozen=True):
    """What a client wants to receive; `variant`: the form of the codec ("": its default)."""

    codec: Codec
    variant: str
    framing: Framing


def _read_format(request: Request) -> _StreamFormat:
    """Return the format of a request. Raises HTTPException if it is unknown."""
    try:
        codec, variant = named(request.query_params.get("format") or CANONICAL)
    except UsageError as fault:
        raise HTTPException(422, str(fault)) from fault
    accept = request.headers.get("accept", "")
    wants_lines = "text/event-stream" not in accept and any(
        kind in accept for kind in ("ndjson", "jsonl", "application/json")
    )
    return _StreamFormat(codec, variant, "ndjson" if wants_lines else "sse")


def _begin_at_start(
    wanted: _StreamFormat, channel: Channel, after: str, *, internal: bool
) -> tuple[Frames, Gap | None]:
    """Return the encoder of a format with state, and a gap to report if `after` is unknown.

    The encoder must see the run from its start; it leaves out what the client has.
    """
    event_id, rest = Position.split_part(after)  # the client lacks the entry's last `rest` frames
    position, gap = channel.locate(event_id)
    frames = Frames(
        wanted.codec,
        wanted.variant,
        wanted.framing,
        conversation=channel.conversation or channel.run,
        earlier=channel.earlier,
        skip=position,
        rest=rest,
        internal=internal,
    )
    return frames, gap


def _read_filter(query: Mapping[str, str]) -> Filter:
    """Return the filter in a query: `kinds`, `exclude`, `path`, `internal` and `deltas`."""

    def names(key: str) -> frozenset[str]:
        return frozenset(n for n in query.get(key, "").split(",") if n)

    true_values = ("1", "true", "yes")
    return Filter(
        kinds=names("kinds"),
        exclude=names("exclude"),
        path=query.get("path", "")[:1000],
        internal=query.get("internal", "") in true_values,
        deltas=query.get("deltas", "1") in true_values,
    )
