"""An exchange with a server while it goes on.

The relay only collects the bytes of the answer; they are parsed at the first use of `exchange`.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import cached_property

from ..errors import WireError
from ..wire import decompress_body
from .exchange import LARGEST_BODY, Body, Exchange, Request, Response

# headers of an answer that are kept, so that a replay sends them too; `location` is then a path
# below the server's base URL
_SENT_AGAIN = ("content-type", "location", "request-id", "x-request-id")


class Received:
    """The body of an answer as far as it came.

    `complete`: the server ended it. `left`: the client went away before.
    """

    def __init__(self) -> None:
        self.complete = self.left = False
        self._pieces: list[bytes] = []
        self._size = 0
        self._digest = hashlib.sha256()

    def add(self, piece: bytes) -> None:
        """Add a piece."""
        self._size += len(piece)
        self._digest.update(piece)
        if self._size <= LARGEST_BODY:
            self._pieces.append(piece)
        else:
            self._pieces.clear()

    def make_response(self, status: int, headers: Mapping[str, str]) -> Response:
        """Return the answer as far as it came, decompressed; a digest if too large or damaged."""
        body = Body("digest", {"sha256": self._digest.hexdigest(), "bytes": self._size})
        if self._size <= LARGEST_BODY:
            with suppress(WireError):
                encoding, data = headers.get("content-encoding", "identity"), b"".join(self._pieces)
                if encoding != "identity":
                    data = asyncio.run(self._decompress(encoding))
                body = Body.read(data, headers.get("content-type", ""))
        sent_again = {name: headers[name] for name in _SENT_AGAIN if name in headers}
        # a client may go away as soon as it has all, before the server ends the answer
        whole = self.complete or body.is_ended or headers.get("content-length") == str(self._size)
        whole = whole or (self.left and body.is_answered)  # it reads no usage, and no end
        return Response(status=status, headers=sent_again, body=body, complete=whole)

    async def _decompress(self, encoding: str) -> bytes:
        data = bytearray()
        async with aclosing(decompress_body(self._replay(), encoding)) as pieces:
            async for piece in pieces:
                data += piece
                if len(data) > LARGEST_BODY:
                    raise WireError("too large")  # the digest stays
        return bytes(data)

    async def _replay(self) -> AsyncGenerator[bytes, None]:
        for piece in self._pieces:
            yield piece


@dataclass(frozen=True, kw_only=True, repr=False)  # a header may be a key
class Sent:
    """An exchange with a server, unredacted, from `began` to `ended` (epoch seconds).

    `answered`: when the head of the answer came. `headers`: of the request. `received`: what came
    of the body of the answer.
    """

    request: Request
    headers: Mapping[str, str]
    status: int
    answer_headers: Mapping[str, str]
    received: Received
    began: float
    answered: float
    ended: float

    @cached_property
    def exchange(self) -> Exchange:
        """The exchange, read at first use; a compressed one in a thread without an event loop."""
        response = self.received.make_response(self.status, self.answer_headers)
        return Exchange(request=self.request, response=response)
