"""A port of loopback for a server that comes later, comes again, or never comes."""

from __future__ import annotations

import random
import socket

# below the ports that a system gives to clients, and to servers that ask for any: else another
# test could be given the port before the server has it
_PORTS = range(20_000, 32_000)
_CHANCE = random.SystemRandom()  # a seed would choose alike in all processes


def take_port() -> int:
    """Return a port where nobody listens, and where nobody listens by chance."""
    while True:
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", _CHANCE.choice(_PORTS)))
            except OSError:
                continue
            return int(free.getsockname()[1])
