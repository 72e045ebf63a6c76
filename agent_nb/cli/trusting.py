"""The commands `trust-folder` and `mcp`: the user allows the keys, policies or servers of a folder.

They run the same code as the magics `%agent trust-folder` and `%agent mcp`, for servers and CI,
where no notebook is open.
"""

from __future__ import annotations

import argparse

from ..notebook import make_printable
from .shared import OK, Arguments, add_flag
from .terminal import print_lines


def trust_folder(arguments: Arguments) -> int:
    """let a folder give keys (.env) and be obeyed in its policies, as they are now"""
    from ..notebook import trust_folder as run_command

    choices = {"--list": arguments.list, "--revoke": arguments.revoke}
    flags = [flag for flag, is_set in choices.items() if is_set]
    print_lines(run_command([*arguments.paths, *flags]))
    return OK


def trust_folder_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `trust-folder`."""
    paths_help = "folders, or single policy files (default: this folder)"
    sub.add_argument("paths", nargs="*", metavar="FOLDER|FILE", help=paths_help)
    action_group = sub.add_mutually_exclusive_group()
    add_flag(action_group, "--list", "list what is allowed")
    add_flag(action_group, "--revoke", "allow nothing any more to the folders that are named")


def manage_servers(arguments: Arguments) -> int:
    """list the MCP servers of this folder's .mcp.json, or let one start after showing what it is"""
    from ..notebook import run_mcp_command

    command = [arguments.verb, *arguments.names] if arguments.verb else []
    print_lines(make_printable(run_mcp_command(command)))
    return OK


def mcp_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `mcp`."""
    verb_help = "what to do (default: list them)"
    sub.add_argument("verb", nargs="?", choices=("allow", "revoke"), help=verb_help)
    sub.add_argument("names", nargs="*", metavar="NAME", help="servers")
