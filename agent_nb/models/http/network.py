"""One TCP connection, with TLS or without, as httpcore reads and writes it.

Why beside httpcore's own: a server may refuse a large body before it has read it, and close. Here
writing stops when an answer arrives, and what arrived is read before the error behind it; so the
refusal is seen, and not the broken connection. It costs two thirds of httpcore's over anyio, too.

Rules
- Before a later request, whatever can be read (an answer too many, an unasked one, the end) cannot
  belong to it: the connection is not available then, and nothing is sent. Of the first request it
  may be the answer: a server that is full refuses at once.
- Bytes that the system has and the event loop has not seen yet count as well.
- An interim response (1xx) does not end the request: writing goes on.
- Closing is at once; nothing is flushed.
"""

from __future__ import annotations

import asyncio
import errno
import re
import select
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

import httpcore

from .patience import wait_within

PIECE = 64 * 1024  # bytes that are written at once
MOST = 256 * 1024  # bytes that wait to be read before the server has to wait
HAPPY = 0.25  # seconds before the next address of a host is tried beside the first
_INTERIM = re.compile(rb"HTTP/1\.\d 1").match
_ERRNO = re.compile(r"\[Errno (\d+)\]").search


class TcpStream(asyncio.Protocol, httpcore.AsyncNetworkStream):
    """An open connection. Raises exceptions of httpcore."""

    _transport: asyncio.Transport
    _poll: Callable[[], object]  # returns a true value if the socket is readable

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._received = bytearray()
        self._over = False  # nothing more comes
        self._error: Exception | None = None
        self._full = False  # asyncio takes nothing more to write for now
        self._paused = False  # nothing is read for now: the server has to wait
        self._plain = True  # without TLS
        # whether a request was sent, and whether its answer is being read
        self._sent = self._read = False
        self._change: asyncio.Future[None] | None = None  # done when anything happens

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport (asyncio calls this and the next five methods)."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._plain = transport.get_extra_info("ssl_object") is None
        self._poll = _make_poll(transport.get_extra_info("socket").fileno())

    def data_received(self, data: bytes) -> None:
        """Keep what arrived until it is read."""
        self._received += data
        if len(self._received) > MOST and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """Note the end."""
        self._over = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end, and why."""
        self._over, self._error = True, exc
        self._wake()

    def pause_writing(self) -> None:
        """Write nothing more for now."""
        self._full = True

    def resume_writing(self) -> None:
        """Go on writing."""
        self._full = False
        self._wake()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what arrived, b"" at the end."""
        self._read = True
        while not self._received:
            if self._error is not None:
                raise httpcore.ReadError(_reason(self._error)) from self._error
            if self._over:
                return b""
            await self._wait_for_change(timeout, httpcore.ReadTimeout)
        data = bytes(self._received[:max_bytes])
        del self._received[:max_bytes]
        if self._paused and not self._received:
            self._paused = False
            self._transport.resume_reading()
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send; raise WriteError once an answer, or the end, has arrived."""
        if self._sent and self._read:  # a later request: what can be read is not its answer
            if self.is_readable:
                raise httpcore.ConnectionNotAvailable
            self._read = False
        self._sent = True
        view = memoryview(buffer)
        for start in range(0, len(view), PIECE):
            await self._check_unanswered(timeout)
            self._transport.write(view[start : start + PIECE])
            while self._full:
                await self._wait_for_change(timeout, httpcore.WriteTimeout)
                await self._check_unanswered(timeout)

    async def aclose(self) -> None:
        """Close at once."""
        self._over = True
        self._transport.abort()

    def get_extra_info(self, info: str) -> Any:
        """Return `is_readable`, or what asyncio knows."""
        return self.is_readable if info == "is_readable" else self._transport.get_extra_info(info)

    @property
    def is_readable(self) -> bool:
        """Whether bytes or the end have arrived, here or at the system."""
        return bool(self._received) or self._over or bool(self._poll())

    async def _check_unanswered(self, timeout: float | None) -> None:
        """Raise WriteError if the answer has begun, or the connection has ended."""
        # not with TLS: what the system has may be no data, such as tickets of the session
        while self._plain and not self._received and not self._over and self._poll():
            # until the event loop has read it
            await self._wait_for_change(timeout, httpcore.WriteTimeout)
        if self._over or (self._received and _is_answer(bytes(self._received))):
            raise httpcore.WriteError("the server answered before it had read everything")

    async def _wait_for_change(self, timeout: float | None, fault: type[Exception]) -> None:
        """Wait until data, the end, an error or room to write comes; raise `fault` at the limit."""
        change = self._change = self._loop.create_future()
        try:
            await (change if timeout is None else wait_within(timeout, change))
        except TimeoutError as error:
            raise fault(str(error)) from error
        finally:
            self._change = None

    def _wake(self) -> None:
        if self._change is not None and not self._change.done():
            self._change.set_result(None)


async def open_stream(
    host: str, port: int, tls: ssl.SSLContext | None, timeout: float
) -> TcpStream:
    """Connect within so many seconds, TLS included. Raises exceptions of httpcore."""
    loop = asyncio.get_running_loop()
    # loops of other packages do not take the delay
    own = isinstance(loop, asyncio.BaseEventLoop)
    more: dict[str, Any] = {"happy_eyeballs_delay": HAPPY} if own else {}
    name = host if tls is not None else None
    opening = loop.create_connection(TcpStream, host, port, ssl=tls, server_hostname=name, **more)
    try:
        return (await wait_within(timeout, opening))[1]
    except TimeoutError as error:
        raise httpcore.ConnectTimeout(str(error)) from error
    except OSError as error:
        cause = error
        if error.errno is None and (several := _ERRNO(str(error))):
            cause = OSError(int(several[1]), str(error))  # asyncio joins those of all addresses
        raise httpcore.ConnectError(str(error)) from cause


def _make_poll(number: int) -> Callable[[], object]:
    """Return a function that says whether a socket is readable, by its file number."""
    # select.select fails for numbers above 1023
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(number, select.POLLIN)
        return partial(poll.poll, 0)
    return lambda: select.select([number], [], [], 0)[0]  # Windows


def _is_answer(received: bytes) -> bool:
    """Return whether more has arrived than interim responses (1xx)."""
    start = 0
    while _INTERIM(received, start):
        end = received.find(b"\r\n\r\n", start)
        if end < 0:
            return False
        start = end + 4
    return len(received) - start >= len("HTTP/1.1 1")  # fewer bytes may become an interim one


def _reason(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno in (errno.ECONNRESET, errno.EPIPE):
        return "the server closed it"
    return str(error) or type(error).__name__
