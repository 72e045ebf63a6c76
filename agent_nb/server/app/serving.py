"""Serve the app with uvicorn: in the foreground for a command, in a thread for a notebook.

Why not uvicorn alone: at a shutdown it waits for open streams, which end only when their runs do.
Here the server's runs end first, then the streams, so that every client sees a proper end. The
process's logging is not changed, and no request is logged.
"""

from __future__ import annotations

import dataclasses
import socket
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any

import anyio
import uvicorn

from ...errors import UsageError
from ...host import read_launch
from ..access import Access
from ..hub import Hub
from .build import create_app
from .connections import make_protocol
from .endpoints import Start
from .settings import Settings

SHORTEST = 8  # characters of a token
_LARGEST_PORT = 65_535
Closing = Callable[[], Awaitable[Any]]


class _Uvicorn(uvicorn.Server):
    """A uvicorn server whose shutdown first ends runs (`grace`: seconds for that), then streams."""

    def __init__(
        self, config: uvicorn.Config, hub: Hub, closing: Closing | None, grace: float
    ) -> None:
        super().__init__(config)
        self._hub = hub
        self._closing = closing
        self._grace = grace

    async def shutdown(self, sockets: Any = None) -> None:
        self._hub.starts_runs = False  # else a run that begins now would be broken off
        try:
            if self._closing is not None:
                with anyio.move_on_after(self._grace):
                    await self._closing()
        finally:  # a run that cannot be ended must not keep the streams open
            self._hub.close()
            await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        with super().capture_signals():
            yield
            self._captured_signals.clear()  # already handled; uvicorn would raise them again


class Server:
    """A server of one hub: `run` serves until a signal, `start` serves in a thread until `stop`.

    `start` starts a run for a request (None: runs are only shown). `port`: 0 takes a free one.
    `token`: None makes a new one. `origins`: origins of other pages that may use the server from a
    browser. `closing` ends the runs that the server has started, when the server stops.
    """

    def __init__(
        self,
        hub: Hub | None = None,
        start: Start | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        origins: tuple[str, ...] = (),
        settings: Settings | None = None,
        closing: Closing | None = None,
    ) -> None:
        self.hub = hub or Hub()
        # a server on all addresses answers to any host name, since it does not know the machine's
        hosts = Access().hosts | {host} if host not in ("0.0.0.0", "::") else frozenset({"*"})  # noqa: S104  (asked for by the user)
        access = Access(hosts=hosts, origins=frozenset(origins))
        if token is not None:
            token = token.strip()  # blanks around it would not arrive
            if len(token) < SHORTEST or not (token.isascii() and token.isprintable()):
                raise UsageError(
                    f"The token is too short, or not of ASCII: take at least {SHORTEST} characters, or leave it out to have one made."
                )
            access = dataclasses.replace(access, token=token)
        self.token = access.token
        self.host = host
        self.port = port
        settings = settings or Settings()
        config = uvicorn.Config(
            create_app(self.hub, start, access=access, settings=settings),
            host=host,
            port=port,
            log_level="warning",
            access_log=False,
            log_config=None,
            lifespan="off",
            timeout_graceful_shutdown=int(settings.grace) + 5,
            server_header=False,
            ws="none",
            http=make_protocol(settings),
        )
        self._server = _Uvicorn(config, self.hub, closing, settings.grace)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The address; with port 0 it is complete once the server is up."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{name}:{self.port}"

    def run(self, ready: Callable[[Server], Any] = lambda _: None) -> None:
        """Serve until a signal comes; `ready` is called once the port is open.

        Raises UsageError if the port is taken.
        """
        server_socket = self._bind()
        ready(self)
        self._server.run(sockets=[server_socket])

    def start(self) -> Server:
        """Serve from a new thread and return once the port is open.

        Raises UsageError if the port is taken.
        """
        server_socket = self._bind()
        self._thread = threading.Thread(
            target=lambda: self._server.run(sockets=[server_socket]),
            name="agent-nb server",
            daemon=True,
        )
        self._thread.start()
        return self

    def stop(self) -> None:
        """End every stream properly and stop serving."""
        self._server.should_exit = True
        read_launch().served_ports.discard(self.port)
        if self._thread is not None:
            self._thread.join(self._server.config.timeout_graceful_shutdown)

    def _bind(self) -> socket.socket:
        """Return the listening socket, and set `port` to its port. Raises UsageError."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        if not 0 <= self.port <= _LARGEST_PORT:  # `create_server` would leave its socket open
            raise UsageError(
                f"Cannot listen at {self.host}:{self.port}: ports are 0 to {_LARGEST_PORT}."
            )
        try:
            server_socket = socket.create_server((self.host, self.port), family=family, backlog=256)
        except OSError as fault:
            problem = f"Cannot listen at {self.host}:{self.port} ({fault.strerror or fault})."
            raise UsageError(f"{problem} Choose another port, or 0 for a free one.") from fault
        self.port = server_socket.getsockname()[1]
        # this process may reach its own server even where nothing may run live
        read_launch().served_ports.add(self.port)
        return server_socket
