"""The sessions with MCP servers in this process, shared by all runs.

Why: a server takes seconds to start and may keep a state that later calls need.

Rules
- A session belongs to exactly one entry. Once an entry has changed, the next request for its list
  of tools ends the session of the old entry.
- No server starts in a process that only replays records.
- Every server ends with the process, and when the extension is unloaded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec

from ...errors import UsageError
from ...host import Background, read_launch
from ...models import collect_secrets
from .elicitation import Asking
from .server import Server, quote_ascii
from .session import Progress, Session

_EXIT = 9.0  # seconds to wait for servers to end; a session takes at most 8 (`session`)


class ServerTools(msgspec.Struct, frozen=True):
    """The tools of a server, as the SDK's values; `about`: the server's own name and version."""

    tools: list[Any]
    about: str = ""


class Hub:
    """Sessions by the digest of their entry. Its methods run on any thread and event loop."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._background = Background("agent_nb mcp", self._close_all, _EXIT)

    def running(self, server: Server) -> bool:
        """Return whether the server of this entry runs."""
        session = self._sessions.get(server.digest)
        return session is not None and session.alive

    def states(self) -> Iterator[tuple[Server, str]]:
        """Yield every server that was started, and its `Session.state`."""
        for session in list(self._sessions.values()):
            yield session.server, session.state

    async def listed(self, server: Server) -> ServerTools:
        """Return the tools of a server; start it unless it runs.

        Raises UsageError or NotAllowed if it may not start, and ToolError if it fails.
        """
        self._check(server)
        return await self._background.run(self._list(server))

    async def call(
        self,
        server: Server,
        name: str,
        arguments: dict[str, Any],
        progress: Progress,
        asking: Asking | None,
    ) -> Any:
        """Call the tool `name` of a server and return its value; cancelling this cancels the call.

        `asking`: the way to the user for the server's questions; None declines them. Raises as
        `listed` does.
        """
        self._check(server)
        session = self._session(server)
        return await self._background.run(session.call(name, arguments, progress, asking))

    def stop(self, server: Server) -> None:
        """End a server, if it runs. Raises TimeoutError after `_EXIT` seconds."""
        session = self._sessions.pop(server.digest, None)
        if session is not None:
            self._background.submit(session.close()).result(_EXIT)

    def close(self) -> None:
        """End all servers. A later call starts them again."""
        self._background.end()

    async def _list(self, server: Server) -> ServerTools:
        outdated = [  # sessions of earlier entries of this name in the same file
            session
            for session in self._sessions.values()
            if server.file
            and (session.server.file, session.server.name) == (server.file, server.name)
            and session.server.digest != server.digest
        ]
        await asyncio.gather(*map(self._retire, outdated))
        session = self._session(server)
        tools = await session.tools()
        return ServerTools(tools, session.about)

    def _session(self, server: Server) -> Session:
        session = self._sessions.get(server.digest)
        if session is None:
            new = Session(server, dict(collect_secrets()))
            session = self._sessions.setdefault(server.digest, new)
        return session

    async def _retire(self, session: Session) -> None:
        self._sessions.pop(session.server.digest, None)
        await session.close()

    def _check(self, server: Server) -> None:
        """Raise UsageError or NotAllowed if the server may not start in this process."""
        if why := read_launch().why_not_live:
            raise UsageError(f"The MCP server {quote_ascii(server.name)} is not started. {why}")
        server.require_permission()

    async def _close_all(self) -> None:
        sessions = list(self._sessions.values())
        self._sessions.clear()
        await asyncio.gather(*(session.close() for session in sessions))


HUB = Hub()
