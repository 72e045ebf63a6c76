"""Assemble the app: routes, CORS if origins are given, and the guard before every route."""

from __future__ import annotations

from urllib.parse import quote, unquote

from starlette.applications import Starlette
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ..access import Access, cookie_name
from ..hub import Hub
from .endpoints import Endpoints, Start
from .settings import Settings


class _Id(StringConvertor):
    """An id in a path. Routes see paths as sent, so that an encoded slash separates nothing."""

    regex = ".*"

    def convert(self, value: str) -> str:
        """Return the id that a part of a path encodes."""
        return unquote(value)


class _RunId(_Id):
    """A run id. A slash in it may be sent as it is, but not at the end."""

    regex = ".*[^/]"


class _LoneRunId(_Id):
    """A run id at the end of a path. An action is not part of it: GET for one is a 405."""

    regex = "(?!.*/(?:cancel$|approvals/)).*[^/]"


register_url_convertor("call_id", _Id())
register_url_convertor("run_id", _RunId())
register_url_convertor("lone_run_id", _LoneRunId())


class _Guard:
    """Middleware: every request except the health check needs the token or the cookie."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # not a request; `serving` switches WebSockets and lifespan events off
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # see `_Id`; a server may leave `raw_path` out
        raw_path = scope.get("raw_path") or quote(scope["path"]).encode()
        scope = {**scope, "path": raw_path.decode("ascii")}
        request = Request(scope)
        denied = self._access.check(
            request.method,
            request.headers,
            request.cookies.get(cookie_name(scope), ""),
            scope["scheme"],
        )
        # not `request.url`: older versions of starlette join the Host header into it unchecked
        public = scope["path"] == "/health" and self._access.host_allowed(
            request.headers.get("host", "")
        )
        if denied is None or public:
            await self._app(scope, receive, send)
            return
        headers = {"WWW-Authenticate": "Bearer"} if denied.status == 401 else {}
        response = JSONResponse({"error": denied.message}, denied.status, headers=headers)
        await response(scope, receive, send)


def create_app(
    hub: Hub,
    start: Start | None = None,
    *,
    access: Access | None = None,
    settings: Settings | None = None,
) -> Starlette:
    """Return the ASGI app that publishes the runs of `hub`.

    `start` starts a run for `POST /runs` (None: runs cannot be started). `access`: None makes rules
    with a new token. `settings`: None takes the defaults.
    """
    access = access or Access()
    endpoints = Endpoints(hub, start, access, settings or Settings())
    middleware = [Middleware(_Guard, access=access)]
    if access.origins:
        cors = Middleware(
            CORSMiddleware,
            allow_origins=sorted(access.origins),
            allow_credentials=True,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "Last-Event-ID"],
        )
        # before the guard: the preflight request of a browser has neither token nor cookie
        middleware.insert(0, cors)
    routes = [
        Route("/health", endpoints.health),
        Route("/login", endpoints.login, methods=["POST"]),
        Route("/runs", endpoints.list_runs, methods=["GET"]),
        Route("/runs", endpoints.new_run, methods=["POST"]),
        Route("/runs/{run:run_id}/events", endpoints.events),
        Route("/runs/{run:run_id}/cancel", endpoints.cancel, methods=["POST"]),
        Route("/runs/{run:run_id}/approvals/{call:call_id}", endpoints.approve, methods=["POST"]),
        Route("/runs/{run:lone_run_id}", endpoints.show_run),  # the last: it would match `/events`
    ]
    return Starlette(
        routes=routes, middleware=middleware, exception_handlers={HTTPException: _error_response}
    )


async def _error_response(_request: Request, fault: Exception) -> Response:
    assert isinstance(fault, HTTPException)
    return JSONResponse({"error": fault.detail}, fault.status_code, headers=fault.headers)
