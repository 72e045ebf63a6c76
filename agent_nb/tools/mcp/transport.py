"""Connect to an MCP server: start its process and talk over pipes, or talk to its HTTP address.

Why: a session need not know which of the two its server uses.

Rules
- A process gets only the SDK's default variables and those of its entry, no other keys.
- Over HTTP each request has its own connection: on a shared one, the client would take stray bytes
  after an answer for the next answer.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from .sdk import import_sdk
from .server import Server
from .stderr_tail import StderrTail

_CONNECT_TIMEOUT, _READ_TIMEOUT = 30.0, 600.0  # seconds to connect, and to wait for the next bytes


class Link:
    """The state of a connection: `ended`, and the `status` of the last HTTP response (0: none)."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.status = 0


class Incoming:
    """The messages of a server; notes the end of the connection when no more can come."""

    def __init__(self, stream: Any, link: Link) -> None:
        self._stream, self._link = stream, link

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> Any:
        return aiter(self._stream)

    async def __aenter__(self) -> Incoming:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> Any:
        self._link.ended.set()
        return await self._stream.__aexit__(*raised)


@asynccontextmanager
async def connect_server(
    server: Server, errors: StderrTail, link: Link
) -> AsyncIterator[tuple[Any, Any]]:
    """Connect to a server whose entry is expanded; yield its incoming and its outgoing stream.

    `errors` takes what a process writes to stderr; `link` is kept up to date. Raises what the SDK
    raises.
    """
    opened = _connect_http(server, link) if server.url else _connect_process(server, errors)
    async with opened as (incoming, outgoing):
        errors.close_write_end()
        yield Incoming(incoming, link), outgoing


def _connect_process(server: Server, errors: StderrTail) -> Any:
    """Return an async context manager for the connection to a new process of the server."""
    mcp = import_sdk()
    folder = Path(server.file).parent if server.file else Path(os.curdir)
    parameters = mcp.StdioServerParameters(
        command=server.command,
        args=list(server.args),
        env=dict(server.env),
        cwd=folder / os.path.expanduser(server.cwd) if server.cwd or server.file else None,
    )
    return mcp.stdio_client(parameters, errlog=errors.pipe)


@asynccontextmanager
async def _connect_http(server: Server, link: Link) -> AsyncIterator[tuple[Any, Any]]:
    """Connect to the server's address; note the status of each response in `link`."""
    import_sdk()
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def note_status(response: Any) -> None:
        link.status = response.status_code

    timeout = httpx2.Timeout(_CONNECT_TIMEOUT, read=_READ_TIMEOUT)
    async with (
        httpx2.AsyncClient(
            headers=server.headers,
            timeout=timeout,
            limits=httpx2.Limits(max_keepalive_connections=0),
            event_hooks={"response": [note_status]},
        ) as client,
        streamable_http_client(server.url, http_client=client) as streams,
    ):
        yield streams
