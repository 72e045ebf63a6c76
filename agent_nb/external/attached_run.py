"""Follows a remote run: logs each event once, and can stop the run and answer its questions.

    run = await agent_nb.attach("http://127.0.0.1:8123")   # in a cell: shows its cards
    async for event in agent_nb.attach(url, token): …

People watch a run of another process or machine from their notebook, over a network that may break
at any time. `remote_run` reads the events over as many connections as that takes.

Rules
- Remote text is only shown and stored, never executed.
- Detaching does not affect the remote run and leaves the log open; following again resumes.
- If a request to stop the run or to answer gets no reply, it may have had its effect: the error
  advises to look at the run first.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from typing import Any
from urllib.parse import quote, urlsplit

import anyio
import httpx

from ..agent import Run, Screen
from ..errors import AgentError, UsageError
from ..events import Event, EventLog
from ..models import is_loopback
from ..wire import as_dict, as_list, lenient_loads
from .connect import (
    Backoff,
    Target,
    connect,
    describe_fault,
    find_newest_run,
    format_reason,
    parse_target,
    send_request,
    show_address,
)
from .followed import FollowedRuns
from .remote_run import RemoteRun

_LEAVING = 1.0  # seconds in which an iteration that was left closes its connection


class Attached(FollowedRuns):
    """A remote run that is followed: iterate it for events (deltas included), await it for the Run.

    `log` holds the events so far. `on_state` is called with each new state of the connection:
    `connecting`, `following`, `waiting` or `ended`.
    """

    live = False  # the events carry their times, so the times of arrival are not needed

    def __init__(
        self,
        where: Target,
        *,
        show: bool | None = None,
        backoff: Backoff | None = None,
        on_state: Callable[[str], Any] = lambda _: None,
    ) -> None:
        super().__init__("attach to it again", show=show)
        self.where = where
        self.log = EventLog(where.run)
        self.detached = False
        self.stoppable = False  # after detaching: the remote run can be stopped from here
        self._run = Run(self.log)
        self._remote = RemoteRun(backoff or Backoff(), on_state)
        self._answers: set[asyncio.Task[None]] = set()  # under way; asyncio's references are weak
        self._on_state = on_state
        self._has_id = bool(where.run)  # `log.run` is the remote run's id
        self._busy = False  # an iteration is going on
        self._opened = False  # the callback has received the log

    @property
    def run(self) -> Run:
        """The run, with the events so far."""
        return self._run

    @property
    def name(self) -> str:
        """The name of the followed run, without the port, which a restart of the server changes."""
        return f"attach {self.where.run}".rstrip()

    @property
    def title(self) -> str:
        """The origin of the run for people, without the port of a server on this machine."""
        is_local = is_loopback(urlsplit(self.where.server).hostname or "")
        return f"attached to {'this machine' if is_local else self.where.host_and_port}"

    @property
    def address(self) -> str:
        """The address of the run for people, without user and password."""
        return show_address(self.where.locate(self.log.run))

    @property
    def logs(self) -> list[EventLog]:
        """The log, once it has events."""
        return [self.log] if len(self.log) else []

    @property
    def connections(self) -> int:
        """The number of connections made so far."""
        return self._remote.connections

    def _screen(self) -> Screen | None:
        return None if self._remote.over else super()._screen()

    async def follow(self, screen: Screen | None = None) -> None:
        """Follow until the run has ended, `stop` is called, or the user stops the awaiting cell.

        Raises as iterating does.
        """
        self.detached = False
        task = self._start_task(f"agent_nb {self.name}")
        await self._wait_for_task(task, screen, self._leave)
        if not task.done():  # the cell was stopped a second time, while the task was still ending
            return
        if not task.cancelled():
            task.result()
        elif self.detached:
            self.stoppable = await self._may_cancel()

    def _leave(self, by: str) -> None:
        """Stop following; if a user stopped the cell (`by`), detach.

        After that, `follow` finds out whether the remote run can be stopped too.
        """
        if by:
            self.stop()
        elif self._task is not None:
            self._task.cancel()

    async def _drive(self) -> None:
        async for _ in self:
            pass

    def stop(self) -> None:
        """Detach, from any thread: the remote run goes on, and the log keeps its events."""
        self.detached = True
        if self._task is not None:
            self._call_on_loop(self._task.cancel)

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield each event once, in order, until the run ends; after that, yield the logged events.

        A second iteration before the end goes on where the first one stopped. Raises UsageError if
        the server refuses or another iteration is going on, ModelError if the server stays away.
        """
        if self._remote.over:
            for event in self.log:
                yield event
            return
        with anyio.move_on_after(_LEAVING):
            while self._busy:
                await anyio.sleep(0.01)
        if self._busy:
            raise UsageError("This run is being followed already. Read its `log`, or attach again.")
        self._busy = True
        try:
            async with aclosing(self._events()) as events:
                async for event in events:
                    yield event
        finally:
            self._busy = False
        self._on_state("ended")

    async def _events(self) -> AsyncGenerator[Event, None]:
        """Connect and yield each event after logging it; report the log before the first."""
        async with connect(self.where) as client:
            url = await self._locate(client, "/events")
            async with aclosing(self._remote.events(client, url)) as events:
                async for event in events:
                    if not len(self.log) and not self._opened:
                        self._opened = True
                        self._on_run(self.log)
                    yield self.log.append(event)

    async def _locate(self, client: httpx.AsyncClient, path: str) -> str:
        """Return the address of the run; without an id, the newest run becomes the followed one."""
        if not self._has_id:
            self.log.run = await find_newest_run(client, self.where.server)
            self._has_id = True
        return self.where.locate(self.log.run, path)

    async def cancel(self) -> None:
        """Ask the server to stop the run. Raises UsageError when it refuses."""
        await self._post("cancel", {})

    async def approve(
        self,
        call_id: str,
        *,
        allow: bool,
        args: dict[str, Any] | None = None,
        scope: str = "once",
        reason: str = "",
    ) -> None:
        """Answer the question about a call; `scope`: `once`, `args`, `tool` or `run`.

        Raises UsageError if no question is open, or the server refuses.
        """
        decision = "allow" if allow else "deny"
        body = {"decision": decision, "args": args, "scope": scope, "reason": reason}
        await self._post(f"approvals/{quote(call_id, safe='')}", body)

    def answer(self, payload: Mapping[str, Any], *, allow: bool) -> None:
        """Send the answer of a button, from any thread; a refusal is printed on stderr."""
        self._call_on_loop(self._begin_answer, payload, allow)

    def _begin_answer(self, payload: Mapping[str, Any], allow: bool) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(payload, allow))
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _answer(self, payload: Mapping[str, Any], allow: bool) -> None:
        call_id, args = str(payload.get("call_id", "")), payload.get("args")
        scope, reason = str(payload.get("scope", "once")), str(payload.get("reason", ""))
        try:
            await self.approve(call_id, allow=allow, args=args, scope=scope, reason=reason)
        except AgentError as fault:
            sys.stderr.write(f"agent_nb: {str(fault)!a}\n")

    async def _may_cancel(self) -> bool:
        """Return whether the remote run goes on and can be stopped; False if no answer in 2 s."""
        with anyio.move_on_after(2), suppress(httpx.HTTPError, OSError, ValueError, UsageError):
            async with connect(self.where) as client:
                _, answer = await send_request(client, "GET", self.where.locate(self.log.run))
            info = as_dict(lenient_loads(answer))
            return info.get("status") == "running" and "cancel" in as_list(info.get("controls"))
        return False

    async def _post(self, what: str, body: dict[str, Any]) -> None:
        """Send a request about the run. Raises UsageError."""
        server = show_address(self.where.server)
        async with connect(self.where) as client:
            try:
                url = await self._locate(client, f"/{what}")
                status, answer = await send_request(client, "POST", url, body)
            except (httpx.HTTPError, OSError) as fault:
                raise UsageError(
                    f"{server} does not answer ({describe_fault(fault)}). Whether it took this in is not known: look at the run, then try again."
                ) from fault
        if status >= 300:
            advice = " Attach again with ?token=TOKEN in the address." if status == 401 else ""
            raise UsageError(f"{server} refuses ({status}): {format_reason(answer)}{advice}")


def attach(
    url: str,
    token: str = "",
    *,
    show: bool | None = None,
    backoff: Backoff | None = None,
    on_state: Callable[[str], Any] = lambda _: None,
) -> Attached:
    """Follow the run at `url`; iterate the result for events, or await it for the `Run`.

    `url`: a run's address, or a server's for its newest run. `token`: as the server prints it, or
    `?token=` in the address; your own server on this machine needs none here. `show`: show the
    cards when awaited (None: in a notebook). Raises UsageError if `url` is not an http address.
    """
    return Attached(parse_target(url, token), show=show, backoff=backoff, on_state=on_state)
