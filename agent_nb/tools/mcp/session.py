"""The session with one MCP server: start it, call its tools, restart it after a crash, end it.

Why: a server may start slowly, hang or crash, and a run must then get an error that says so.

Rules
- Everything here runs on the thread of the `hub`. A session starts once, however many runs want it.
- A call that a crash interrupts fails, and the next call starts the server again. Only the request
  for the list of tools is repeated, once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any

import anyio

from ...errors import ToolError
from ...host import DIVERTED
from ...models import hide_secret
from ...wire import Redaction, cut_end, dumps, strip_hidden
from ..base import Pictured
from .content import read_result
from .elicitation import Keyboard, answer_elicitation
from .sdk import import_sdk
from .server import Server, quote_ascii
from .stderr_tail import StderrTail
from .transport import Link, connect_server

START_TIMEOUT = 60.0  # s to start; also for each page of the list of tools
_END_TIMEOUT = 8.0  # s; within it the SDK asks the process to end, terminates it and kills it
_STDERR_TIMEOUT = 0.3  # s to wait for the end of stderr after a crash
_LONGEST_ABOUT = 200  # characters of the name that a server gives itself
_MOST_PAGES, _MOST_TOOLS = 100, 500  # most pages and tools of a list
_LONGEST_MESSAGE = 2_000  # characters of a message

_CLOSED_CODE = -32000  # JSON-RPC code of the SDK: the connection is closed
_LOST_TEXT = "Session terminated"  # the SDK's words when an HTTP server no longer knows the session

Progress = Callable[[float, float | None, str | None], Awaitable[None]]
# the way to the user of the call that runs in this context
_keyboard_of_call: ContextVar[Keyboard | None] = ContextVar("agent_nb_mcp_keyboard", default=None)


class _Connection:
    """One connection to the server, from its start to its end.

    `client`: the SDK's client while calls can be made, else None. `ready`: is done when the start
    has succeeded or failed. `link.ended`: set to end it. `scope`: cancelled to give up a start;
    unlike a cancel of `task`, which holds the connection, it lets the process be ended.
    """

    task: asyncio.Task[None]

    def __init__(self, redaction: Redaction) -> None:
        self.errors = StderrTail(redaction)
        self.link = Link()
        self.client: Any = None
        self.scope = anyio.CancelScope()
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # read the exception: asyncio would log it if nothing waits for `ready` any more
        self.ready.add_done_callback(lambda done: done.exception())

    @property
    def is_alive(self) -> bool:
        return self.client is not None and not self.link.ended.is_set()


class Session:
    """The session with a server; variables (`${TOKEN}`) in its entry are filled in at the start.

    `secrets`: what is hidden in its answers, by name, beside the secrets of the entry. `state`: not
    started, starting, running, stopped, crashed or failed.
    """

    def __init__(self, server: Server, secrets: dict[str, str]) -> None:
        self.server = server
        self.state = "not started"
        self.about = ""  # the name and version that the server gives itself
        self._secrets = secrets
        self._redaction = Redaction(secrets)
        # the newest one, which may have ended; None after `close`
        self._connection: _Connection | None = None
        self._starting = asyncio.Lock()
        self._closed = False
        self._keyboards: list[Keyboard | None] = []  # of the running calls, oldest first

    @property
    def alive(self) -> bool:
        """Whether calls can be made."""
        return self._connection is not None and self._connection.is_alive

    async def list_tools(self) -> list[Any]:
        """Return the server's tools now, at most `_MOST_TOOLS`, as SDK values. Raises ToolError."""
        tools: list[Any] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await self._request(partial(self._request_page, cursor=cursor), again=True)
            tools += page.tools
            cursor = page.next_cursor
            if cursor is None or len(tools) >= _MOST_TOOLS:
                break
        return tools[:_MOST_TOOLS]

    async def call(
        self, name: str, arguments: dict[str, Any], progress: Progress, keyboard: Keyboard | None
    ) -> Any:
        """Call a tool and return its value without secrets. Raises ToolError."""
        self._keyboards.append(keyboard)
        _keyboard_of_call.set(keyboard)
        try:
            result = await self._request(
                lambda client: client.call_tool(name, arguments, progress_callback=progress)
            )
        finally:
            self._keyboards.remove(keyboard)
        value, pictures = read_result(result)
        clean = self._redaction.value(value)
        if result.is_error:
            raise ToolError(clean if isinstance(clean, str) and clean else dumps(clean))
        return Pictured(clean, pictures) if pictures else clean

    async def close(self) -> None:
        """End the session for good, and its process; wait at most `_END_TIMEOUT` seconds."""
        self._closed = True
        await self._disconnect()

    async def _disconnect(self) -> None:
        """End the connection and its process; the next request starts the server again."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        connection.link.ended.set()
        if self.state == "starting":
            connection.scope.cancel()
        await asyncio.wait([connection.task], timeout=_END_TIMEOUT)
        self.state = "stopped"

    async def _start(self) -> _Connection:
        """Start the server unless it runs. Raises UsageError, and ToolError if it fails."""
        async with self._starting:
            if self._connection is not None and self._connection.is_alive:
                return self._connection
            await self._disconnect()
            self._require_open()
            import_sdk()
            server = self.server.expand(DIVERTED.original_environment())
            for secret in server.secrets.values():
                hide_secret(secret)
            self._redaction = Redaction({**self._secrets, **server.secrets})
            connection = self._connection = _Connection(self._redaction)
            self.state = "starting"
            # a question may arrive in this task, which outlives the call that starts it
            context = copy_context()
            context.run(_keyboard_of_call.set, None)
            serving = self._serve(server, connection)
            connection.task = asyncio.create_task(serving, context=context)
            try:
                async with asyncio.timeout(START_TIMEOUT):
                    await asyncio.shield(connection.ready)
            except TimeoutError:
                why = f"It did not answer within {START_TIMEOUT:g} seconds"
            except asyncio.CancelledError:
                await self._disconnect()
                raise
            except Exception as fault:
                why = _explain_failure(fault, server, connection.link.status)
            else:
                return connection
            await self._disconnect()
            self._require_open()
            self.state = "failed"
            text = f"The MCP server {quote_ascii(self.server.name)} could not be started. {why}"
            raise ToolError(self._safe_text(text, connection.errors))

    def _require_open(self) -> None:
        """Raise ToolError if the hub has dropped this session: nothing would end the server."""
        if self._closed:
            raise ToolError(f"The MCP server {quote_ascii(self.server.name)} was stopped.")

    async def _request(
        self, request: Callable[[Any], Awaitable[Any]], *, again: bool = False
    ) -> Any:
        """Make a request with the SDK's client; start the server if need be. Raises ToolError.

        `again`: the request is idempotent; it is repeated once after a lost connection.
        """
        connection = await self._start()
        code: Any = None
        try:
            return await request(connection.client)
        except Exception as fault:  # the server's answer, a lost connection, an invalid result
            code = getattr(fault, "code", None)
            is_clear = code is not None or isinstance(fault, ToolError)
            text = str(fault) if is_clear else f"{type(fault).__name__}: {fault}"
        is_lost = code == _CLOSED_CODE or (self.server.url and _LOST_TEXT in text)
        if not (is_lost or connection.link.ended.is_set()):
            raise ToolError(self._safe_text(text))
        # unless another call that lost the same connection has started the server again meanwhile
        if self._connection is connection:
            await self._disconnect()
        if again:
            return await self._request(request)
        what = "closed the connection" if self.server.url else "ended"
        text = f"The MCP server {quote_ascii(self.server.name)} {what} during the call. The next call starts it again"
        raise ToolError(self._safe_text(text, connection.errors))

    async def _request_page(self, client: Any, cursor: str | None) -> Any:
        """Return a page of the list of tools; `cursor`: where it begins, None: the first one."""
        try:
            async with asyncio.timeout(START_TIMEOUT):
                return await client.list_tools(cursor=cursor)
        except TimeoutError:
            name = quote_ascii(self.server.name)
            text = f"The MCP server {name} did not list its tools within {START_TIMEOUT:g} seconds."
            raise ToolError(text) from None

    async def _serve(self, server: Server, connection: _Connection) -> None:
        """Hold a connection until it is closed or ends."""
        from ...host import __version__

        mcp, link = import_sdk(), connection.link
        why: BaseException = EOFError()
        try:
            with connection.scope:
                async with mcp.Client(
                    connect_server(server, connection.errors, link),
                    client_info=mcp.Implementation(name="agent_nb", version=__version__),
                    elicitation_callback=self._elicit,
                ) as client:
                    info = client.server_info
                    about = f"{info.name} {info.version}".strip() if info else ""
                    self.about = self._safe_text(about)[:_LONGEST_ABOUT]
                    connection.client, self.state = client, "running"
                    connection.ready.set_result(None)
                    await link.ended.wait()
        except Exception as fault:
            why = fault
        finally:
            connection.client = None
            link.ended.set()
            # here too: a start that failed early has not called it
            connection.errors.close_write_end()
            if self._connection is connection:  # `close` has not ended it
                self.state = "crashed"
            if not connection.ready.done():
                connection.ready.set_exception(why)

    def _safe_text(self, text: str, errors: StderrTail | None = None) -> str:
        """Return a message without secrets, with the last text in `errors`, the server's stderr."""
        shown = cut_end(strip_hidden(self._redaction.value(text)), _LONGEST_MESSAGE)
        if errors is None:
            return shown
        stderr_text = strip_hidden(errors.text(_STDERR_TIMEOUT))
        return f"{shown}. It wrote to stderr:\n{stderr_text}" if stderr_text else f"{shown}."

    async def _elicit(self, _: Any, params: Any) -> Any:
        """Answer a question of the server: ask the user of its call, else of the newest call."""
        newest = self._keyboards[-1] if self._keyboards else None
        return await answer_elicitation(self.server.name, params, _keyboard_of_call.get() or newest)


def _explain_failure(fault: BaseException, server: Server, status: int) -> str:
    """Return why a server did not start; `status` is that of its last HTTP response."""
    if status in (401, 403):
        return f"It answered with the status {status}: it wants a sign-in. Put a token into the headers of its entry, such as Authorization: Bearer ${{TOKEN}}"
    if status >= 400:
        return f"It answered with the status {status}; is {quote_ascii(server.mask().url)} its address?"
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    if isinstance(fault, FileNotFoundError):
        return f"The command {quote_ascii(server.command)} or its folder was not found"
    if isinstance(fault, PermissionError):
        return f"The command {quote_ascii(server.command)} may not be executed"
    if isinstance(fault, EOFError) or getattr(fault, "code", None) == _CLOSED_CODE:
        return "It ended before it had answered"
    return f"{type(fault).__name__}: {fault}".rstrip(". ")
