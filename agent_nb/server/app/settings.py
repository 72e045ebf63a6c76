"""The limits of a server, so that no client uses up memory, connections or model calls."""

from __future__ import annotations

import msgspec


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one server."""

    keepalive: float = 30.0  # seconds of silence before a stream gets a comment; 0: none
    body: int = 1 << 20  # bytes of a request's body
    streams: int = 500  # open streams at once
    active: int = 16  # running runs at once
    message: int = 200_000  # characters of a user's message
    grace: float = 5.0  # seconds for runs to end at shutdown, and for streams after them
    head: float = 15.0  # seconds for the head of a request, and again for its body
    connections: int = 600  # open connections at once, streams included
