"""Connections to a run on the network: addresses, tokens, waiting times, refusals.

Rules
- A loopback address is never reached through a proxy, and redirects are not followed, so that a
  token reaches no other host.
- Each request has its own connection: on a shared one, httpx would read excess bytes of a response
  as the beginning of the next.
- A server may accept a request and never answer: a response must begin within a time limit
  (`open_response`), and a short one must be complete within `REPLY_TIMEOUT` seconds.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit, urlunsplit

import anyio
import httpx
import msgspec

from ..errors import UsageError, WireError
from ..host import read_launch
from ..models import hide_secret, is_loopback
from ..wire import decompress_body, escape_unprintable, lenient_loads
from . import server_notes

LARGEST_ANSWER = 8 << 20  # bytes; a list of 5000 runs has fewer
REPLY_TIMEOUT = 30.0  # seconds for a complete short answer
_LONGEST_REASON = 500  # bytes of a refusal that a message shows
# statuses that no retry can change
_FINAL_STATUSES = frozenset({400, 401, 403, 405, 406, 421, 422})


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """When to connect again, and when to give up; all in seconds.

    - `first_wait`, `longest_wait`: the wait before a new connection starts with the first and
      doubles up to the longest, less a random part
    - `patience`: how long to retry without a new event
    - `idle`: how long a response may take to begin; with `attach`, also how long a connection may
      be silent, without even a comment
    - `unreached` (`attach` only): the patience while no server has answered yet
    - `missing` (`attach` only): how long to wait for an event when later ones have come
    """

    first_wait: float = 0.1
    longest_wait: float = 10.0
    patience: float = 120.0
    unreached: float = 5.0
    missing: float = 1.0
    idle: float = 90.0

    def choose_wait(self, attempt: int) -> float:
        """Return the seconds to wait before attempt number `attempt` (from 0)."""
        # the exponent is limited, because 2.0 ** 1024 overflows
        wait = min(self.first_wait * 2.0 ** min(attempt, 30), self.longest_wait)
        return wait * (0.5 + random.random() / 2)  # noqa: S311  (spreads clients)


class Patience:
    """The waits between connections, which grow as `Backoff` says until `renew` starts over."""

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self._attempt, self._since = 0, anyio.current_time()

    def renew(self) -> None:
        """Start over, because something new has arrived."""
        self._attempt, self._since = 0, anyio.current_time()

    @property
    def waited(self) -> float:
        """The seconds since the last `renew`, or since the beginning."""
        return anyio.current_time() - self._since

    async def wait(self) -> None:
        """Wait before the next attempt."""
        await anyio.sleep(self._backoff.choose_wait(self._attempt))
        self._attempt += 1


@dataclass(frozen=True)
class Target:
    """Where a run is: the server's address (with the path of a proxy), run id and token.

    An empty `run` means the newest run, an empty `token` no token.
    """

    server: str
    run: str = ""
    token: str = ""

    def __repr__(self) -> str:  # without the token
        return f"Target({show_address(self.server)!r}, {self.run!r})"

    def locate(self, run: str, path: str = "") -> str:
        """Return the address of a run, or of a `path` below it, such as `/events`."""
        return f"{self.server}/runs/{quote(run, safe='')}{path}"

    @property
    def host_and_port(self) -> str:
        """The host and port, for people."""
        return urlsplit(self.server).netloc.rpartition("@")[2]


def split_address(url: str) -> SplitResult | None:
    """Return the parts of an http address, None if `url` is not one."""
    try:
        parts = urlsplit(url)
        # `port` raises ValueError for an invalid port; None, the default of the scheme, is fine
        is_valid = (
            parts.scheme in ("http", "https")
            and parts.hostname
            and (parts.port or True)
            and httpx.URL(url).host
        )
    except (ValueError, httpx.InvalidURL):  # an invalid IPv6 address, port or international name
        return None
    return parts if is_valid else None


def show_address(url: str) -> str:
    """Return an address for people: without user, password and query."""
    parts = split_address(url)
    if parts is None:
        return url.partition("?")[0].rpartition("@")[2]
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def parse_target(url: str, token: str = "") -> Target:
    """Return where `url` points: a server, `/runs/ID` or `/runs/ID/events`.

    A `?token=` in it is used, and left out of the result's address. Without a token, a loopback
    address gets the one in the note of the user's own server there. Raises UsageError if the URL is
    invalid.
    """
    parts = split_address(url if "://" in url else f"http://{url}")
    if parts is None:
        raise UsageError(
            f"{show_address(url)!r} is not the address of a run. Write it as http://HOST:PORT/runs/ID."
        )
    token = (token or (parse_qs(parts.query).get("token") or [""])[0]).strip()
    path, has_run, run_path = parts.path.rstrip("/").rpartition("/runs/")
    # an id may contain slashes, and end in `/events` itself
    run = run_path.removesuffix("/events") if has_run else ""
    if not run:
        path = parts.path.rstrip("/").removesuffix("/runs")
    server = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
    if token:
        hide_secret(token)
    elif is_loopback(parts.hostname or ""):
        token = server_notes.find_token(server)
    return Target(server, unquote(run), token)


@asynccontextmanager
async def connect(target: Target) -> AsyncGenerator[httpx.AsyncClient, None]:
    """Open a client for the server of `target`.

    Raises UsageError where nothing may run live, and for a token that cannot be sent.
    """
    headers, auth = {"Accept-Encoding": "identity"}, None
    # httpx would raise an error that shows the token
    if not (target.token.isascii() and target.token.isprintable()):
        raise UsageError("The token has characters that cannot be sent. Copy it again.")
    if target.token:
        headers["Authorization"] = f"Bearer {target.token}"
        auth = _leave_request  # else httpx replaces the token with the user of the address
    read_launch().check_address(target.server)
    parts = urlsplit(target.server)
    async with httpx.AsyncClient(
        headers=headers,
        auth=auth,
        timeout=httpx.Timeout(10.0, read=None),  # a stream may be silent; callers limit their waits
        limits=httpx.Limits(max_keepalive_connections=0),
        trust_env=not is_loopback(parts.hostname or ""),
        follow_redirects=False,
        # without TLS no certificate is checked, and loading them takes longer than connecting
        verify=parts.scheme == "https",
    ) as client:
        yield client


def _leave_request(request: httpx.Request) -> httpx.Request:
    return request


async def stream_body(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of a response as they come; close it if it is not read to its end.

    Raises UsageError on an unknown compression, httpx.HTTPError when it breaks off or is damaged.
    """
    encoding = response.headers.get("content-encoding", "")
    try:
        body = decompress_body(cast("AsyncGenerator[bytes, None]", response.aiter_raw()), encoding)
    except WireError as error:
        raise UsageError(f"{response.url.host}: {error}") from None
    try:
        async with aclosing(body) as pieces:
            async for piece in pieces:
                yield piece
    except WireError as error:
        raise httpx.DecodingError(str(error)) from None


async def read_beginning(response: httpx.Response, size: int = LARGEST_ANSWER) -> bytes:
    """Return the first `size` bytes of a response, or what arrives in `REPLY_TIMEOUT` seconds.

    Less if the connection breaks, or if the body cannot be decompressed further.
    """
    beginning = bytearray()
    with suppress(UsageError, httpx.HTTPError), anyio.move_on_after(REPLY_TIMEOUT):
        await _read_into(beginning, response, size)
    return bytes(beginning[:size])


async def _read_into(beginning: bytearray, response: httpx.Response, size: int) -> None:
    """Add the first bytes of a response, at least `size` if it has so many; raise if it breaks."""
    async with aclosing(stream_body(response)) as chunks:
        async for chunk in chunks:
            beginning += chunk
            if len(beginning) >= size:
                break


async def read_reason(response: httpx.Response) -> str:
    """Return the beginning of a refusal, as far as it arrives."""
    return format_reason(await read_beginning(response, _LONGEST_REASON))


def format_reason(body: bytes) -> str:
    """Return the beginning of a refusal as text without control characters."""
    return escape_unprintable(body[:_LONGEST_REASON].decode("utf-8", "replace"))


async def send_request(
    client: httpx.AsyncClient, method: str, url: str, payload: Any = None
) -> tuple[int, bytes]:
    """Return the status and the beginning of a short response.

    Raises httpx.HTTPError, also when it does not come within `REPLY_TIMEOUT` seconds, or when what
    a GET returns breaks off.
    """
    with anyio.move_on_after(REPLY_TIMEOUT):
        async with client.stream(method, url, json=payload) as response:
            if method != "GET" or response.status_code != 200:
                return response.status_code, await read_beginning(response)
            answer = bytearray()
            await _read_into(answer, response, LARGEST_ANSWER)
            return response.status_code, bytes(answer)
    raise httpx.ReadTimeout(f"no answer came for {REPLY_TIMEOUT:g} s")


async def open_response(
    client: httpx.AsyncClient, request: httpx.Request, seconds: float
) -> httpx.Response:
    """Return the response to a request, its body unread; the caller closes it.

    Raises httpx.HTTPError, also when no answer begins within `seconds`.
    """
    with anyio.move_on_after(seconds):
        return await client.send(request, stream=True)
    raise httpx.ReadTimeout(f"no answer came for {seconds:g} s")


def describe_fault(fault: Exception) -> str:
    """Return why a request failed: the text of the error or, as httpx often has none, its type."""
    return str(fault) or type(fault).__name__


async def check_response(response: httpx.Response) -> None:
    """Raise unless a response streams events: UsageError if no retry can help, else ReadError."""
    status, kind = response.status_code, response.headers.get("content-type", "of no type")
    if status == 200 and kind.lower().startswith("text/event-stream"):
        return
    if status == 200:
        address = show_address(str(response.url))
        raise UsageError(f"{address} is not a stream of events, but {kind}.")
    reason = await read_reason(response)
    if status in _FINAL_STATUSES or 300 <= status < 400:
        raise UsageError(f"{response.url.host} refuses ({status}): {reason}")
    raise httpx.ReadError(f"HTTP {status}: {reason}")


async def find_newest_run(client: httpx.AsyncClient, server: str) -> str:
    """Return the id of a server's newest run. Raises UsageError if the server gives none."""
    shown = show_address(server)
    try:
        status, answer = await send_request(client, "GET", f"{server}/runs")
    except (httpx.HTTPError, OSError) as fault:
        raise UsageError(
            f"{shown} does not answer ({describe_fault(fault)}). Is `jupyter agent-nb serve` running there?"
        ) from fault
    if status != 200:
        raise UsageError(f"{shown} refuses ({status}): {format_reason(answer)}")
    try:
        runs = lenient_loads(answer).get("runs") or []
        newest = str(runs[-1]["run"]) if runs else ""
        quote(newest)  # half of a surrogate pair cannot stand in an address
    except (ValueError, AttributeError, LookupError, TypeError):
        raise UsageError(f"{shown} does not list runs. Is it a server of agent_nb?") from None
    if not newest:
        raise UsageError(f"{shown} has no run to follow yet.")
    return newest
