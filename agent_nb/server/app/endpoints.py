"""The handlers of the HTTP routes: list, show, start, stream, stop and approve runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

import anyio
import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from ...errors import AgentError, HubAway, UsageError
from ...events import EventLog
from ...models import collect_secrets
from ...wire import redact_text
from ..access import Access, cookie_name
from ..channel import Channel, call_control
from ..hub import Hub
from .settings import Settings
from .streaming import Streams


class Launched(Protocol):
    """A started run."""

    log: EventLog

    def cancel(self) -> Any:
        """Stop the run, from any thread."""

    def approve(
        self, call_id: str, *, allow: bool, args: dict[str, Any] | None, scope: str, reason: str
    ) -> bool:
        """Answer the question about a call, from any thread; False if none is open."""


_LONGEST_ID = 200  # characters of a conversation's id; cut off, two ids could become one
T = TypeVar("T")
#: starts a run: (message, conversation id) -> the run
Start = Callable[[str, str], Launched | Awaitable[Launched]]


class NewRun(msgspec.Struct, forbid_unknown_fields=False):
    """The body of `POST /runs`; `contextId` is an alias of `conversation`."""

    message: str
    conversation: str = ""
    contextId: str = ""  # noqa: N815  (the name on the wire)
    stream: bool = False


class Answer(msgspec.Struct):
    """The body of an approval: `decision` is allow or deny; `args` replace the call's arguments.

    `scope` and `reason`: as in `Decision` of the tools.
    """

    decision: str
    args: dict[str, Any] | None = None
    scope: str = "once"
    reason: str = ""


class Endpoints:
    """The handlers, one for each route. Without `start` the runs are only shown."""

    def __init__(self, hub: Hub, start: Start | None, access: Access, settings: Settings) -> None:
        self.hub = hub
        self.start = start
        self.access = access
        self.settings = settings
        self.streams = Streams(hub, settings)

    async def health(self, _request: Request) -> Response:
        """Report that the server is up; needs no token."""
        return JSONResponse({"status": "ok"})

    async def login(self, request: Request) -> Response:
        """Return a cookie in exchange for the token (or cookie) that the guard has checked."""
        response = Response(status_code=204)
        secure = request.scope["scheme"] == "https"
        name = cookie_name(request.scope)
        response.set_cookie(
            name, self.access.cookie(), httponly=True, samesite="strict", secure=secure, path="/"
        )
        return response

    async def list_runs(self, _request: Request) -> Response:
        """Answer with the list of runs, the newest last."""
        runs = await _look_up(self.hub.list_runs())
        return JSONResponse({"runs": msgspec.to_builtins(runs)})

    async def show_run(self, request: Request) -> Response:
        """Answer with a run's entry in the list."""
        return JSONResponse(msgspec.to_builtins((await self._find_channel(request)).info()))

    async def new_run(self, request: Request) -> Response:
        """Start a run; answer with its id, or with its stream if the client asks for one."""
        body = await self._read_body(request, NewRun)
        self._check_start(body)
        streamed = body.stream or "text/event-stream" in request.headers.get("accept", "")
        if streamed:
            self.streams.check(request)  # a run whose stream is refused would go on unseen
        conversation = redact_text(body.conversation or body.contextId, collect_secrets())
        channel = await self._launch(body.message, conversation)
        if streamed:
            return self.streams.respond(request, channel, "")
        at = f"/runs/{quote(channel.run, safe='')}"
        reply = {"run": channel.run, "conversation": channel.conversation, "events": f"{at}/events"}
        return JSONResponse(reply, 201, headers={"Location": at})

    def _check_start(self, body: NewRun) -> None:
        """Raise HTTPException if no run can be started for a body now."""
        if self.start is None:
            raise HTTPException(405, "This server only shows runs; it starts none.")
        if not self.hub.starts_runs:
            message = "The server shuts down and starts no more runs."
            raise HTTPException(503, message, headers={"Retry-After": "5"})
        if not body.message.strip():
            raise HTTPException(422, "The message is empty. Say what the agent should do.")
        if len(body.message) > self.settings.message:
            raise HTTPException(
                413, f"The message is longer than {self.settings.message} characters."
            )
        if len(body.conversation or body.contextId) > _LONGEST_ID:
            raise HTTPException(422, f"A conversation's id has at most {_LONGEST_ID} characters.")
        if sum(1 for info in self.hub.runs() if info.status == "running") >= self.settings.active:
            raise HTTPException(
                429,
                "Too many runs are going on. Try again when one has ended.",
                headers={"Retry-After": "5"},
            )

    async def events(self, request: Request) -> Response:
        """Stream a run from its start, or after the last id that the client received."""
        channel = await self._find_channel(request)
        query = request.query_params
        after = request.headers.get("last-event-id") or query.get("lastEventId") or ""
        # nothing follows; a 204 keeps an EventSource from connecting again
        if channel.ended and after == str(channel.seq):
            return Response(status_code=204)
        return self.streams.respond(request, channel, after)

    async def cancel(self, request: Request) -> Response:
        """Stop a run."""
        channel = await self._find_channel(request)
        if channel.ended:
            raise HTTPException(409, "The run has ended.")
        if channel.cancel is None:
            raise HTTPException(405, "This run cannot be stopped from here.")
        await _call(channel.cancel)
        return JSONResponse({"run": channel.run, "status": "stopping"}, 202)

    async def approve(self, request: Request) -> Response:
        """Answer a question about a call."""
        channel = await self._find_channel(request)
        body = await self._read_body(request, Answer)
        scopes = ("once", "args", "tool", "run")
        if body.decision not in ("allow", "deny") or body.scope not in scopes:
            raise HTTPException(422, "decision is allow or deny; scope is once, args, tool or run.")
        if channel.approve is None:
            raise HTTPException(405, "Questions of this run cannot be answered from here.")
        allow = body.decision == "allow"
        was_open = await _call(
            channel.approve,
            request.path_params["call"],
            allow=allow,
            args=body.args,
            scope=body.scope,
            reason=body.reason[:2000],
        )
        if not was_open:
            raise HTTPException(404, "There is no open question about that call.")
        return JSONResponse({"call": request.path_params["call"], "decision": body.decision})

    async def _launch(self, message: str, conversation: str) -> Channel:
        """Start a run and publish it."""
        assert self.start is not None
        launched = await _call(self.start, message, conversation)
        try:
            return self.hub.attach(
                launched.log,
                conversation=conversation,
                cancel=launched.cancel,
                approve=launched.approve,
            )
        except UsageError as fault:
            await _call(launched.cancel)  # unpublished, it could be neither followed nor stopped
            raise HTTPException(409, f"{fault} Start the run with a new id.") from fault

    async def _find_channel(self, request: Request) -> Channel:
        """Return the channel of the run in the path. Raises HTTPException (404 or 503)."""
        return await _look_up(self.hub.find(request.path_params["run"]))

    async def _read_body(self, request: Request, kind: type[Any]) -> Any:
        """Return the JSON body of a request as a value of `kind`.

        Raises HTTPException for a body that is too slow, too large or wrong.
        """
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
            message = f"The body took longer than {self.settings.head:g} seconds."
            raise HTTPException(408, message, headers={"Connection": "close"}) from None
        except ClientDisconnect:  # the answer reaches nobody, but a fault would be logged
            raise HTTPException(400, "The body is cut off.") from None
        try:
            return msgspec.json.decode(data, type=kind)
        except (ValueError, RecursionError) as fault:
            raise HTTPException(422, f"The body is not what this needs: {fault}") from fault


async def _look_up(lookup: Awaitable[T]) -> T:
    """Return the result of a hub's lookup; an unknown run becomes a 404, a lost store a 503."""
    try:
        return await lookup
    except UsageError as fault:
        raise HTTPException(404, str(fault)) from fault
    except HubAway as fault:
        raise HTTPException(503, str(fault), headers={"Retry-After": "5"}) from fault


async def _call(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call or await a control function of a run; an AgentError becomes a 409."""
    try:
        return await call_control(function, *args, **options)
    except AgentError as fault:
        raise HTTPException(409, str(fault)) from fault
