"""A connection to one server that stays open, without a proxy: HTTP/1.1, whose answers `h11` reads.

For each request httpx builds objects and takes locks, in its client and in its pool. With a hundred
rows at once that doubles the cost of a request. For h11, writing a request costs more than twice as
much as here. Faults are the exceptions of httpx all the same, so
that `network_errors` words them for both transports.

Rule: bytes that arrive after an answer would be taken for the next one, so such a connection is not
used again.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import h11
    import httpx

    from .network import TcpStream

EXPIRY = 5.0  # seconds; servers close free connections soon too
WRITING = 60.0  # seconds that the server may take to accept what is sent
_LARGEST_HEAD = 100 * 1024  # bytes of an answer's status line and headers
_FRAMING = ("connection", "content-length", "transfer-encoding")  # headers that this file decides
# a line break in a value would begin another field (RFC 9110, section 5)
_match_name = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
_match_value = re.compile(rb"(?:[!-~\x80-\xff](?:[\t -~\x80-\xff]*[!-~\x80-\xff])?)?").fullmatch
_WITH_BODY = ("PATCH", "POST", "PUT")  # methods whose requests have a body, even an empty one


class Direct:
    """The connection, which the first request opens; it serves one request at a time.

    `tls` None: without encryption. `connect_timeout`: seconds that opening may take.
    """

    def __init__(
        self, host: str, port: int, tls: ssl.SSLContext | None, connect_timeout: float
    ) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._connect_timeout = connect_timeout
        self._connection: _Connection | None = None
        self._closings = 0  # calls of `aclose`: one may come while the connection is being opened

    async def send(
        self, method: str, url: httpx.URL, headers: Mapping[str, str | bytes], body: bytes
    ) -> Answer:
        """Send a request and return the beginning of its answer. Raises exceptions of httpx."""
        head = _write_head(method, url, headers, len(body))
        connection = self._connection
        if connection is None or not connection.is_free:
            connection = await self._open()
        return Answer(await connection.exchange(method, head + body), connection)

    async def aclose(self) -> None:
        """Close the connection; one that is still being opened is closed once it is open."""
        self._closings += 1
        if self._connection is not None:
            await self._connection.aclose()

    async def _open(self) -> _Connection:
        """Return a new connection, which takes the place of the old one."""
        import httpx

        from .network import open_stream

        await self.aclose()
        closings = self._closings
        stream = await open_stream(self._host, self._port, self._tls, self._connect_timeout)
        if closings != self._closings:
            await stream.aclose()
            raise httpx.ConnectError("the model was closed")
        self._connection = _Connection(stream)
        return self._connection


class _Connection:
    """An open connection, and the state of its newest exchange."""

    def __init__(self, stream: TcpStream) -> None:
        import h11

        self._stream = stream
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LARGEST_HEAD)
        self._expires = 0.0  # by the event loop's clock
        self._all_sent = False  # the newest request; its answer may come before

    @property
    def is_free(self) -> bool:
        """Whether it can be used for another request, which must be sent at once."""
        import h11

        in_time = asyncio.get_running_loop().time() < self._expires
        return self._http.our_state is h11.IDLE and in_time and not self._stream.is_readable

    async def exchange(self, method: str, data: bytes) -> h11.Response:
        """Send a request; return the head of its answer. A fault closes the connection."""
        import h11

        try:
            self._all_sent = await self._stream.write(data, WRITING)
            for event in _list_events(method):  # not before: that would delay the request
                self._http.send(event)
            while isinstance(head := await self.next_event(), h11.InformationalResponse):
                pass
        except BaseException:
            await self.aclose()
            raise
        assert isinstance(head, h11.Response)
        return head

    async def next_event(self) -> Any:
        """Return what h11 reads next of the answer. Raises exceptions of httpx."""
        import h11
        import httpx

        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                data = await self._stream.read()
                if not data and self._http.their_state is h11.SEND_RESPONSE:
                    raise httpx.RemoteProtocolError("the server closed it without an answer")
                self._http.receive_data(data)
        except h11.RemoteProtocolError as fault:
            raise httpx.RemoteProtocolError(str(fault)) from fault
        return event

    async def end_exchange(self) -> None:
        """Keep the connection if the answer was read whole, and nothing behind it; else close."""
        import h11

        http = self._http
        is_done = self._all_sent and http.our_state is http.their_state is h11.DONE
        if is_done and not http.trailing_data[0]:
            http.start_next_cycle()
            self._expires = asyncio.get_running_loop().time() + EXPIRY
        else:
            await self.aclose()

    async def aclose(self) -> None:
        """Close the connection."""
        await self._stream.aclose()


class Answer:
    """The answer to one request: its head, and its body as `stream`.

    Reading the body raises exceptions of httpx.
    """

    def __init__(self, head: h11.Response, connection: _Connection) -> None:
        self.status_code = head.status_code
        self.raw_headers = head.headers.raw_items()
        self.headers = _join_headers(self.raw_headers)
        self.stream = self._read()
        self._connection: _Connection | None = connection

    async def _read(self) -> AsyncGenerator[bytes, None]:
        import h11

        assert self._connection is not None
        while isinstance(event := await self._connection.next_event(), h11.Data):
            yield bytes(event.data)

    async def aclose(self) -> None:
        """End the exchange; keep the connection if the answer was read whole, and nothing else."""
        connection, self._connection = self._connection, None
        if connection is not None:  # else another request may have it by now
            await self.stream.aclose()
            await connection.end_exchange()


@lru_cache(maxsize=16)
def _list_events(method: str) -> tuple[h11.Request, h11.EndOfMessage]:
    """Return what h11 must know of a request to read its answer."""
    import h11

    return h11.Request(method=method, target="/", headers=[("host", "-")]), h11.EndOfMessage()


def _write_head(
    method: str, url: httpx.URL, headers: Mapping[str, str | bytes], size: int
) -> bytes:
    """Return the head of a request with a body of `size` bytes. Raises LocalProtocolError."""
    import httpx

    fields = {"host": url.netloc, **{name.lower(): value for name, value in headers.items()}}
    for name in _FRAMING:
        fields.pop(name, None)
    if size or method in _WITH_BODY:
        fields["content-length"] = f"{size}"
    try:
        first = method.encode("ascii"), url.raw_path
        pairs = [
            (name.encode("ascii"), value if isinstance(value, bytes) else value.encode("ascii"))
            for name, value in fields.items()
        ]
    except UnicodeEncodeError as fault:
        raise httpx.LocalProtocolError("a header is not ASCII") from fault
    are_fit = all(_match_name(name) and _match_value(value) for name, value in (*pairs, first))
    if not are_fit or len(first[1].split()) != 1:
        raise httpx.LocalProtocolError("a header or the address cannot be sent")
    lines = [b"%s %s HTTP/1.1" % first, *(b"%s: %s" % pair for pair in pairs)]
    return b"\r\n".join((*lines, b"", b""))


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
