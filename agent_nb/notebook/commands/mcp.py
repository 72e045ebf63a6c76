"""The command `%agent mcp`: the MCP servers of this folder and of this kernel.

Rule: the docstring of the command is the help that users read; `mcp_servers` does the work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .output import print_text

if TYPE_CHECKING:
    from ..session import Session


def manage_servers(_: Session, arguments: list[str]) -> None:
    """[allow|revoke|stop NAME]: the MCP servers of .mcp.json and what they may; allow one after
    reading what it starts
    """
    from ..mcp_servers import run_mcp_command

    print_text(run_mcp_command(arguments))
