"""One TCP connection, with TLS or without, as a stream of bytes.

A server may refuse a large body before it has read all of it, and close the connection. Here,
unlike in the streams of asyncio or httpcore, writing stops when an answer arrives, so the caller
sees the refusal. Faults are the exceptions of httpx.

Rule: bytes that arrive before the first request may be its answer: a server that is full refuses at
once. Before a later request the caller looks at `is_readable`.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import re
import select
import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

import httpx

from .patience import wait_within

PIECE = 64 * 1024  # bytes read or written at once; before each write we look for an early answer
MOST_UNREAD = 256 * 1024  # bytes, about; with more, reading pauses and the server waits
NEXT_ADDRESS = 0.25  # seconds until a host's next address is tried in parallel (RFC 8305)
_INTERIM = re.compile(rb"HTTP/1\.\d 1").match  # the start of a response with a status 1xx
_ERRNO = re.compile(r"\[Errno (\d+)\]").search


class TcpStream(asyncio.Protocol):
    """An open connection, which asyncio calls as a protocol; timeouts are in seconds."""

    _transport: asyncio.Transport
    _poll: Callable[[], object]  # returns a true value if the socket is readable

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._received = bytearray()  # bytes that arrived and were not read yet
        self._ended = False  # nothing more arrives
        self._error: Exception | None = None
        self._writing_paused = False  # asyncio takes nothing more to write for now
        self._reading_paused = False  # asyncio reads nothing for now: the server has to wait
        self._without_tls = True
        self._change: asyncio.Future[None] | None = None  # done when anything happens

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport (asyncio calls this and the next five methods)."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._without_tls = transport.get_extra_info("ssl_object") is None
        self._poll = _make_poll(transport.get_extra_info("socket").fileno())

    def data_received(self, data: bytes) -> None:
        """Keep what arrived until it is read."""
        self._received += data
        if len(self._received) > MOST_UNREAD and not self._reading_paused:
            self._reading_paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """Note that the server sends no more."""
        self._ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the connection has ended; `exc` is the reason, None after a proper end."""
        self._ended, self._error = True, exc
        self._wake()

    def pause_writing(self) -> None:
        """Write nothing more for now."""
        self._writing_paused = True

    def resume_writing(self) -> None:
        """Go on writing."""
        self._writing_paused = False
        self._wake()

    async def read(self) -> bytes:
        """Return at most `PIECE` bytes; wait until something arrives; b"" means the end."""
        # an error is raised only after everything before it was read
        while not self._received:
            if self._error is not None:
                raise httpx.ReadError(_loss_reason(self._error)) from self._error
            if self._ended:
                return b""
            await self._wait_for_change(None)
        data = bytes(self._received[:PIECE])
        del self._received[:PIECE]
        if self._reading_paused and not self._received:
            self._reading_paused = False
            self._transport.resume_reading()
        return data

    async def write(self, data: bytes, timeout: float) -> bool:
        """Send `data`; stop when an answer, or the end, has arrived. Return whether all was sent.

        `timeout`: seconds that the server may accept nothing. Raises WriteTimeout.
        """
        view = memoryview(data)
        for start in range(0, len(view), PIECE):
            if await self._is_answered(timeout):
                return False
            self._transport.write(view[start : start + PIECE])
            while self._writing_paused:
                await self._wait_for_change(timeout)
                if await self._is_answered(timeout):
                    return False
        return True

    async def aclose(self) -> None:
        """Close at once; bytes that are not written yet are discarded."""
        self._ended = True
        self._transport.abort()

    @property
    def is_readable(self) -> bool:
        """Whether bytes or the end have arrived, here or in the socket."""
        return bool(self._received) or self._ended or bool(self._poll())

    async def _is_answered(self, timeout: float) -> bool:
        """Return whether the answer has begun, or the connection has ended."""
        # not with TLS: the bytes in the socket may be TLS messages without data (session tickets)
        while self._without_tls and not self._received and not self._ended and self._poll():
            # wait until the event loop has read what the socket holds
            await self._wait_for_change(timeout)
        return self._ended or _is_answer(bytes(self._received))

    async def _wait_for_change(self, timeout: float | None) -> None:
        """Wait until data, the end, an error or room to write comes. Raises WriteTimeout."""
        change = self._change = self._loop.create_future()
        try:
            await (change if timeout is None else wait_within(timeout, change))
        except TimeoutError as error:
            raise httpx.WriteTimeout(str(error)) from error
        finally:
            self._change = None

    def _wake(self) -> None:
        """End the wait of `_wait_for_change`, if any."""
        if self._change is not None and not self._change.done():
            self._change.set_result(None)


async def open_stream(
    host: str, port: int, tls: ssl.SSLContext | None, timeout: float
) -> TcpStream:
    """Return a connection, opened within `timeout` seconds, the TLS handshake included.

    `tls`: None for a connection without TLS. Raises ConnectTimeout and ConnectError.
    """
    loop = asyncio.get_running_loop()
    # loops of other packages (uvloop) do not take the delay; an IP address needs no race
    races = isinstance(loop, asyncio.BaseEventLoop) and not _is_address(host)
    delay: dict[str, Any] = {"happy_eyeballs_delay": NEXT_ADDRESS} if races else {}
    name = host if tls is not None else None
    opening = loop.create_task(_connect(host, port, ssl=tls, server_hostname=name, **delay))
    try:
        # shielded: if cancelled, asyncio's race of addresses may forget a socket that is connected
        return (await wait_within(timeout, asyncio.shield(opening)))[1]
    except asyncio.CancelledError:
        opening.add_done_callback(_discard)
        raise
    except TimeoutError as error:
        opening.add_done_callback(_discard)
        raise httpx.ConnectTimeout(str(error)) from error
    except OSError as error:
        cause = error
        if error.errno is None and (number := _ERRNO(str(error))):
            # asyncio joins the errors of all addresses in one text, without a number of its own
            cause = OSError(int(number[1]), str(error))
        raise httpx.ConnectError(str(error)) from cause


async def _connect(host: str, port: int, **options: Any) -> tuple[asyncio.Transport, TcpStream]:
    """Connect. On the stack of a look-up, this function shows `tape.host_watch` that it is ours."""
    loop = asyncio.get_running_loop()
    return await loop.create_connection(TcpStream, host, port, **options)


def _is_address(host: str) -> bool:
    """Return whether `host` is an IP address."""
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def _discard(opening: asyncio.Task[tuple[asyncio.Transport, TcpStream]]) -> None:
    """Close a connection that was opened after its caller had left; ignore its fault."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result()[0].abort()


def _make_poll(number: int) -> Callable[[], object]:
    """Return a function that returns a true value if the socket with this number is readable."""
    # select.select fails for numbers above 1023
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(number, select.POLLIN)
        return partial(poll.poll, 0)
    return lambda: select.select([number], [], [], 0)[0]  # Windows


def _is_answer(received: bytes) -> bool:
    """Return whether `received` has the beginning of a response other than interim ones (1xx)."""
    start = 0
    while _INTERIM(received, start):
        end = received.find(b"\r\n\r\n", start)  # an interim response has no body
        if end < 0:
            return False
        start = end + 4
    return len(received) - start >= len("HTTP/1.1 1")  # fewer bytes may become an interim one


def _loss_reason(error: Exception) -> str:
    """Return in words why a connection was lost."""
    if isinstance(error, OSError) and error.errno in (errno.ECONNRESET, errno.EPIPE):
        return "the server closed it"
    return str(error) or type(error).__name__
