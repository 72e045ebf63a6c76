"""The commands of `%agent COMMAND …`: a table of functions of a session and the arguments.

Why a table: `%agent help`, completion and the error for an unknown command read it.

Rules
- A command prints plain text, or returns a value that the notebook displays (a DataFrame, a Run).
- The docstring of a command is its help: `%agent help` shows it to users.
- A wrong command or argument fails with one line that names the valid ones, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...errors import AgentError, UsageError, did_you_mean
from ..cell.failure import AgentCellError
from ..notices import format_table
from ..options import split_words
from . import cells, permissions, records, runs, setup, tape
from .output import print_text

if TYPE_CHECKING:
    from ..session import Session

Command = Callable[["Session", list[str]], Any]


def run_command(session: Session, line: str) -> Any:
    """Run one `%agent` command. Raises AgentCellError with one line when it fails."""
    try:
        name, *arguments = split_words(line) or ["help"]
        function = COMMANDS.get(name)
        if function is None:
            hint = did_you_mean(name, COMMANDS, written="%agent {}".format)
            raise UsageError(f"There is no command %agent {name}.{hint} %agent help lists them.")
        if (most := MOST_ARGUMENTS.get(name, len(arguments))) < len(arguments):
            usage = f"%agent {name} {(function.__doc__ or '').partition(':')[0]}"
            raise UsageError(f"{arguments[most]!r} is too much. Write {usage}.")
        return function(session, arguments)
    except AgentError as fault:
        raise AgentCellError(str(fault)) from None


def help_(session: Session, _: list[str]) -> None:
    """list these commands"""
    helps = {name: (function.__doc__ or "").strip() for name, function in COMMANDS.items()}
    table = format_table([(f"%agent {name}", text) for name, text in helps.items()])
    more = "%%agent? lists the options of a cell, %config AgentMagics their defaults."
    print_text(f"{table}\n{more}")


COMMANDS: dict[str, Command] = {
    "help": help_,
    "models": setup.show_models,
    "tools": setup.show_tools,
    "config": setup.show_config,
    "context": setup.show_context,
    "key": setup.manage_keys,
    "trust-folder": setup.trust_folder,
    "mcp": permissions.manage_servers,
    "tape": tape.switch_tape,
    "revoke": permissions.revoke_tools,
    "reset": runs.reset_conversations,
    "show": runs.show_run,
    "attach": runs.attach_run,
    "status": records.show_status,
    "recover": records.recover_runs,
    "forget": records.forget_records,
    "cell": cells.insert_cell,
    "events": runs.events_frame,
    "export": runs.export,
    "doctor": setup.show_doctor,
}
# command -> the most arguments that it reads; the others check theirs
MOST_ARGUMENTS = {"reset": 1, "show": 1, "recover": 1, "cell": 2, "events": 1, "export": 2}
