"""The handlers of the routes: runs listed, started, streamed, stopped and answered.

Rules
- A fault of the request is a 4xx with what to do; nothing of the server's inside is in an answer.
- A stream holds one subscription and gives it back when the client goes, whatever happens.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, Protocol

import anyio
import msgspec
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from ...codecs.detect import named
from ...codecs.framing import MEDIA, Framing
from ...errors import AgentError, UsageError
from ...events.log import EventLog
from ...events.position import START
from ...models.keys import secrets
from ...wire.redact import redact_text
from ..access import COOKIE, Access
from ..channel import Channel, Gap
from ..filters import Filter
from ..frames import CANONICAL, Frames
from ..hub import Hub
from ..subscription import Subscription


class Launched(Protocol):
    """A run that was started."""

    log: EventLog

    def cancel(self) -> Any:
        """Stop it; callable from any thread."""

    def approve(
        self, call_id: str, *, allow: bool, args: dict[str, Any] | None, scope: str, reason: str
    ) -> bool:
        """Answer the question about a call; False if none is open. Callable from any thread."""


Start = Callable[[str, str], Launched | Awaitable[Launched]]  # (message, conversation)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a server. `keepalive` seconds, `body` bytes of a request, `streams` at once,
    `active` runs at once; `head`: seconds that the head of a request may take, and its body;
    `connections` at once.
    """

    keepalive: float = 30.0
    body: int = 1 << 20
    streams: int = 500
    active: int = 16
    message: int = 200_000
    grace: float = 5.0
    head: float = 15.0
    connections: int = 600


class NewRun(msgspec.Struct, forbid_unknown_fields=False):
    """The body of `POST /runs`; `contextId` is another name of `conversation`."""

    message: str
    conversation: str = ""
    contextId: str = ""  # noqa: N815  (the name on the wire, seed 004)
    stream: bool = False


class Answer(msgspec.Struct):
    """The body of an approval."""

    decision: str
    args: dict[str, Any] | None = None
    scope: str = "once"
    reason: str = ""


class Endpoints:
    """The handlers, with what they share."""

    def __init__(self, hub: Hub, start: Start | None, access: Access, settings: Settings) -> None:
        self.hub = hub
        self.start = start
        self.access = access
        self.settings = settings
        self.streams = 0

    async def health(self, _request: Request) -> Response:
        """Say that the server is there; no token needed, nothing told."""
        return JSONResponse({"status": "ok"})

    async def login(self, request: Request) -> Response:
        """Trade the token (checked before) for a cookie."""
        response = Response(status_code=204)
        secure = request.url.scheme == "https"
        response.set_cookie(
            COOKIE, self.access.cookie(), httponly=True, samesite="strict", secure=secure, path="/"
        )
        return response

    async def list_runs(self, _request: Request) -> Response:
        """List the runs, the newest last."""
        return JSONResponse({"runs": [msgspec.to_builtins(info) for info in self.hub.runs()]})

    async def show_run(self, request: Request) -> Response:
        """Tell of one run."""
        return JSONResponse(msgspec.to_builtins(self._channel(request).info()))

    async def new_run(self, request: Request) -> Response:
        """Start a run."""
        body = await self._body(request, NewRun)
        if self.start is None:
            raise HTTPException(405, "This server only shows runs; it starts none.")
        if not body.message.strip():
            raise HTTPException(422, "The message is empty. Say what the agent should do.")
        if len(body.message) > self.settings.message:
            raise HTTPException(
                413, f"The message is longer than {self.settings.message} characters."
            )
        if sum(1 for info in self.hub.runs() if info.status == "running") >= self.settings.active:
            raise HTTPException(
                429,
                "Too many runs are going on. Try again when one has ended.",
                headers={"Retry-After": "5"},
            )
        channel = await self._launch(
            body.message, redact_text((body.conversation or body.contextId)[:200], secrets())
        )
        if body.stream or "text/event-stream" in request.headers.get("accept", ""):
            return self._stream(request, channel, "")
        at = f"/runs/{channel.run}"
        told = {"run": channel.run, "conversation": channel.conversation, "events": f"{at}/events"}
        return JSONResponse(told, 201, headers={"Location": at})

    async def events(self, request: Request) -> Response:
        """Stream a run."""
        channel = self._channel(request)
        after = (
            request.headers.get("last-event-id") or request.query_params.get("lastEventId") or ""
        )
        if channel.ended and after == str(channel.seq):
            return Response(status_code=204)
        return self._stream(request, channel, after)

    async def cancel(self, request: Request) -> Response:
        """Stop a run."""
        channel = self._channel(request)
        if channel.ended:
            raise HTTPException(409, "The run has ended.")
        if channel.cancel is None:
            raise HTTPException(405, "This run cannot be stopped from here.")
        await _call(channel.cancel)
        return JSONResponse({"run": channel.run, "status": "stopping"}, 202)

    async def approve(self, request: Request) -> Response:
        """Answer a question about a call."""
        channel = self._channel(request)
        body = await self._body(request, Answer)
        if body.decision not in ("allow", "deny") or body.scope not in ("once", "tool", "run"):
            raise HTTPException(422, "decision is allow or deny; scope is once, tool or run.")
        if channel.approve is None:
            raise HTTPException(405, "Questions of this run cannot be answered from here.")
        allow = body.decision == "allow"
        answered = await _call(
            channel.approve,
            request.path_params["call"],
            allow=allow,
            args=body.args,
            scope=body.scope,
            reason=body.reason[:2000],
        )
        if not answered:
            raise HTTPException(404, "There is no open question about that call.")
        return JSONResponse({"call": request.path_params["call"], "decision": body.decision})

    async def _launch(self, message: str, conversation: str) -> Channel:
        assert self.start is not None
        launched = await _call(self.start, message, conversation)
        return self.hub.attach(
            launched.log,
            conversation=conversation,
            cancel=launched.cancel,
            approve=launched.approve,
        )

    def _channel(self, request: Request) -> Channel:
        try:
            return self.hub.channel(request.path_params["run"])
        except UsageError as fault:
            raise HTTPException(404, str(fault)) from fault

    async def _body(self, request: Request, kind: type[Any]) -> Any:
        data = b""
        try:
            with anyio.fail_after(self.settings.head):
                async for chunk in request.stream():
                    data += chunk
                    if len(data) > self.settings.body:
                        raise HTTPException(
                            413, f"The request is larger than {self.settings.body} bytes."
                        )
        except TimeoutError:
            words = f"The body took longer than {self.settings.head:g} seconds."
            raise HTTPException(408, words, headers={"Connection": "close"}) from None
        try:
            return msgspec.json.decode(data, type=kind)
        except (msgspec.DecodeError, RecursionError) as fault:
            raise HTTPException(422, f"The body is not what this needs: {fault}") from fault

    def _stream(self, request: Request, channel: Channel, after: str) -> Response:
        if self.streams >= self.settings.streams or self.hub.closed:
            raise HTTPException(
                503, "Too many streams are open. Try again later.", headers={"Retry-After": "5"}
            )
        codec, form, framing = _format(request)
        wanted = _filter(request.query_params)
        overflow: Any = (
            "disconnect" if request.query_params.get("overflow") == "disconnect" else "gap"
        )
        place, gap = channel.locate(after)
        stateful = codec.name != CANONICAL
        subscription = self.hub.subscribe(
            channel.run, wanted, after="" if stateful else after, overflow=overflow
        )
        skip = place if stateful and gap is None else START
        where: Any = {
            "conversation": channel.conversation or channel.run,
            "earlier": channel.earlier,
        }
        frames = Frames(codec, form, framing, **where, skip=skip, internal=wanted.internal)
        body = self._pull(subscription, frames, [gap] if stateful and gap else [], framing)
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no", **codec.headers}
        if framing == "ndjson":
            return StreamingResponse(body, media_type=MEDIA[framing], headers=headers)
        return EventSourceResponse(
            body,
            headers=headers,
            sep="\n",
            ping=self.settings.keepalive,
            ping_message_factory=_ping,
            shutdown_event=anyio.Event(),
            shutdown_grace_period=self.settings.grace,
        )

    async def _pull(
        self, subscription: Subscription, frames: Frames, first: list[Gap], framing: Framing
    ) -> AsyncIterator[bytes]:
        """Yield the bytes of a stream as fast as the client takes them."""
        self.streams += 1
        loop, awake = asyncio.get_running_loop(), asyncio.Event()
        subscription.wake_with(lambda: loop.call_soon_threadsafe(awake.set))
        try:
            if first:
                yield frames.encode(first)
            while True:
                awake.clear()
                taken = subscription.take()
                if taken and (data := frames.encode(taken)):
                    yield data
                if taken:
                    continue
                if subscription.closed:
                    break
                if not await self._wait(awake, framing):
                    yield b"\n"
            if data := frames.close():
                yield data
        finally:
            subscription.close()
            self.streams -= 1

    async def _wait(self, awake: asyncio.Event, framing: Framing) -> bool:
        """Wait for news; False when a blank line is due to keep a stream of lines alive (SSE sees
        to its own comments).
        """
        if framing == "sse" or not self.settings.keepalive:
            await awake.wait()
            return True
        with anyio.move_on_after(self.settings.keepalive):
            await awake.wait()
            return True
        return False


def _ping() -> ServerSentEvent:
    return ServerSentEvent(comment="keep-alive", sep="\n")


async def _call(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call what a run was published with; a failure of it is the server's, not the client's."""
    try:
        result = function(*args, **options)
        return await result if inspect.isawaitable(result) else result
    except AgentError as fault:
        raise HTTPException(409, str(fault)) from fault


def _format(request: Request) -> tuple[Any, str, Framing]:
    """Return codec, form and framing of a request."""
    try:
        codec, form = named(request.query_params.get("format") or CANONICAL)
    except UsageError as fault:
        raise HTTPException(422, str(fault)) from fault
    accept = request.headers.get("accept", "")
    lines = "text/event-stream" not in accept and any(
        kind in accept for kind in ("ndjson", "jsonl", "application/json")
    )
    return codec, form, "ndjson" if lines else "sse"


def _filter(query: Mapping[str, str]) -> Filter:
    def names(key: str) -> frozenset[str]:
        return frozenset(n for n in query.get(key, "").split(",") if n)

    yes = ("1", "true", "yes")
    return Filter(
        kinds=names("kinds"),
        exclude=names("exclude"),
        path=query.get("path", "")[:1000],
        internal=query.get("internal", "") in yes,
        deltas=query.get("deltas", "1") in yes,
    )
