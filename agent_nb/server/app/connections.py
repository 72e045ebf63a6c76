"""uvicorn's protocol with a time limit for request heads and a limit of connections.

Why: uvicorn waits without limit for the end of a request head, so a client could occupy all
connections. A request that is being answered is never cut off: a stream may last for days.
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


def make_protocol(settings: Settings) -> type[H11Protocol]:
    """Return uvicorn's protocol with the limits `head` and `connections` of `settings`."""

    class Limited(H11Protocol):
        """One connection."""

        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            """Start the timer of the first head; refuse the connection if too many are open."""
            super().connection_made(transport)
            if len(self.connections) > settings.connections:
                transport.write(REFUSAL)
                transport.close()
            else:
                self._start_timer()

        def data_received(self, data: bytes) -> None:
            """Handle bytes; while no request is being answered, they start the timer of a head."""
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop_timer()
            elif self._timer is None:
                self._start_timer()

        def connection_lost(self, exc: Exception | None) -> None:
            """Stop the timer."""
            self._stop_timer()
            super().connection_lost(exc)

        def _start_timer(self) -> None:
            self._timer = self.loop.call_later(settings.head, self.transport.close)

        def _stop_timer(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return Limited
