"""The sessions with MCP servers in this process, shared by all runs.

Why: a server takes seconds to start and may keep a state that later calls need. It ends with the
process, and when the extension is unloaded.

Rule: a session belongs to exactly one entry. Once an entry has changed, the next request for its
list of tools ends the session of the old entry.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import msgspec

from ...errors import UsageError
from ...host import Background, read_launch
from ...models import collect_secrets
from .elicitation import Keyboard
from .server import Server, quote_ascii
from .session import Progress, Session

_EXIT = 9.0  # seconds to wait for servers to end; one session takes at most 8 (`session`)


class ServerTools(msgspec.Struct, frozen=True):
    """The tools of a server, as the SDK's values; `about`: the server's own name and version."""

    tools: list[Any]
    about: str = ""


class Hub:
    """Sessions by the digest of their entry. Its methods run on any thread and event loop."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}
        self._inherited: list[dict[str, Session]] = []
        self._background = Background("agent_nb mcp", self._close, _EXIT)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def running(self, server: Server) -> bool:
        """Return whether the server of this entry runs."""
        session = self._sessions.get(server.digest)
        return session is not None and session.alive

    def states(self) -> Iterator[tuple[Server, str]]:
        """Yield every server that was started, and its `Session.state`."""
        for session in list(self._sessions.values()):
            yield session.server, session.state

    async def list_tools(self, server: Server) -> ServerTools:
        """Return the tools of a server; start it unless it runs.

        Raises UsageError or NotAllowed if it may not start, and ToolError if it fails.
        """
        self._require_start(server)
        return await self._background.run(self._list_tools(server))

    async def call(
        self,
        server: Server,
        name: str,
        arguments: dict[str, Any],
        progress: Progress,
        keyboard: Keyboard | None,
    ) -> Any:
        """Call the tool `name` of a server and return its value; cancelling this cancels the call.

        `keyboard`: where the user answers the server's questions; None declines them. Raises as
        `list_tools` does.
        """
        self._require_start(server)
        session = self._get_session(server)
        return await self._background.run(session.call(name, arguments, progress, keyboard))

    def stop(self, server: Server) -> None:
        """End a server, if it runs. Raises UsageError if that takes longer than `_EXIT` seconds."""
        session = self._sessions.pop(server.digest, None)
        if session is None:
            return
        try:
            self._background.submit(session.close()).result(_EXIT)
        except TimeoutError:
            name = quote_ascii(server.name)
            raise UsageError(f"The MCP server {name} did not end in {_EXIT:g} seconds.") from None

    def close(self) -> None:
        """End all servers. A later call starts them again."""
        self._background.end()

    async def _list_tools(self, server: Server) -> ServerTools:
        outdated = [
            session
            for digest, session in list(self._sessions.items())
            if server.file and digest != server.digest  # another entry of its file and name
            if (session.server.file, session.server.name) == (server.file, server.name)
        ]
        await self._close(outdated)
        session = self._get_session(server)
        tools = await session.list_tools()
        return ServerTools(tools, session.about)

    def _get_session(self, server: Server) -> Session:
        """Return the session of an entry; a new one, which is not started, if it has none."""
        # another thread may put one there meanwhile
        return self._sessions.get(server.digest) or self._sessions.setdefault(
            server.digest, Session(server, dict(collect_secrets()))
        )

    def _require_start(self, server: Server) -> None:
        """Raise UsageError or NotAllowed if the server may not start in this process."""
        if why := read_launch().why_not_live:
            raise UsageError(f"The MCP server {quote_ascii(server.name)} is not started. {why}")
        server.require_permission()

    async def _close(self, sessions: list[Session] | None = None) -> None:
        """End sessions; None: all."""
        chosen = list(self._sessions.values()) if sessions is None else sessions
        for session in chosen:
            self._sessions.pop(session.server.digest, None)
        # all end before one raises
        endings = (session.close() for session in chosen)
        for fault in await asyncio.gather(*endings, return_exceptions=True):
            if isinstance(fault, BaseException):
                raise fault

    def _forget(self) -> None:
        """Begin anew in a forked child; if freed, the parent's sessions would close its pipes."""
        self._inherited.append(self._sessions)
        self._sessions = {}


HUB = Hub()
