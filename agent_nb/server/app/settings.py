"""The limits of a server: times, sizes and numbers of connections, streams and runs."""

from __future__ import annotations

import msgspec


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a server. `keepalive` seconds, `body` bytes of a request, `streams` at once,
    `active` runs at once; `head`: seconds that the head of a request may take, and its body;
    `connections` at once.
    """

    keepalive: float = 30.0
    body: int = 1 << 20
    streams: int = 500
    active: int = 16
    message: int = 200_000
    grace: float = 5.0
    head: float = 15.0
    connections: int = 600
