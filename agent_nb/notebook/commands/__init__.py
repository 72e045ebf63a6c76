"""`%agent COMMAND …`: a table of small functions.

Rules
- A command prints plain text, or returns what the notebook displays (a DataFrame, a Run). Its
  docstring is its help.
- A wrong command or argument fails with one line that names the valid ones, and changes nothing.
- Keys are never shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import AgentError, UsageError, did_you_mean
from ..cell.failure import AgentCellError
from ..notices import table
from ..options import words
from . import cells, mcp, permissions, records, runs, setup
from .output import Command, say

if TYPE_CHECKING:
    from ..session import Session


def command(session: Session, line: str) -> Any:
    """Run one `%agent` command. Raises AgentCellError with one line when it fails."""
    try:
        name, *arguments = words(line) or ["help"]
        found = COMMANDS.get(name)
        if found is None:
            hint = did_you_mean(name, COMMANDS, written="%agent {}".format)
            raise UsageError(f"There is no command %agent {name}.{hint} %agent help lists them.")
        return found(session, arguments)
    except AgentError as fault:
        raise AgentCellError(str(fault)) from None


def help_(session: Session, _: list[str]) -> None:
    """list these commands"""
    rows = [
        (f"%agent {name}", (function.__doc__ or "").strip()) for name, function in COMMANDS.items()
    ]
    say(f"{table(rows)}\n%%agent? lists the options of a cell, %config AgentMagics their defaults.")


COMMANDS: dict[str, Command] = {
    "help": help_,
    "models": setup.models,
    "tools": setup.tools,
    "config": setup.config,
    "context": setup.context,
    "key": setup.key,
    "trust-folder": setup.trust_folder,
    "mcp": mcp.mcp,
    "revoke": permissions.revoke,
    "reset": runs.reset,
    "show": runs.show,
    "attach": runs.attach,
    "status": records.status,
    "recover": records.recover,
    "forget": records.forget,
    "cell": cells.cell,
    "events": runs.events,
    "export": runs.export,
    "doctor": setup.doctor,
}
