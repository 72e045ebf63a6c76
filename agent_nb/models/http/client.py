"""The HTTP edge of the models: a POST whose answer streams in as bytes, and a small GET.

Why one file: time limits, proxies, certificates and what a broken connection means are decided once
for all providers. This is, with `server/client`, the only place that imports httpx, and it does so
when the first request is made.

Rules
- A client that nobody closed is closed when its event loop ends.
- A loopback address is never asked through a proxy; other hosts follow HTTP_PROXY, HTTPS_PROXY,
  ALL_PROXY and NO_PROXY.
- Certificates are checked against SSL_CERT_FILE, SSL_CERT_DIR or REQUESTS_CA_BUNDLE where set;
  errors of TLS name these.
- Three time limits, in seconds: to connect, to the first byte of the answer, and between bytes.
- No compression is asked for; what a server compresses all the same is decoded in pieces
  (`wire.compression`), error bodies too.
- Leaving `post` closes the connection at once. Redirects are not followed: a key goes to no other
  host.
- Every fault is a ModelError without a secret in it.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel
import msgspec

from ...errors import ModelError, UsageError, WireError
from ...wire.compression import decoded
from ...wire.json_text import lenient_loads
from ..offline import check_address
from .errors import scrub

if TYPE_CHECKING:
    import httpx

ERROR_BODY = 64 * 1024
LARGEST = 16 * 1024 * 1024  # bytes of a small answer, such as a list of models
CERTIFICATES = (
    "Set SSL_CERT_FILE (or REQUESTS_CA_BUNDLE) to the file of your organisation's certificates."
)


class Timeouts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits in seconds: to connect, to the first byte of the answer (the model thinks), and from
    byte to byte.
    """

    connect: float = 10.0
    first_byte: float = 120.0
    idle: float = 60.0


def is_loopback(host: str) -> bool:
    """Return whether `host` names this machine: localhost, 127.0.0.0/8 or ::1."""
    host = host.strip("[]").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Reply:
    """An answer in progress: its status, its headers (names in lower case), and its bytes as they
    come.
    """

    def __init__(
        self, response: httpx.Response, timeouts: Timeouts, deadline: float, host: str
    ) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._timeouts = timeouts
        self._deadline = deadline
        self._host = host

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it arrives. Raises ModelError when it breaks off, cannot be decoded or
        nothing comes for too long.
        """
        try:
            async with aclosing(
                decoded(self._raw(), self.headers.get("content-encoding", ""))
            ) as pieces:
                async for piece in pieces:
                    yield piece
        except WireError as error:
            raise ModelError(f"{self._host}: {error}", code="garbage") from None

    async def _raw(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as the server sent it."""
        source = self._response.aiter_raw()
        limit = max(0.0, self._deadline - anyio.current_time())
        words = f"said nothing for {self._timeouts.first_byte:g} s"
        while True:
            try:
                with anyio.fail_after(limit):
                    data = await anext(source)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise ModelError(f"{self._host} {words}.", retryable=True, code="timeout") from None
            except Exception as error:
                raise fault_of(error, self._host, self._timeouts) from None
            limit = self._timeouts.idle
            words = f"stopped sending for {limit:g} s"
            if data:
                yield data

    async def whole(self, limit: int = LARGEST) -> bytes:
        """Return the body. Raises ModelError as `chunks` does, and when it is larger than `limit`
        bytes.
        """
        body = bytearray()
        async with aclosing(self.chunks()) as chunks:
            async for data in chunks:
                body += data
                if len(body) > limit:
                    raise ModelError(
                        f"{self._host} answered with more than {limit >> 20} MB.", code="limit"
                    )
        return bytes(body)

    async def read(self, limit: int = ERROR_BODY) -> bytes:
        """Return the beginning of the body, for an error message. What cannot be read
        is left out.
        """
        body = b""
        try:
            with anyio.move_on_after(5):
                async with aclosing(self.chunks()) as chunks:
                    async for data in chunks:
                        body += data
                        if len(body) >= limit:
                            break
        except ModelError:
            pass
        return body[:limit]


class Http:
    """The connection of one model object to `base_url`; its client is opened lazily, one for each
    event loop.
    """

    def __init__(self, base_url: str, timeouts: Timeouts | None = None) -> None:
        self.base_url = checked_url(base_url)
        self.host = urlsplit(self.base_url).netloc.rpartition("@")[2]
        self.loopback = is_loopback(urlsplit(self.base_url).hostname or "")
        self.timeouts = timeouts or Timeouts()
        self._client: httpx.AsyncClient | None = None
        self._keeper: AsyncGenerator[None, None] | None = None
        self._loop: object = None

    @property
    def address(self) -> str:
        """The base URL for people: without a password."""
        parts = urlsplit(self.base_url)
        return f"{parts.scheme}://{self.host}{parts.path}"

    @asynccontextmanager
    async def post(
        self, path: str, body: bytes, headers: Mapping[str, str]
    ) -> AsyncGenerator[Reply, None]:
        """Send `body` as JSON to `path` below the base URL and give the reply. Raises ModelError
        when no answer begins.
        """
        sent = {
            "content-type": "application/json",
            "accept": "text/event-stream, application/json",
            **headers,
        }
        async with self._exchange("POST", path, sent, body) as reply:
            yield reply

    @asynccontextmanager
    async def _exchange(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes = b""
    ) -> AsyncGenerator[Reply, None]:
        client = await self._open()
        deadline = anyio.current_time() + self.timeouts.first_byte
        response = await self._send(
            client,
            client.build_request(method, self.base_url + path, content=body, headers=dict(headers)),
        )
        try:
            yield Reply(response, self.timeouts, deadline, self.host)
        finally:
            with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                await response.aclose()

    async def get_json(self, path: str, headers: Mapping[str, str], seconds: float = 5.0) -> Any:
        """Return the JSON at `path`. Raises ModelError on any fault."""
        try:
            with anyio.fail_after(seconds):
                async with self._exchange("GET", path, headers) as reply:
                    if reply.status != 200:
                        raise ModelError(
                            f"{self.host} answered {reply.status}.", status=reply.status
                        )
                    return lenient_loads(await reply.whole())
        except TimeoutError:
            raise ModelError(
                f"{self.host} did not answer within {seconds:g} s.", code="timeout"
            ) from None
        except ValueError:
            raise ModelError(f"{self.host} did not answer with JSON.", code="garbage") from None

    async def aclose(self) -> None:
        """Close the connections of this event loop."""
        keeper, self._client, self._keeper = self._keeper, None, None
        if keeper is not None and self._loop == anyio.lowlevel.current_token():
            await keeper.aclose()

    async def _send(self, client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
        seconds = self.timeouts.first_byte
        try:
            with anyio.fail_after(seconds):
                return await client.send(request, stream=True)
        except TimeoutError:
            raise ModelError(
                f"{self.host} did not answer within {seconds:g} s.", retryable=True, code="timeout"
            ) from None
        except Exception as error:
            raise fault_of(error, self.host, self.timeouts) from None

    async def _open(self) -> httpx.AsyncClient:
        """Return the client of the running event loop. Raises UsageError where nothing
        runs live.
        """
        check_address(self.base_url)
        loop = anyio.lowlevel.current_token()
        if self._client is None or self._loop != loop:
            self._client, self._loop = self._new_client(), loop
            self._keeper = _closed_with_the_loop(self._client)
            await anext(self._keeper)
        return self._client

    def _new_client(self) -> httpx.AsyncClient:
        import httpx

        limits = httpx.Timeout(None, connect=self.timeouts.connect, write=60.0, pool=60.0)
        # no TLS: reading the certificates would cost 20 ms
        plain = self.loopback and self.base_url.startswith("http:")
        try:
            return httpx.AsyncClient(
                timeout=limits,
                trust_env=not self.loopback,
                verify=False if plain else certificates(),
                headers={"user-agent": "jupyter-agent-nb", "accept-encoding": "identity"},
            )
        except ImportError:
            raise UsageError(
                "A SOCKS proxy is set. Install its support with: pip install 'httpx[socks]'"
            ) from None
        except ValueError as error:
            raise UsageError(
                f"The proxy of the environment cannot be used: {scrub(str(error))}."
            ) from None


async def _closed_with_the_loop(client: httpx.AsyncClient) -> AsyncGenerator[None, None]:
    """Wait in a generator: an event loop that ends closes its generators, and so a client that
    nobody closed.
    """
    try:
        yield
    finally:
        await client.aclose()


def checked_url(url: str) -> str:
    """Return the base URL without what people paste behind it. Raises UsageError when it is no
    http(s) address.
    """
    url = url.strip().rstrip("/")
    for tail in ("/chat/completions", "/responses", "/messages"):
        url = url.removesuffix(tail).rstrip("/")
    try:
        parts = urlsplit(url)
        good = (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and (parts.port is None or parts.port > 0)
        )
    except ValueError:
        good = False
    if not good:
        raise UsageError(
            f"{scrub(url)!r} is not a base URL. It begins with http:// or https:// and usually ends with /v1."
        )
    return url


def certificates() -> ssl.SSLContext:
    """Return the TLS context of the environment. Raises UsageError when a variable names what is
    not there.
    """
    import httpx

    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR"):
        value = os.environ.get(name)
        if value:
            path = Path(value).expanduser()
            try:
                return (
                    ssl.create_default_context(capath=path)
                    if path.is_dir()
                    else ssl.create_default_context(cafile=path)
                )
            except (OSError, ssl.SSLError) as error:
                raise UsageError(
                    f"The certificates that {name} names cannot be read ({error}). Correct or unset it."
                ) from None
    return httpx.create_ssl_context(trust_env=False)


def fault_of(error: Exception, host: str, timeouts: Timeouts) -> ModelError:
    """Return the ModelError of what the HTTP library raised."""
    import httpx

    words = scrub(str(error)) or type(error).__name__
    if isinstance(error, httpx.ConnectTimeout):
        return ModelError(
            f"{host} could not be reached within {timeouts.connect:g} s.",
            retryable=True,
            code="connect",
        )
    if isinstance(error, httpx.ConnectError) and (tls := _tls(error)):
        hint = (
            CERTIFICATES
            if isinstance(tls, ssl.SSLCertVerificationError)
            else f"Does it speak https? If so: {CERTIFICATES}"
        )
        return ModelError(f"{host} could not be reached safely: {words}. {hint}", code="tls")
    if isinstance(error, httpx.ProxyError):
        return ModelError(
            f"The proxy on the way to {host} failed: {words}. Check HTTPS_PROXY and NO_PROXY.",
            retryable=True,
            code="proxy",
        )
    if isinstance(error, httpx.ConnectError):
        return ModelError(
            f"{host} could not be reached: {_reason(error) or words}. Is the server running, and the base URL right?",
            retryable=True,
            code="connect",
        )
    if isinstance(error, httpx.UnsupportedProtocol | httpx.InvalidURL | httpx.LocalProtocolError):
        return ModelError(
            f"The request to {host} could not be made: check the base URL and the headers.",
            code="request",
        )
    return ModelError(f"The connection to {host} broke off: {words}.", retryable=True, code="cut")


def _reason(error: BaseException | None) -> str:
    """Return the system's own words for a failed connection ("Connection refused"), from the chain
    of causes.
    """
    found = ""
    while error is not None:
        if isinstance(error, OSError) and error.strerror:
            found = (
                os.strerror(error.errno) if error.errno and error.errno > 0 else str(error.strerror)
            )
        inner = error.exceptions[0] if isinstance(error, BaseExceptionGroup) else None
        error = inner or error.__cause__ or error.__context__
    return found


def _tls(error: BaseException | None) -> ssl.SSLError | None:
    """Return the TLS error in a chain of causes."""
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    return error
