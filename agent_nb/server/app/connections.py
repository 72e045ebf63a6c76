"""Connections that nobody uses are let go: the protocol of uvicorn with a time limit for the head
of a request, and a number.

Why: uvicorn waits for ever for the end of a head that does not come. A client that opens
connections and says nothing, or a letter a minute, would take them all, whether it means to or is
only broken.

Rules
- From the first moment of a connection, and from the first byte of each later request, the head has
  `Settings.head` seconds.
- One connection more than `Settings.connections` is answered 503 and closed, whatever it would have
  asked.
- A request that is being answered is never cut off: a stream may last for days.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from .settings import Settings

BUSY = b"Too many connections are open. Try again later.\n"
REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: %d\r\nretry-after: 5\r\nconnection: close\r\n\r\n%s"
    % (len(BUSY), BUSY)
)


def protocol(settings: Settings) -> type[H11Protocol]:
    """Return uvicorn's protocol with these limits."""

    class Limited(H11Protocol):
        """One connection."""

        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            """Begin to wait for the head of the first request."""
            super().connection_made(transport)
            if len(self.connections) > settings.connections:
                transport.write(REFUSAL)
                transport.close()
            else:
                self._wait()

        def data_received(self, data: bytes) -> None:
            """Take bytes; while no request is being answered they belong to a head, which is timed
            from its first byte.
            """
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop()
            elif self._timer is None:
                self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            """Stop waiting."""
            self._stop()
            super().connection_lost(exc)

        def _wait(self) -> None:
            self._timer = self.loop.call_later(settings.head, self.transport.close)

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return Limited
