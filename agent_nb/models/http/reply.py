"""The answer to one HTTP request as it arrives, with its limits for time, size and compression.

Rule: every fault is a ModelError.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

import anyio

from ...errors import ModelError, WireError
from ...wire import decompress_body
from ..config import Timeouts
from .network_errors import make_connection_error
from .patience import wait_within
from .transport import Response

MOST_OF_ERROR = 64 * 1024  # bytes of an error body that are read
MOST_OF_WHOLE = 16 * 1024 * 1024  # bytes of an answer read as a whole, such as a list of models


class Reply:
    """An answer in progress: status, headers (names in lower case), bytes as they arrive.

    `deadline`: when the first byte must have come, by the event loop's clock; `host`: for faults.
    """

    def __init__(self, response: Response, timeouts: Timeouts, deadline: float, host: str) -> None:
        self.status = response.status_code
        self.headers = response.headers
        self._response = response
        self._timeouts = timeouts
        self._deadline = deadline
        self._host = host

    def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it arrives.

        Raises ModelError if it breaks off, cannot be decoded or stalls beyond the time limit.
        """
        encoding = self.headers.get("content-encoding", "")
        return self._decoded(encoding) if encoding else self._read_raw()

    async def _decoded(self, encoding: str) -> AsyncGenerator[bytes, None]:
        try:
            async with aclosing(decompress_body(self._read_raw(), encoding)) as pieces:
                async for piece in pieces:
                    yield piece
        except WireError as error:
            raise ModelError(f"{self._host}: {error}", code="garbage") from None

    async def _read_raw(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as the server sent it."""
        next_piece = aiter(self._response.stream).__anext__
        limit = max(0.0, self._deadline - anyio.current_time())
        complaint = f"said nothing for {self._timeouts.first_byte:g} s"
        while True:
            try:
                data = await wait_within(limit, next_piece())
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise ModelError(
                    f"{self._host} {complaint}.", retryable=True, code="timeout"
                ) from None
            except Exception as error:
                raise make_connection_error(error, self._host, self._timeouts.connect) from None
            limit = self._timeouts.idle
            complaint = f"stopped sending for {limit:g} s"
            if data:
                yield data

    async def read_whole(self, limit: int = MOST_OF_WHOLE) -> bytes:
        """Return the body. Raises ModelError like `chunks`, and above `limit` bytes."""
        body = bytearray()
        async with aclosing(self.chunks()) as chunks:
            async for data in chunks:
                body += data
                if len(body) > limit:
                    raise ModelError(
                        f"{self._host} answered with more than {limit >> 20} MB.", code="limit"
                    )
        return bytes(body)

    async def read_beginning(self, limit: int = MOST_OF_ERROR) -> bytes:
        """Return the first `limit` bytes of the body, or what came before a fault or 5 s."""
        body = b""
        # the status is the fault to report; its body only words it, and is not worth a longer wait
        with suppress(ModelError), anyio.move_on_after(5):
            async with aclosing(self.chunks()) as chunks:
                async for data in chunks:
                    body += data
                    if len(body) >= limit:
                        break
        return body[:limit]
