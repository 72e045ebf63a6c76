"""The time limits of a request to a model.

Why a file of its own: the configuration has a field of this type, and `models.http`, which applies
the limits, imports the configuration.
"""

from __future__ import annotations

import msgspec


class Timeouts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits in seconds."""

    connect: float = 10.0  # to open a connection
    first_byte: float = 120.0  # to the first byte of the answer
    idle: float = 60.0  # between two reads of the answer
