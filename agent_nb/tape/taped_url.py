"""The taped address of a server that the notebook names itself.

Why: a client with an explicit base URL does not read the variables that the tape sets.
"""

from __future__ import annotations


def url(address: str) -> str:
    """Return the address for clients whose calls to the server at `address`, a base URL, are to be
    recorded; `address` itself where no tape is on. Raises UsageError if it is not a base URL.
    """
    from .relay import Relay  # an import of the public name waits for no HTTP

    relay = Relay.RUNNING
    return address if relay is None else relay.address_of(address)
