"""The HTTP edge of the models: a POST whose answer streams in as bytes, and a small GET.

Time limits, proxies, certificates and connections are decided here for all providers.

Rules
- Redirects are not followed, so a key reaches no other host.
- A fault of a request is a ModelError without a secret in it; a wrong setting (base URL, proxy,
  certificates) is a UsageError.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio

from ...errors import ModelError, UsageError
from ...host import read_launch
from ...wire import lenient_loads
from ..config import Timeouts
from .connections import Connections
from .errors import blot_out_secrets
from .network_errors import make_connection_error
from .patience import wait_within
from .reply import Reply
from .transport import Response, Transport, make_transport, raw_headers

if TYPE_CHECKING:
    import httpx

_EVERY_REQUEST = {"user-agent": "jupyter-agent-nb", "accept-encoding": "identity"}
_EVERY_POST = {"content-type": "application/json", "accept": "text/event-stream, application/json"}


def is_loopback(host: str) -> bool:
    """Return whether `host` names this machine: localhost, 127.0.0.0/8 or ::1."""
    host = host.strip("[]").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Http:
    """Requests of one model object to `base_url`, with connections made when they are needed."""

    def __init__(self, base_url: str, timeouts: Timeouts | None = None) -> None:
        self.base_url = check_url(base_url)
        self.host = urlsplit(self.base_url).netloc.rpartition("@")[2]
        self.loopback = is_loopback(urlsplit(self.base_url).hostname or "")
        self.timeouts = timeouts or Timeouts()
        self._connections: Connections | None = None

    @property
    def address(self) -> str:
        """The base URL for display: without a password."""
        url_parts = urlsplit(self.base_url)
        return f"{url_parts.scheme}://{self.host}{url_parts.path}"

    def post(
        self, path: str, body: bytes, headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[Reply]:
        """Send `body` as JSON to `path` below the base URL and yield the reply.

        Raises ModelError if no answer begins.
        """
        return self._exchange("POST", path, {**_EVERY_POST, **headers}, body)

    @asynccontextmanager
    async def _exchange(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes = b""
    ) -> AsyncGenerator[Reply, None]:
        """Send a request and yield its reply; close the response when the block ends."""
        connections = await self._open()
        deadline = anyio.current_time() + self.timeouts.first_byte
        with connections.lend() as transport:
            response = await self._send(transport, method, path, headers, body)
            try:
                yield Reply(response, self.timeouts, deadline, self.host)
            finally:  # a cancelled task closes the response too, but waits at most 1 s for it
                with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                    await response.aclose()

    @asynccontextmanager
    async def forward(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncGenerator[tuple[Response, list[tuple[bytes, bytes]]], None]:
        """Send a request of other code, unchanged, to `path` below the base URL.

        Yield the answer, whose body has not been read, and its headers as they came; waiting for
        it has no time limit. Raises ModelError if no answer begins, and UsageError where live runs
        are forbidden.
        """
        connections = await self._open()
        with connections.lend() as transport:
            try:
                raw = {name: value.encode("latin-1") for name, value in headers.items()}
                url = _parse_url(self.base_url + path)
                response = await transport.send(method, url, raw, body)
            except Exception as error:
                raise make_connection_error(error, self.host, self.timeouts.connect) from None
            try:
                yield response, raw_headers(response)
            finally:
                with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                    await response.aclose()

    async def get_json(self, path: str, headers: Mapping[str, str], seconds: float = 5.0) -> Any:
        """Return the JSON at `path`. Raises ModelError on any fault."""
        try:
            with anyio.fail_after(seconds):
                async with self._exchange("GET", path, headers) as reply:
                    if (status := reply.status) != 200:
                        raise ModelError(f"{self.host} answered {status}.", status=status)
                    return lenient_loads(await reply.read_whole())
        except TimeoutError:
            raise ModelError(
                f"{self.host} did not answer within {seconds:g} s.", code="timeout"
            ) from None
        except ValueError:
            raise ModelError(f"{self.host} did not answer with JSON.", code="garbage") from None

    async def aclose(self) -> None:
        """Close the connections of this event loop; those of another loop end with that loop."""
        connections, self._connections = self._connections, None
        if connections is not None and connections.is_current:
            await connections.aclose()

    async def _send(
        self, transport: Transport, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> Response:
        """Send a request and return its response; every fault is a ModelError."""
        seconds = self.timeouts.first_byte
        all_headers = {**_EVERY_REQUEST, **headers}
        try:
            return await wait_within(
                seconds, transport.send(method, _parse_url(self.base_url + path), all_headers, body)
            )
        except TimeoutError:
            raise ModelError(
                f"{self.host} did not answer within {seconds:g} s.", retryable=True, code="timeout"
            ) from None
        except Exception as error:
            raise make_connection_error(error, self.host, self.timeouts.connect) from None

    async def _open(self) -> Connections:
        """Return this event loop's connections. Raises UsageError where live runs are forbidden."""
        read_launch().check_address(self.base_url)
        if self._connections is None or not self._connections.is_current:
            # without TLS the certificates are not read: that would cost 20 ms
            plain = self.loopback and self.base_url.startswith("http:")
            tls = None if plain else load_certificates()
            url, timeout = _parse_url(self.base_url), self.timeouts.connect
            make = partial(make_transport, url, tls, timeout, loopback=self.loopback)
            self._connections = Connections(make)
            await self._connections.keep()
        return self._connections


@lru_cache(maxsize=64)  # parsing takes as long as sending
def _parse_url(url: str) -> httpx.URL:
    import httpx

    return httpx.URL(url)


def check_url(url: str) -> str:
    """Return the base URL without an endpoint's path. Raises UsageError if the URL is invalid."""
    url = url.strip().rstrip("/")
    for tail in ("/chat/completions", "/responses", "/messages"):
        url = url.removesuffix(tail).rstrip("/")
    try:
        url_parts = urlsplit(url)
        valid = (
            url_parts.scheme in ("http", "https")
            and bool(url_parts.hostname)
            and (url_parts.port is None or url_parts.port > 0)
        )
    except ValueError:
        valid = False
    if not valid:
        raise UsageError(
            f"{blot_out_secrets(url)!r} is not a base URL. It begins with http:// or https:// and usually ends with /v1."
        )
    return url


def load_certificates() -> ssl.SSLContext:
    """Return the TLS context of the environment, else of httpx.

    Raises UsageError if a variable names unreadable certificates.
    """
    import httpx

    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR"):
        value = os.environ.get(name)
        if value:
            path = Path(os.path.expanduser(value))
            try:
                if path.is_dir():
                    return ssl.create_default_context(capath=path)
                return ssl.create_default_context(cafile=path)
            except (OSError, ssl.SSLError) as error:
                raise UsageError(
                    f"The certificates that {name} names cannot be read ({error}). Correct or unset it."
                ) from None
    return httpx.create_ssl_context(trust_env=False)
