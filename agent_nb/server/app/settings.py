"""The limits of a server: times, sizes and numbers of connections, streams and runs."""

from __future__ import annotations

import msgspec


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one server.

    `keepalive`: seconds between comments. `body`: bytes of a request. `streams`, `active` (runs)
    and `connections`: how many at once. `message`: characters. `grace`: seconds for runs to end at
    shutdown. `head`: seconds for the head of a request, and again for its body.
    """

    keepalive: float = 30.0
    body: int = 1 << 20
    streams: int = 500
    active: int = 16
    message: int = 200_000
    grace: float = 5.0
    head: float = 15.0
    connections: int = 600
