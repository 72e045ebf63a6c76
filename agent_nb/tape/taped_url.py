"""The taped address of a server that the notebook names itself, for a client's `base_url`."""

from __future__ import annotations


def url(address: str) -> str:
    """Return the base URL for clients whose calls to the server at `address` are to be recorded.

    `address`: the server's base URL; it is returned unchanged if no tape is on. Raises UsageError
    if a tape is on and `address` is not a base URL.
    """
    from .relay import Relay  # not at the top: importing the public name must not load HTTP

    relay = Relay.RUNNING
    return address if relay is None else relay.address_of(address)
