"""How a request reaches a server: by our own connection, or by httpx.

Our own connection (`direct`) is faster, but only httpx handles proxies and passwords in URLs. A
loopback address is never reached through a proxy.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol
from urllib.request import getproxies

from ...errors import UsageError
from .direct import WRITING, Answer, Direct
from .errors import blot_out_secrets

if TYPE_CHECKING:
    import httpx


class Response(Protocol):
    """The beginning of an answer; `headers` have names in lower case."""

    @property
    def status_code(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers."""

    @property
    def stream(self) -> AsyncIterable[bytes] | Any:
        """The body as it arrives."""

    async def aclose(self) -> None:
        """End the exchange; close the connection unless the body was read to its end."""


class Transport(Protocol):
    """Sends requests to one server, one at a time."""

    async def send(
        self, method: str, url: Any, headers: Mapping[str, str | bytes], body: bytes
    ) -> Response:
        """Send a request and return the beginning of its answer. Raises exceptions of httpx."""

    async def aclose(self) -> None:
        """Close the connection."""


class Proxied:
    """A transport through httpx, with the proxies of the environment if `proxied`.

    Without them it serves for a password in the URL. Raises UsageError for an unusable proxy.
    """

    def __init__(
        self, tls: ssl.SSLContext | None, connect_timeout: float, *, proxied: bool
    ) -> None:
        import httpx

        try:
            self._client = httpx.AsyncClient(
                # httpx would take bytes behind an answer for the next one: no connection is kept
                limits=httpx.Limits(max_keepalive_connections=0),
                timeout=httpx.Timeout(None, connect=connect_timeout, write=WRITING),
                verify=tls if tls is not None else False,
                trust_env=proxied,
            )
        except ImportError:
            raise UsageError(
                "A SOCKS proxy is set. Install its support with: pip install 'httpx[socks]'"
            ) from None
        except ValueError as error:
            raise UsageError(
                f"The proxy of the environment cannot be used: {blot_out_secrets(str(error))}."
            ) from None

    async def send(
        self, method: str, url: httpx.URL, headers: Mapping[str, str | bytes], body: bytes
    ) -> Response:
        """Send a request and return the beginning of its answer. Raises exceptions of httpx."""
        import httpx

        named: Any = headers  # httpx takes texts and bytes mixed, but its types do not say so
        request = httpx.Request(method, url, headers=named, content=body)
        return await self._client.send(request, stream=True)

    async def aclose(self) -> None:
        """Close the connection."""
        await self._client.aclose()


def raw_headers(response: Response) -> list[tuple[bytes, bytes]]:
    """Return the headers of an answer as they came; a name may come several times."""
    headers: Any = response.headers  # for httpx; its `raw` does not join headers of one name
    return list(response.raw_headers if isinstance(response, Answer) else headers.raw)


def make_transport(
    url: httpx.URL, tls: ssl.SSLContext | None, connect_timeout: float, *, loopback: bool
) -> Transport:
    """Return a transport to the server of `url`, not yet connected.

    `tls` checks the server's certificate (None: plain HTTP). `connect_timeout`: seconds to open the
    connection. `loopback`: the server is on this machine. Raises UsageError for an unusable proxy.
    """
    proxied = not loopback and any(getproxies().get(name) for name in ("http", "https", "all"))
    if proxied or url.userinfo:
        return Proxied(tls, connect_timeout, proxied=proxied)
    secure = url.scheme == "https"
    port = url.port or (443 if secure else 80)
    return Direct(url.raw_host.decode("ascii"), port, tls if secure else None, connect_timeout)
