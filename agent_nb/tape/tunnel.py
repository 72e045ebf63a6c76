"""A proxy on this machine that passes requests on, except those to targets that are refused.

Why: the child processes of a test must reach their data, but no model. The environment variables of
proxies cannot name the hosts that are meant, so all requests go through here. A connection with a
plain request ends with its answer, because the next request could have another target.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import ClassVar
from urllib.parse import SplitResult, urlsplit

from ..host import Background

_PIECE = 1 << 16  # bytes that are read at once
_ENDING_HERE = (b"connection", b"proxy-connection", b"proxy-authorization")  # headers
_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Tunnel:
    """A tunnel; `refuse` gets each target and returns why it is refused, "" if it is not.

    The target is `host:port` for `CONNECT`, else a whole URL. `refuse` runs in a worker thread.
    """

    # nothing is done at the end: connections end with the process
    _BACKGROUND: ClassVar = Background("agent_nb tunnel", partial(asyncio.sleep, 0), 1.0)

    def __init__(self, refuse: Callable[[str], str]) -> None:
        self._refuse = refuse

    def start(self) -> str:
        """Listen until the process ends; return the address. Raises OSError."""
        listening = asyncio.start_server(self._serve, "127.0.0.1", 0)
        server = Tunnel._BACKGROUND.submit(listening).result(10)
        self._server = server  # asyncio keeps no reference to it
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            method, raw, *_ = (*head.split(b" ", 2), b"")  # b"": a head without a space
            target = raw.decode("latin-1").strip()
            if why := await asyncio.to_thread(self._refuse, target):
                _answer(writer, 403, why)
                return
            url = urlsplit(target if "://" in target else f"//{target}")
            try:
                # `.invalid` resolves nowhere: a target without a host is answered with 502
                server = await asyncio.open_connection(url.hostname or ".invalid", url.port or 80)
            except (OSError, ValueError) as fault:
                _answer(writer, 502, str(fault))
                return
            await _pass_on(method, url, head, (reader, writer), server)
        except (OSError, ValueError, EOFError, asyncio.LimitOverrunError):
            pass  # the connection is closed: what came may be a part of an answer
        finally:
            writer.close()


async def _pass_on(
    method: bytes, url: SplitResult, head: bytes, client: _Streams, server: _Streams
) -> None:
    """Pass bytes on in both directions, until the server ends or the client resets."""
    (from_client, to_client), (from_server, to_server) = client, server
    if method == b"CONNECT":
        to_client.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    else:
        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        lines = head.split(b"\r\n")[1:-2]
        headers = [line for line in lines if line.partition(b":")[0].lower() not in _ENDING_HERE]
        first_line = b"%s %s HTTP/1.1" % (method, path.encode("latin-1"))
        to_server.write(b"\r\n".join([first_line, *headers, b"connection: close", b"", b""]))
    sending = asyncio.ensure_future(_pump(from_client, to_server))
    receiving = asyncio.ensure_future(_pump(from_server, to_client))
    try:
        await asyncio.wait([sending, receiving], return_when=asyncio.FIRST_COMPLETED)
        if from_client.exception() is None:  # the client has not reset the connection
            await receiving
    finally:
        for pump in (sending, receiving):
            pump.cancel()
        await asyncio.gather(sending, receiving, return_exceptions=True)
        to_server.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_PIECE):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


def _answer(writer: asyncio.StreamWriter, status: int, why: str) -> None:
    text = why.encode("ascii", "replace").replace(b"\r", b" ").replace(b"\n", b" ")
    size = b"content-length: %d\r\nconnection: close\r\n" % len(text)
    writer.write(b"HTTP/1.1 %d %s\r\n%s\r\n%s" % (status, text, size, text))
