"""The time limits of a request to a model.

Why here: the configuration holds them, and the HTTP edge, which reads it, keeps them.
"""

from __future__ import annotations

import msgspec


class Timeouts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits in seconds: to connect, to the first byte of the answer, and between bytes."""

    connect: float = 10.0
    first_byte: float = 120.0
    idle: float = 60.0
