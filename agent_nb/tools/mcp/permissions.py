"""Check the permission to start a server of a `.mcp.json` (`Server.offer`).

Why: its command line may be a stranger's.

Rules
- A permission covers exactly one entry; the program behind it may change.
- A server made in code needs no permission: the author of the code runs it.
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
