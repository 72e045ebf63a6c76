"""Permission to start the servers of a `.mcp.json`, which is a stranger's command line.

Rules
- Exactly one entry is allowed: a changed command, address, variable or header asks again.
- A server made in code needs no permission: who wrote the code runs it.
- The program that an entry names may change without its entry; a permission covers that.
"""

from __future__ import annotations

from pathlib import Path

from ...errors import NotAllowed
from ...host import SERVERS, Offer, shorten_path
from .server import Server, quote_ascii

OPTION = "--trust-mcp"


def offer(server: Server) -> Offer:
    """Return what the entry of a server offers."""
    return Offer(
        "server",
        str(Path(server.file)),
        f"starts the MCP server {quote_ascii(server.name)}: {'; '.join(server.described())}",
        server.digest,
        server.name,
    )


def is_allowed(server: Server) -> bool:
    """Return whether the server may start."""
    return not server.file or offer(server).is_allowed()


def require_permission(server: Server) -> None:
    """Raise NotAllowed if the server may not start."""
    if is_allowed(server):
        return
    raise NotAllowed(
        f"The MCP server {quote_ascii(server.name)} of {shorten_path(Path(server.file))} is not allowed to start. See what it would run, and allow it: %agent mcp allow {server.name}, in a terminal: jupyter agent-nb mcp allow {server.name}. For one run without a person: {OPTION} or {SERVERS}=1.",
        offer(server),
    )


def allow_server(server: Server) -> bool:
    """Allow the server to start; return False if this holds in this process only."""
    return Offer.allow_all([offer(server)])


def revoke_permission(server: Server) -> bool:
    """Withdraw the permission; return whether there was one. Raises UsageError."""
    return offer(server).withdraw()
