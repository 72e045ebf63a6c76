"""Permission to start the servers of a `.mcp.json` (`Server.offer`): a stranger's command lines.

Rules
- Exactly one entry is allowed: a changed command, address, variable or header asks again.
- A server made in code needs no permission: who wrote the code runs it.
- The program that an entry names may change without its entry; a permission covers that.
"""

from __future__ import annotations

from pathlib import Path

from ...errors import NotAllowed
from ...host import Offer, shorten_path
from .server import Server, quote_ascii

OPTION = "--trust-mcp"


def require_permission(server: Server) -> None:
    """Raise NotAllowed if the server may not start."""
    if server.allowed:
        return
    raise NotAllowed(
        f"The MCP server {quote_ascii(server.name)} of {shorten_path(Path(server.file))} is not allowed to start. See what it would run, and allow it: %agent mcp allow {server.name}, in a terminal: jupyter agent-nb mcp allow {server.name}. For one run without a person: {OPTION} or {Offer.TRUST_SERVERS}=1.",
        server.offer,
    )
