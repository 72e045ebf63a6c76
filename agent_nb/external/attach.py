"""Follow a remote run: connect, reconnect, and put each event into a log exactly once.

    run = await agent_nb.attach("http://127.0.0.1:8123")     # in a notebook cell the cards are
                            shown meanwhile
    async for event in agent_nb.attach(url, token): …

Why a log at the end of it: the run then looks, is recorded and is analysed like any other.

Rules
- It reconnects after any break with `Last-Event-ID`, waiting longer each time nothing new came
  (`Backoff`), and gives up when for `patience` seconds nothing came; a server that restarts
  meanwhile is found again. An unknown run is waited for, because a restarted server may not have it
  yet.
- The order and uniqueness of events are `follow`'s; the remote text is data, nothing in it is acted
  upon.
- Detaching leaves the remote run alone, and the log open: following it again goes on where it was.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping
from contextlib import aclosing
from typing import Any
from urllib.parse import quote, urlsplit

import anyio
import httpx

from ..agent import display
from ..agent.run import Run
from ..errors import AgentError, AgentStopped, ModelError, UsageError, WireError
from ..events import Event
from ..events.log import EventLog
from ..models.http.client import is_loopback
from ..wire.sse import SSEDecoder
from .connect import Backoff, Target, accept, ask, body, connect, newest, target
from .follow import Follower


class Attached:
    """A remote run that is followed: iterate it for events (deltas included), await it for the
    `Run`.

    `log` holds what has come. `on_state` is called with `connecting`, `following`, `waiting`,
    `ended` as things change.
    """

    live = False  # the events bring their times with them

    def __init__(
        self,
        where: Target,
        *,
        show: bool | None = None,
        backoff: Backoff | None = None,
        on_state: Callable[[str], Any] = lambda _: None,
    ) -> None:
        self.where = where
        self.log = EventLog(where.run)
        self.run = Run(self.log)
        self.follower = Follower()
        self.connections = 0
        self.detached = False
        # after detaching: the remote run goes on and may be stopped from here
        self.stoppable = False
        self._on_run: Callable[[EventLog], None] = lambda _: None
        self._show = show
        self._backoff = backoff or Backoff()
        self._on_state = on_state
        self._busy = self._opened = False
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._answers: set[asyncio.Task[None]] = set()

    def each_run(self, hear: Callable[[EventLog], None]) -> None:
        """Call `hear` with the log before its first event; the latest caller counts."""
        self._on_run = hear

    @property
    def name(self) -> str:
        """What is followed, without the port: the same run keeps its name when its
        server restarts.
        """
        return f"attach {self.where.run}".rstrip()

    @property
    def title(self) -> str:
        """Where the run comes from, in words; the port of a server of this machine is another one
        each time.
        """
        return f"attached to {'this machine' if is_loopback(urlsplit(self.where.server).hostname or '') else self.where.place}"

    @property
    def logs(self) -> list[EventLog]:
        """The log, once something has come."""
        return [self.log] if len(self.log) else []

    def __await__(self) -> Generator[Any, None, Run]:
        return self._finish().__await__()

    async def _finish(self) -> Run:
        screen = None if self.follower.over else display.followed(self, self._show)
        try:
            await self.follow(screen)
        finally:
            quiet = screen.close() if screen is not None else None
        if screen is not None and screen.stopped:
            raise AgentStopped(screen.stopped, self.run if self.logs else None)
        if quiet is None:
            return self.run
        from .watch import Watched

        return Watched(self.log, quiet)

    async def follow(self, screen: display.Screen | None = None) -> None:
        """Follow until the run has ended, or until `stop`, here or of the cell that shows it.
        Raises as iterating does.
        """
        self._loop, self.detached = asyncio.get_running_loop(), False
        self._task = self._loop.create_task(self._through(), name=f"agent_nb {self.name}")
        await display.wait(self._task, screen, self._left, ends=True)
        if not self._task.done():  # it does not stop
            return
        if not self._task.cancelled():
            self._task.result()
        elif self.detached:
            self.stoppable = await self._may_cancel()

    def _left(self, by: str) -> None:
        """Leave the remote run: by a person, who may stop it from here then, or by a
        cancellation.
        """
        if by:
            self.stop()
        elif self._task is not None:
            self._task.cancel()

    async def _through(self) -> None:
        async for _ in self:
            pass

    def stop(self) -> None:
        """Detach, from any thread: the remote run goes on, and what has come is kept."""
        self.detached = True
        if self._task is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._task.cancel)

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield each event once, in order, until the run has ended; a second time what the log
        holds.

        Raises UsageError when refused or while somebody else iterates, ModelError when given up.
        """
        if self.follower.over:
            for event in self.log:
                yield event
            return
        if self._busy:
            raise UsageError("This run is being followed already. Read its `log`, or attach again.")
        self._busy = True
        try:
            async with aclosing(self._all()) as events:
                async for event in events:
                    yield event
        finally:
            self._busy = False
        self._on_state("ended")

    async def cancel(self) -> None:
        """Ask the server to stop the run. Raises UsageError when it refuses."""
        await self._post("cancel", {})

    async def _may_cancel(self) -> bool:
        """Return whether the run goes on there and may be stopped from here."""
        with anyio.move_on_after(2):
            try:
                async with connect(self.where) as client:
                    _, said = await ask(
                        client, "GET", f"{self.where.server}/runs/{quote(self.log.run)}"
                    )
                found = json.loads(said)
                return found.get("status") == "running" and "cancel" in found.get("controls", ())
            except (httpx.HTTPError, OSError, ValueError, AttributeError):
                return False
        return False

    async def approve(
        self,
        call_id: str,
        *,
        allow: bool,
        args: dict[str, Any] | None = None,
        scope: str = "once",
        reason: str = "",
    ) -> None:
        """Answer the question about a call; `scope` once, tool or run. Raises UsageError when there
        is none, or the server refuses.
        """
        said = {
            "decision": "allow" if allow else "deny",
            "args": args,
            "scope": scope,
            "reason": reason,
        }
        await self._post(f"approvals/{quote(call_id)}", said)

    def answer(self, payload: Mapping[str, Any], *, allow: bool) -> None:
        """Answer as a button does, from any thread; a refusal is told on stderr."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._answer, payload, allow)

    def _answer(self, payload: Mapping[str, Any], allow: bool) -> None:
        task = asyncio.get_running_loop().create_task(self._answered(payload, allow))
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _answered(self, payload: Mapping[str, Any], allow: bool) -> None:
        scope = "tool" if payload.get("scope") == "tool" else "once"
        try:
            await self.approve(
                str(payload.get("call_id", "")), allow=allow, args=payload.get("args"), scope=scope
            )
        except AgentError as fault:
            sys.stderr.write(f"agent_nb: {str(fault)!a}\n")

    async def _post(self, what: str, body: dict[str, Any]) -> None:
        async with connect(self.where) as client:
            try:
                run = (
                    self.log.run
                    if self.where.run or len(self.log)
                    else await newest(client, self.where.server)
                )
                status, said = await ask(
                    client, "POST", f"{self.where.server}/runs/{quote(run)}/{what}", body
                )
            except (httpx.HTTPError, OSError) as fault:
                raise UsageError(f"{self.where.server} does not answer ({fault}).") from fault
        if status >= 300:
            raise UsageError(
                f"{self.where.server} refuses ({status}): {said[:300].decode('utf-8', 'replace')}"
            )

    async def _all(self) -> AsyncGenerator[Event, None]:
        async with connect(self.where) as client:
            url = await self._events_url(client)
            async with aclosing(self._follow(client, url)) as events:
                async for event in events:
                    if not len(self.log) and not self._opened:
                        self._opened = True
                        self._on_run(self.log)
                    yield self.log.append(event)

    async def _events_url(self, client: httpx.AsyncClient) -> str:
        """Return the address of the run's events; of a server without a run named, its newest
        run's.
        """
        if not self.where.run:
            self.log.run = await newest(client, self.where.server)
        return self.where.events(self.log.run)

    async def _follow(self, client: httpx.AsyncClient, url: str) -> AsyncGenerator[Event, None]:
        attempt, since, why = 0, anyio.current_time(), "it never answered"
        while True:
            before = self.follower.last_id
            self._on_state("connecting")
            try:
                async with aclosing(self._connection(client, url)) as events:
                    async for event in events:
                        yield event
                why = "the connection ended before the run did"
            except (httpx.HTTPError, WireError, TimeoutError, OSError) as fault:
                why = str(fault) or type(fault).__name__
            if self.follower.over:
                return
            if self.follower.last_id != before:
                attempt, since = 0, anyio.current_time()
            patience = (
                self._backoff.patience
                if self.connections
                else min(self._backoff.door, self._backoff.patience)
            )
            if anyio.current_time() - since > patience:
                raise ModelError(
                    f"Gave up on {url} after {patience:g} s without news: {why}.", code="attach"
                )
            self._on_state("waiting")
            await anyio.sleep(self._backoff.wait(attempt))
            attempt += 1

    async def _connection(self, client: httpx.AsyncClient, url: str) -> AsyncGenerator[Event, None]:
        """Yield the events of one connection; it is left when events are missing for longer than
        `torn` seconds.
        """
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-cache"}
        if self.follower.last_id:
            headers["Last-Event-ID"] = self.follower.last_id
        async with client.stream("GET", url, params={"internal": "1"}, headers=headers) as response:
            self.connections += 1
            await accept(response)
            self._on_state("following")
            self.follower.connected()
            decoder, torn = SSEDecoder(), 0.0
            async with aclosing(self._bytes(response, lambda: torn)) as chunks:
                async for chunk in chunks:
                    for frame in decoder.feed(chunk):
                        for event in self.follower.feed(frame):
                            yield event
                    torn = (torn or anyio.current_time()) if self.follower.torn else 0.0
                    if self.follower.over:
                        return

    async def _bytes(
        self, response: httpx.Response, torn: Callable[[], float]
    ) -> AsyncGenerator[bytes, None]:
        """Yield what comes; end when missing events do not come. Raises TimeoutError after a long
        silence.
        """
        async with aclosing(body(response)) as source:
            while True:
                limit = self._backoff.idle
                if since := torn():
                    limit = since + self._backoff.torn - anyio.current_time()
                    if limit <= 0:
                        return
                with anyio.move_on_after(limit) as scope:
                    try:
                        chunk = await anext(source)
                    except StopAsyncIteration:
                        return
                if scope.cancelled_caught:
                    if torn():
                        return
                    raise TimeoutError(f"nothing came for {self._backoff.idle:g} s")
                yield chunk


def attach(
    url: str,
    token: str = "",
    *,
    show: bool | None = None,
    backoff: Backoff | None = None,
    on_state: Callable[[str], Any] = lambda _: None,
) -> Attached:
    """Follow the run at `url` (a server's address: its newest run); iterate the result for events,
    or await it for the `Run`.

    `token`: as the server tells it, or `?token=` in the address; that of a server of yours on this
    machine is found. `show`: show the cards when awaited (None: in a notebook). Raises UsageError
    when `url` is no http address.
    """
    return Attached(target(url, token), show=show, backoff=backoff, on_state=on_state)
