"""Reads the events of a remote run, over as many connections as it takes.

Servers restart and proxies cut long responses; the viewer should not notice. So a server that does
not know the run is asked again: it may have restarted and not have loaded the run yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import anyio
import httpx

from ..errors import ModelError, WireError
from ..events import Event
from ..wire import SSEDecoder
from .connect import (
    Backoff,
    Patience,
    check_response,
    describe_fault,
    open_response,
    show_address,
    stream_body,
)
from .follow import Follower


class RemoteRun:
    """The connections to one remote run; `connections` counts those that the server answered.

    `on_state` is called with each new state: `connecting`, `following` or `waiting`.
    """

    def __init__(self, backoff: Backoff, on_state: Callable[[str], Any]) -> None:
        self.connections = 0
        self._backoff, self._on_state = backoff, on_state
        self._follower = Follower()
        self._due = deque[Event]()  # to be yielded; an iteration that is left leaves some here
        self._missing_since = 0.0  # when events began to be missing; 0: none are

    @property
    def over(self) -> bool:
        """Whether the run has ended, and all its events were yielded."""
        return self._follower.over and not self._due

    async def events(self, client: httpx.AsyncClient, url: str) -> AsyncGenerator[Event, None]:
        """Yield each event once, in order, until the run has ended.

        Raises UsageError if refused, ModelError if the server stays away.
        """
        patience, reason = Patience(self._backoff), "it never answered"
        while self._due:
            yield self._due.popleft()
        while not self.over:
            last_id = self._follower.last_id
            self._on_state("connecting")
            try:
                async with aclosing(self._read_connection(client, url)) as events:
                    async for event in events:
                        yield event
                reason = "the connection ended before the run did"
            except (httpx.HTTPError, WireError, TimeoutError, OSError) as fault:
                reason = describe_fault(fault)
            if self._follower.over:
                return
            if self._follower.last_id != last_id:
                patience.renew()
            limit = self._backoff.patience
            if not self.connections:  # the server is probably not there: give up early
                limit = min(self._backoff.unreached, limit)
            if patience.waited > limit:
                raise ModelError(
                    f"Gave up on {show_address(url)} after {patience.waited:.0f} s without news: {reason}.",
                    code="attach",
                )
            self._on_state("waiting")
            await patience.wait()

    async def _read_connection(
        self, client: httpx.AsyncClient, url: str
    ) -> AsyncGenerator[Event, None]:
        """Yield the events of one connection, from the newest known event on."""
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-cache"}
        if self._follower.last_id:
            headers["Last-Event-ID"] = self._follower.last_id
        # unasked, the server leaves internal events out, and Follower would wait for their numbers
        request = client.build_request("GET", url, params={"internal": "1"}, headers=headers)
        async with aclosing(await open_response(client, request, self._backoff.idle)) as response:
            self.connections += 1
            await check_response(response)
            self._on_state("following")
            self._follower.begin_connection()
            decoder = SSEDecoder()
            self._missing_since = 0.0
            async with aclosing(self._read_bytes(response)) as chunks:
                async for chunk in chunks:
                    for frame in decoder.feed(chunk):
                        self._due += self._follower.feed(frame)
                        while self._due:
                            yield self._due.popleft()
                    if not self._follower.is_waiting:
                        self._missing_since = 0.0
                    elif not self._missing_since:
                        self._missing_since = anyio.current_time()
                    if self._follower.over:
                        return

    async def _read_bytes(self, response: httpx.Response) -> AsyncGenerator[bytes, None]:
        """Yield the bytes of a connection; end if missing events do not come in time.

        Raises TimeoutError after `Backoff.idle` seconds of silence.
        """
        async with aclosing(stream_body(response)) as source:
            while True:
                limit = self._backoff.idle
                if self._missing_since:
                    limit = self._missing_since + self._backoff.missing - anyio.current_time()
                    if limit <= 0:
                        return
                with anyio.move_on_after(limit) as scope:
                    try:
                        chunk = await anext(source)
                    except StopAsyncIteration:
                        return
                if scope.cancelled_caught and self._missing_since:
                    return
                if scope.cancelled_caught:
                    raise TimeoutError(f"nothing came for {self._backoff.idle:g} s")
                yield chunk
