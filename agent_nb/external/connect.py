"""Where a run is on the network and how a connection to it is made: addresses, tokens, waiting
times, refusals.

Rules
- A refusal that waiting cannot mend (wrong token, unknown format, a compression that is not read)
  is a UsageError at once.
- Of an answer that is no stream at most `ANSWER` bytes are read; what is compressed is decoded in
  pieces (`wire.compression`).
- A loopback address is never asked through a proxy; redirects are not followed, so a token goes to
  no other host.
- Without a token, that of a server of this user on this machine is found (`tokens`); it is sent to
  no other address.
"""

from __future__ import annotations

import json
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, cast
from urllib.parse import parse_qs, quote, unquote, urlsplit, urlunsplit

import httpx
import msgspec

from ..errors import UsageError, WireError
from ..models import keys
from ..models.http.client import is_loopback
from ..models.offline import check_address
from ..wire.compression import Decompressor, decoded
from . import tokens

ANSWER = 1 << 20
_NEVER = frozenset({400, 401, 403, 405, 406, 421, 422})


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds to wait before a new connection: from `first`, doubled each time, up to `most`, each
    a random part less.

    `patience`: after so long without anything new it is given up; `door`: after so long when nobody
    has ever answered. `torn`: how long missing events are waited for on one connection; `idle`: how
    long a connection may say nothing at all, comments included.
    """

    first: float = 0.1
    most: float = 10.0
    patience: float = 120.0
    door: float = 5.0
    torn: float = 1.0
    idle: float = 90.0

    def wait(self, attempt: int) -> float:
        """Return the seconds to wait before attempt number `attempt` (from 0)."""
        return min(self.first * 2.0 ** min(attempt, 30), self.most) * (0.5 + random.random() / 2)  # noqa: S311  (spreads clients)


class Target(msgspec.Struct, frozen=True):
    """Where a run is: the server's address (it may have a path, behind a proxy), the run ("": its
    newest) and the token ("": none).
    """

    server: str
    run: str = ""
    token: str = ""

    def events(self, run: str) -> str:
        """Return the address of a run's events."""
        return f"{self.server}/runs/{quote(run)}/events"

    @property
    def place(self) -> str:
        """Return the host and port, for people."""
        return urlsplit(self.server).netloc.rpartition("@")[2]


def target(url: str, token: str = "") -> Target:
    """Return where `url` points: a server, `/runs/ID` or `/runs/ID/events`; a `?token=` in it is
    taken out.

    Raises UsageError when it is no http address.
    """
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(
            f"{url!r} is not the address of a run. Write it as http://HOST:PORT/runs/ID."
        )
    token = token or (parse_qs(parts.query).get("token") or [""])[0]
    prefix, _, rest = parts.path.rstrip("/").rpartition("/runs/")
    run = rest.partition("/")[0] if "/runs/" in parts.path else ""
    path = prefix if run else parts.path.rstrip("/").removesuffix("/runs")
    server = urlunsplit((parts.scheme, parts.netloc, path, "", ""))
    if token:
        keys.hide(token)
    return Target(
        server, unquote(run), token or (tokens.find(server) if is_loopback(parts.hostname) else "")
    )


@asynccontextmanager
async def connect(where: Target) -> AsyncGenerator[httpx.AsyncClient, None]:
    """Give a client for the server of `where`."""
    headers = {
        "Accept-Encoding": "identity",
        **({"Authorization": f"Bearer {where.token}"} if where.token else {}),
    }
    check_address(where.server)
    parts, times = urlsplit(where.server), httpx.Timeout(10.0, read=None)
    direct = is_loopback(parts.hostname or "")
    # without TLS there is no certificate to check, and loading the certificates takes longer than
    # connecting
    secure = parts.scheme == "https"
    async with httpx.AsyncClient(
        headers=headers, timeout=times, trust_env=not direct, follow_redirects=False, verify=secure
    ) as client:
        yield client


async def body(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of an answer as they come; close it when it is not read to its end.

    Raises UsageError when it is compressed in a way that is not read, httpx.HTTPError when it
    breaks off or is damaged.
    """
    encoding = response.headers.get("content-encoding", "")
    try:
        Decompressor(encoding)
    except WireError as error:
        raise UsageError(f"{response.url.host}: {error}") from None
    try:
        async with aclosing(
            decoded(cast("AsyncGenerator[bytes, None]", response.aiter_raw()), encoding)
        ) as pieces:
            async for piece in pieces:
                yield piece
    except WireError as error:
        raise httpx.DecodingError(str(error)) from None


async def beginning(response: httpx.Response, size: int = ANSWER) -> bytes:
    """Return the first `size` bytes of an answer, none of one that cannot be decompressed. Raises
    httpx.HTTPError.
    """
    found = bytearray()
    with suppress(UsageError, httpx.DecodingError):
        async with aclosing(body(response)) as chunks:
            async for chunk in chunks:
                found += chunk
                if len(found) >= size:
                    break
    return bytes(found[:size])


async def ask(
    client: httpx.AsyncClient, method: str, url: str, payload: Any = None
) -> tuple[int, bytes]:
    """Return the status of a short answer and its beginning. Raises httpx.HTTPError."""
    async with client.stream(method, url, json=payload) as response:
        return response.status_code, await beginning(response)


async def accept(response: httpx.Response) -> None:
    """Raise on an answer that is no stream of events: UsageError where only the user can help."""
    if response.status_code == 200 and response.headers.get("content-type", "").startswith(
        "text/event-stream"
    ):
        return
    said = (await beginning(response, 500)).decode("utf-8", "replace")
    if response.status_code in _NEVER or 300 <= response.status_code < 400:
        raise UsageError(f"{response.url.host} refuses ({response.status_code}): {said}")
    if response.status_code == 200:
        kind = response.headers.get("content-type", "of no type")
        raise UsageError(
            f"{response.url.copy_with(query=None)} is not a stream of events, but {kind}."
        )
    raise httpx.ReadError(f"HTTP {response.status_code}: {said}")


async def newest(client: httpx.AsyncClient, server: str) -> str:
    """Return the newest run of a server. Raises UsageError when it has none or refuses."""
    try:
        status, said = await ask(client, "GET", f"{server}/runs")
    except (httpx.HTTPError, OSError) as fault:
        raise UsageError(
            f"{server} does not answer ({fault}). Is `jupyter agent-nb serve` running there?"
        ) from fault
    if status != 200:
        raise UsageError(f"{server} refuses ({status}): {said[:300].decode('utf-8', 'replace')}")
    try:
        runs = json.loads(said).get("runs") or []
    except (ValueError, AttributeError):
        raise UsageError(f"{server} does not list runs. Is it a server of agent_nb?") from None
    if not runs:
        raise UsageError(f"{server} has no run to follow yet.")
    return str(runs[-1]["run"])
