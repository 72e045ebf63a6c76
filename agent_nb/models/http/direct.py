"""One kept connection to one server, without a proxy: HTTP/1.1 by h11 over an asyncio stream.

Why beside httpx: for each request httpx builds objects, takes locks and yields to the event loop a
dozen times; with a hundred rows at once this costs more than all the rest of a row. h11 does what
is hard here, the protocol, as it does below httpx.

Rules
- One request at a time. A connection that was free for `EXPIRY` seconds, that the server has
  closed, or whose last answer was not read to the end is not used again.
- Faults are the exceptions of httpx, so `network_errors` words them for both ways.
"""

from __future__ import annotations

import asyncio
import errno
import re
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING, Any

from .patience import within

if TYPE_CHECKING:
    import h11
    import httpx

EXPIRY = 5.0  # seconds; servers close free connections soon too
WRITING = 60.0  # seconds that the server may take in what is sent
PIECE = 64 * 1024
HEAD = 100 * 1024  # bytes of the largest head of an answer
HAPPY = 0.25  # seconds before the next address of a host is tried beside the first
_ERRNO = re.compile(r"\[Errno (\d+)\]").search


class Direct:
    """The connection; it is opened by the first request."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None, connect: float) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._connect = connect
        self._link: Link | None = None

    async def send(
        self, method: str, url: httpx.URL, headers: Mapping[str, str], body: bytes
    ) -> Answer:
        """Send a request and return the beginning of its answer. Raises exceptions of httpx."""
        if self._link is not None and not self._link.usable:
            self._link.close()
            self._link = None
        if self._link is None:
            self._link = await self._open()
        answer, link = None, self._link
        try:
            answer = await link.ask(method, url, headers, body)
        finally:
            if answer is None:
                link.close()
        return answer

    async def aclose(self) -> None:
        """Close the connection."""
        if self._link is not None:
            self._link.close()

    async def _open(self) -> Link:
        import httpx

        # loops of other packages do not take the delay
        own = isinstance(asyncio.get_running_loop(), asyncio.BaseEventLoop)
        more: dict[str, Any] = {"happy_eyeballs_delay": HAPPY} if own else {}
        opening = asyncio.open_connection(
            self._host,
            self._port,
            ssl=self._tls,
            server_hostname=self._host if self._tls is not None else None,
            **more,
        )
        try:
            return Link(*await within(self._connect, opening))
        except TimeoutError as error:
            raise httpx.ConnectTimeout(str(error)) from error
        except OSError as error:
            cause = error
            if error.errno is None and (several := _ERRNO(str(error))):
                cause = OSError(int(several[1]), str(error))  # asyncio joins those of all addresses
            raise httpx.ConnectError(str(error)) from cause


class Link:
    """An open connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        import h11

        self._reader = reader
        self._writer = writer
        self._state = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD)
        self._free = time.monotonic()

    @property
    def usable(self) -> bool:
        """Whether a request may be sent."""
        import h11

        late = time.monotonic() - self._free > EXPIRY
        gone = self._reader.at_eof() or self._writer.is_closing()
        return self._state.our_state is h11.IDLE and not late and not gone

    async def ask(
        self, method: str, url: httpx.URL, headers: Mapping[str, str], body: bytes
    ) -> Answer:
        """Send a request and wait for the head of its answer."""
        import h11
        import httpx

        sent = [("host", url.netloc.decode("ascii")), *headers.items()]
        if body:
            sent.append(("content-length", f"{len(body)}"))
        try:
            asked = h11.Request(method=method, target=url.raw_path, headers=sent)
            data = self._state.send(asked) or b""
            for part in (h11.Data(data=body), h11.EndOfMessage()):
                data += self._state.send(part) or b""
        except h11.LocalProtocolError as error:
            raise httpx.LocalProtocolError(str(error)) from error
        self._writer.write(data)
        try:
            await within(WRITING, self._writer.drain())
        except TimeoutError as error:
            raise httpx.WriteTimeout(str(error)) from error
        except OSError:
            pass  # a server may refuse before it has read everything
        while not isinstance(event := await self.event(), h11.Response):
            if not isinstance(event, h11.InformationalResponse):
                raise httpx.RemoteProtocolError("the server changed the protocol")
        return Answer(self, event)

    async def event(self) -> Any:
        """Return the next event of the answer."""
        import h11
        import httpx

        while True:
            try:
                if (event := self._state.next_event()) is not h11.NEED_DATA:
                    return event
                data = await self._reader.read(PIECE)
                if not data and self._state.their_state is h11.SEND_RESPONSE:
                    raise httpx.RemoteProtocolError(
                        "Server disconnected without sending a response."
                    )
                self._state.receive_data(data)
            except h11.RemoteProtocolError as error:
                raise httpx.RemoteProtocolError(str(error)) from error
            except OSError as error:
                raise httpx.ReadError(_words(error)) from error

    def over(self) -> None:
        """End an exchange: keep the connection if the answer was read to its end."""
        import h11

        if self._state.our_state is h11.DONE and self._state.their_state is h11.DONE:
            self._state.start_next_cycle()
            self._free = time.monotonic()
        else:
            self.close()

    def close(self) -> None:
        """Close the connection at once."""
        self._writer.transport.abort()


class Answer:
    """The answer to one request: its head, and its body as `stream`."""

    def __init__(self, link: Link, head: h11.Response) -> None:
        self.status_code = head.status_code
        self.headers = _joined(head.headers)
        self._link: Link | None = link
        self._event: Callable[[], Any] = link.event

    @property
    def stream(self) -> AsyncGenerator[bytes, None]:
        """The body as it arrives. Raises exceptions of httpx."""
        return self._body()

    async def _body(self) -> AsyncGenerator[bytes, None]:
        import h11

        while isinstance(event := await self._event(), h11.Data):
            yield bytes(event.data)

    async def aclose(self) -> None:
        """End the exchange."""
        link, self._link = self._link, None
        if link is not None:
            link.over()


def _joined(headers: Any) -> dict[str, str]:
    """Return headers by their names in lower case."""
    found: dict[str, str] = {}
    for raw, value in headers:
        name, text = raw.decode("latin-1"), _text(value)
        found[name] = f"{found[name]}, {text}" if name in found else text
    return found


def _text(value: bytes) -> str:
    """Return the text of a header: a secret is recognised only if its letters are read as sent."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _words(error: OSError) -> str:
    if error.errno in (errno.ECONNRESET, errno.EPIPE):
        return "the server closed it"
    return str(error) or type(error).__name__
