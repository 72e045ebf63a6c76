"""The commands about what the user allows: `%agent mcp` (servers) and `%agent revoke` (tools)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import UsageError, did_you_mean
from ...tools import KERNEL_PERMISSIONS
from .output import print_text

if TYPE_CHECKING:
    from ..session import Session


def manage_servers(_: Session, arguments: list[str]) -> None:
    """[allow|revoke|stop NAME]: the MCP servers of .mcp.json and what they may; allow one after
    reading what it starts
    """
    from ..mcp_servers import run_mcp_command

    print_text(run_mcp_command(arguments))


def describe_allowed() -> str:
    """Return a line that names the allowed tools, "" if there are none."""
    names = ", ".join(KERNEL_PERMISSIONS.names)
    if names:
        return f"Allowed for this notebook, until its kernel restarts: {names} (%agent revoke TOOL takes it back)"
    return ""


def revoke_tools(session: Session, arguments: list[str]) -> None:
    """[TOOL …]: the tools allowed for this notebook; with names, ask about them again"""
    allowed = KERNEL_PERMISSIONS.names
    unknown = [name for name in arguments if name not in allowed]
    if unknown:
        hint = did_you_mean(unknown[0], allowed)
        raise UsageError(
            f"The tool {unknown[0]!r} is not allowed for this notebook.{hint} Allowed: {', '.join(allowed) or 'none'}."
        )
    for name in arguments:
        KERNEL_PERMISSIONS.revoke(name)
    revoked = f"{', '.join(arguments)}: asked about again." if arguments else describe_allowed()
    print_text(revoked or "No tool is allowed for this notebook.")
