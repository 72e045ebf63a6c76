"""The tools allowed for this notebook: the command `%agent revoke`, and a line of `%agent status`.

Rules
- An allowance holds until the kernel restarts; the line says so.
- The docstring of the command is the help that users read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import UsageError, did_you_mean
from ...tools import KERNEL_PERMISSIONS
from .output import print_text

if TYPE_CHECKING:
    from ..session import Session


def describe_allowed() -> str:
    """Return a line that names the allowed tools, "" if there are none."""
    names = ", ".join(KERNEL_PERMISSIONS.names)
    return (
        f"Allowed for this notebook, until its kernel restarts: {names} (%agent revoke TOOL takes it back)"
        if names
        else ""
    )


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
    print_text(
        f"{', '.join(arguments)}: asked about again."
        if arguments
        else describe_allowed() or "No tool is allowed for this notebook."
    )
