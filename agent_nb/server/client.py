"""Follow a remote run: connect, reconnect, and put each event into a log exactly once.

Why a log at the end of it: the run then looks, is recorded and is analysed like any other.

Rules
- It reconnects after any break with `Last-Event-ID`, waiting longer each time nothing new came (`Backoff`), and gives up when for
  `patience` seconds nothing came; a server that restarts meanwhile is found again.
- A refusal that waiting cannot mend (wrong token, unknown format) is a UsageError at once; an unknown run is waited for, because a
  restarted server may not have it yet.
- A loopback address is never asked through a proxy; redirects are not followed, so a token goes to no other host.
- The order and uniqueness of events are `follow`'s; the remote text is data, nothing in it is acted upon.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit, urlunsplit

import anyio
import httpx
import msgspec

from ..errors import ModelError, UsageError, WireError
from ..events import Event
from ..log import EventLog
from ..models.http import is_loopback
from ..run import Run
from ..wire.sse import SSEDecoder
from .follow import Follower

_NEVER = frozenset({400, 401, 403, 405, 406, 421, 422})


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds to wait before a new connection: from `first`, doubled each time, up to `most`, each a random part less.

    `patience`: after so long without anything new it is given up. `torn`: how long missing events are waited for on one connection;
    `idle`: how long a connection may say nothing at all, comments included.
    """

    first: float = 0.1
    most: float = 10.0
    patience: float = 120.0
    torn: float = 1.0
    idle: float = 90.0

    def wait(self, attempt: int) -> float:
        """Return the seconds to wait before attempt number `attempt` (from 0)."""
        return min(self.first * 2.0 ** min(attempt, 30), self.most) * (0.5 + random.random() / 2)  # noqa: S311  (spreads clients)


class Target(msgspec.Struct, frozen=True):
    """Where a run is: the server's address (it may have a path, behind a proxy), the run ("": its newest) and the token ("": none)."""

    server: str
    run: str = ""
    token: str = ""

    def events(self, run: str) -> str:
        """Return the address of a run's events."""
        return f"{self.server}/runs/{quote(run)}/events"


def target(url: str, token: str = "") -> Target:
    """Return where `url` points: a server, `/runs/ID` or `/runs/ID/events`; a `?token=` in it is taken out.

    Raises UsageError when it is no http address.
    """
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{url!r} is no address of a run. Write it as http://HOST:PORT/runs/ID.")
    token = token or (parse_qs(parts.query).get("token") or [""])[0]
    prefix, _, rest = parts.path.rstrip("/").rpartition("/runs/")
    run = rest.partition("/")[0] if "/runs/" in parts.path else ""
    path = prefix if run else parts.path.rstrip("/").removesuffix("/runs")
    return Target(urlunsplit((parts.scheme, parts.netloc, path, "", "")), unquote(run), token)


class Attached:
    """A remote run that is followed: iterate it for events (deltas included), await it for the `Run`.

    `log` holds what has come. `on_state` is called with `connecting`, `following`, `waiting`, `ended` as things change.
    """

    def __init__(self, where: Target, *, backoff: Backoff | None = None, on_state: Callable[[str], Any] = lambda _: None) -> None:
        self.where = where
        self.log = EventLog(where.run)
        self.run = Run(self.log)
        self.follower = Follower()
        self.connections = 0
        self._backoff = backoff or Backoff()
        self._on_state = on_state
        self._busy = False

    def __await__(self) -> Generator[Any, None, Run]:
        return self._finish().__await__()

    async def _finish(self) -> Run:
        async for _ in self:
            pass
        return self.run

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield each event once, in order, until the run has ended; a second time what the log holds.

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
            async for event in self._all():
                yield event
        finally:
            self._busy = False
        self._on_state("ended")

    async def cancel(self) -> None:
        """Ask the server to stop the run. Raises UsageError when it refuses."""
        await self._post("cancel", {})

    async def approve(self, call_id: str, *, allow: bool, args: dict[str, Any] | None = None, reason: str = "") -> None:
        """Answer the question about a call. Raises UsageError when there is none, or the server refuses."""
        await self._post(f"approvals/{quote(call_id)}", {"decision": "allow" if allow else "deny", "args": args, "reason": reason})

    async def _post(self, what: str, body: dict[str, Any]) -> None:
        async with _client(self.where) as client:
            try:
                answer = await client.post(f"{self.where.server}/runs/{quote(self.log.run)}/{what}", json=body)
            except (httpx.HTTPError, OSError) as fault:
                raise UsageError(f"{self.where.server} does not answer ({fault}).") from fault
        if answer.status_code >= 300:
            raise UsageError(f"{self.where.server} refuses ({answer.status_code}): {answer.text[:300]}")

    async def _all(self) -> AsyncGenerator[Event, None]:
        async with _client(self.where) as client:
            url = await self._events_url(client)
            async with aclosing(self._follow(client, url)) as events:
                async for event in events:
                    yield self.log.append(event)

    async def _events_url(self, client: httpx.AsyncClient) -> str:
        """Return the address of the run's events; of a server without a run named, its newest run's."""
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
            if anyio.current_time() - since > self._backoff.patience:
                raise ModelError(f"Gave up on {url} after {self._backoff.patience:g} s without news: {why}.", code="attach")
            self._on_state("waiting")
            await anyio.sleep(self._backoff.wait(attempt))
            attempt += 1

    async def _connection(self, client: httpx.AsyncClient, url: str) -> AsyncGenerator[Event, None]:
        """Yield the events of one connection; it is left when events are missing for longer than `torn` seconds."""
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-cache"}
        if self.follower.last_id:
            headers["Last-Event-ID"] = self.follower.last_id
        async with client.stream("GET", url, params={"internal": "1"}, headers=headers) as response:
            self.connections += 1
            await _accept(response)
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

    async def _bytes(self, response: httpx.Response, torn: Callable[[], float]) -> AsyncGenerator[bytes, None]:
        """Yield what comes; end when missing events do not come. Raises TimeoutError after a long silence."""
        async with aclosing(response.aiter_bytes()) as source:
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


async def _accept(response: httpx.Response) -> None:
    """Raise on an answer that is no stream of events: UsageError where only the user can help."""
    if response.status_code == 200 and response.headers.get("content-type", "").startswith("text/event-stream"):
        return
    body = (await response.aread())[:500].decode("utf-8", "replace")
    if response.status_code in _NEVER or 300 <= response.status_code < 400:
        raise UsageError(f"{response.url.host} refuses ({response.status_code}): {body}")
    if response.status_code == 200:
        kind = response.headers.get("content-type", "of no type")
        raise UsageError(f"{response.url.copy_with(query=None)} is no stream of events, but {kind}.")
    raise httpx.ReadError(f"HTTP {response.status_code}: {body}")


async def newest(client: httpx.AsyncClient, server: str) -> str:
    """Return the newest run of a server. Raises UsageError when it has none or refuses."""
    try:
        answer = await client.get(f"{server}/runs")
    except (httpx.HTTPError, OSError) as fault:
        raise UsageError(f"{server} does not answer ({fault}). Is `jupyter agent-nb serve` running there?") from fault
    if answer.status_code != 200:
        raise UsageError(f"{server} refuses ({answer.status_code}): {answer.text[:300]}")
    runs = answer.json().get("runs") or []
    if not runs:
        raise UsageError(f"{server} has no run to follow yet.")
    return str(runs[-1]["run"])


@asynccontextmanager
async def _client(where: Target) -> AsyncGenerator[httpx.AsyncClient, None]:
    headers = {"Authorization": f"Bearer {where.token}"} if where.token else {}
    parts, times = urlsplit(where.server), httpx.Timeout(10.0, read=None)
    direct = is_loopback(parts.hostname or "")
    # without TLS there is no certificate to check, and loading the certificates takes longer than connecting
    secure = parts.scheme == "https"
    async with httpx.AsyncClient(headers=headers, timeout=times, trust_env=not direct, follow_redirects=False, verify=secure) as client:
        yield client


async def read(url: str, *, token: str = "", headers: Mapping[str, str] | None = None) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of any stream over HTTP, for the codec that reads it (a foreign run that is still going on).

    Raises UsageError when the address is wrong or refuses, ModelError when it breaks off.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{url!r} is no http address.")
    where = Target(url, token=token)
    accept = {"Accept": "text/event-stream, application/x-ndjson, application/json;q=0.9, */*;q=0.1", **(headers or {})}
    try:
        async with _client(where) as client, client.stream("GET", url, headers=accept) as response:
            if response.status_code >= 300:
                body = (await response.aread())[:300].decode("utf-8", "replace")
                raise UsageError(f"{parts.netloc} answers {response.status_code}: {body}")
            async for chunk in response.aiter_bytes():
                yield chunk
    except (httpx.HTTPError, OSError) as fault:
        raise ModelError(f"{parts.netloc} broke off: {fault or type(fault).__name__}", code="attach") from fault


def attach(url: str, token: str = "", *, backoff: Backoff | None = None, on_state: Callable[[str], Any] = lambda _: None) -> Attached:
    """Follow the run at `url` (a server's address: its newest run). `token`: as the server printed it, or `?token=` in the address.

    Iterate the result for events, or await it for the `Run`. Raises UsageError when `url` is no http address.
    """
    return Attached(target(url, token), backoff=backoff, on_state=on_state)
