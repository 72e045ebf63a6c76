"""One kept connection to one server, without a proxy: httpcore's HTTP/1.1 without its pool.

Why beside httpx: for each request the client and the pool of httpx build objects and take locks.
With a hundred rows at once that doubles the cost of a request.

Rules
- One request at a time.
- A connection is not used again if bytes arrived after its last answer, because they would be taken
  for the next answer. It is not used again after `EXPIRY` idle seconds, or after an answer that was
  not read to its end, either.
- Faults are the exceptions of httpx, so `network_errors` words them for both transports.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import httpcore
    import httpx

EXPIRY = 5.0  # seconds; servers close free connections soon too
WRITING = 60.0  # seconds that the server may take to accept what is sent


class Direct:
    """The connection, which the first request opens.

    `tls` None: without encryption. `connect_timeout`: seconds that opening may take.
    """

    def __init__(
        self, host: str, port: int, tls: ssl.SSLContext | None, connect_timeout: float
    ) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._connect_timeout = connect_timeout
        self._connection: httpcore.AsyncHTTP11Connection | None = None
        self._closings = 0  # calls of `aclose`: one may come while the connection is being opened

    async def send(
        self, method: str, url: httpx.URL, headers: Mapping[str, str | bytes], body: bytes
    ) -> Answer:
        """Send a request and return the beginning of its answer. Raises exceptions of httpx."""
        import httpcore
        import httpx

        length = {"content-length": f"{len(body)}"} if body else {}
        try:
            request = httpcore.Request(
                method,
                httpcore.URL(
                    scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                ),
                headers=[("host", url.netloc), *{**headers, **length}.items()],
                content=body,
                extensions={"timeout": {"write": WRITING}},
            )
            response, connection = await self._exchange(request)
        except _fault_types() as error:
            raise _as_httpx(error) from error
        if response.status == 101:
            await connection.aclose()
            raise httpx.RemoteProtocolError("the server changed the protocol")
        return Answer(response, connection)

    async def aclose(self) -> None:
        """Close the connection; one that is still being opened is closed once it is open."""
        self._closings += 1
        if self._connection is not None:
            await self._connection.aclose()

    async def _exchange(
        self, request: httpcore.Request
    ) -> tuple[httpcore.Response, httpcore.AsyncHTTP11Connection]:
        """Send a request on the kept connection, or on a new one if that is not available."""
        import httpcore

        connection = self._connection
        if connection is not None and connection.is_available() and not connection.has_expired():
            try:
                return await connection.handle_async_request(request), connection
            except httpcore.ConnectionNotAvailable:
                pass  # something arrived after all, and nothing was sent
        await self.aclose()
        closings = self._closings
        fresh = await self._open(request.url.origin)
        if closings != self._closings:
            await fresh.aclose()
            raise httpcore.ConnectError("the model was closed")
        self._connection = fresh
        return await fresh.handle_async_request(request), fresh

    async def _open(self, origin: httpcore.Origin) -> httpcore.AsyncHTTP11Connection:
        import httpcore

        from .network import open_stream

        stream = await open_stream(self._host, self._port, self._tls, self._connect_timeout)
        return httpcore.AsyncHTTP11Connection(origin, stream, keepalive_expiry=EXPIRY)


class Answer:
    """The answer to one request: its head, and its body as `stream`."""

    def __init__(
        self, response: httpcore.Response, connection: httpcore.AsyncHTTP11Connection
    ) -> None:
        self.status_code = response.status
        self.raw_headers = response.headers
        self.headers = _join_headers(response.headers)
        self._response = response
        self._connection = connection
        self._body = cast("AsyncGenerator[bytes, None]", aiter(response.stream))  # type: ignore[arg-type]

    @property
    def stream(self) -> Answer:
        """The body as it arrives. Raises exceptions of httpx."""
        return self

    def __aiter__(self) -> Answer:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._body)
        except _fault_types() as error:
            raise _as_httpx(error) from error

    async def aclose(self) -> None:
        """End the exchange; keep the connection if the answer was read whole, and nothing else."""
        await self._body.aclose()
        await self._response.aclose()
        if has_more(self._connection):
            await self._connection.aclose()


def has_more(connection: httpcore.AsyncHTTP11Connection) -> bool:
    """Return whether the connection has read bytes behind the end of an answer.

    httpcore would take them for the beginning of the next answer, and only its private `_h11_state`
    shows them. If a version of httpcore lacks that attribute, no connection is kept.
    """
    state = getattr(connection, "_h11_state", None)
    trailing = getattr(state, "trailing_data", None)
    return trailing is None or bool(trailing[0])


def _fault_types() -> tuple[type[Exception], ...]:
    import httpcore

    return (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException)


def _as_httpx(error: Exception) -> Exception:
    """Return the exception that httpx has under the same name."""
    import httpx

    kind: type[Exception] = getattr(httpx, type(error).__name__)
    return kind(str(error))


def _join_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return name in lower case -> value; the values of a repeated header are joined by commas."""
    joined: dict[str, str] = {}
    for raw, value in headers:
        name, text = raw.decode("latin-1").lower(), _decode_header(value)
        joined[name] = f"{joined[name]}, {text}" if name in joined else text
    return joined


def _decode_header(value: bytes) -> str:
    """Return a header's text, UTF-8 if valid: else a secret in it would not be recognised."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")
