"""The MCP servers of a folder: listed, allowed and revoked, by `%agent mcp` or in a terminal.

Why ask: an entry of `.mcp.json` starts a program on the user's machine. A permission needs a clear
yes at a keyboard, after the exact command was shown: a notebook that runs unattended cannot grant
it. Listing starts nothing, and shows no secret of an entry: a saved notebook keeps the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..errors import UsageError
from ..host import Offer, shorten_path
from ..models import collect_secrets
from ..tools import HUB, Server, read_servers
from ..wire import redact_text
from .notices import format_table, make_printable
from .yes_no import NOT_SAVED, ask_yes_no

USAGE = "Write mcp, mcp allow NAME, mcp revoke NAME or mcp stop NAME."


def run_mcp_command(arguments: Sequence[str]) -> str:
    """Run the command `mcp` with these arguments and return its message. Raises UsageError."""
    if not arguments:
        return _list_servers()
    verb, *names = arguments
    if verb not in VERBS or not names:
        raise UsageError(f"{USAGE} It got: {' '.join(arguments)}.")
    servers = [_find_server(name) for name in names]  # all of them, before the first changes
    return "\n".join(map(VERBS[verb], servers))


def _list_servers() -> str:
    """Return a table of the servers of `.mcp.json` and of this kernel: name, state and entry."""
    config = read_servers()
    started = {server.digest: (server, state) for server, state in HUB.states()}
    rows = []
    for name, server in config.servers.items():
        permission = "allowed" if server.allowed else "not allowed"
        _, state = started.pop(server.digest, (server, permission))
        rows.append((name, state, _entry_line(server)))
    rows += [(name, "faulty", fault) for name, fault in config.faults.items()]
    rows += [(server.name, state, _entry_line(server)) for server, state in started.values()]
    where = config.heading
    if Offer.is_trusted_everywhere(Offer.TRUST_SERVERS):
        where += f"\n{Offer.TRUST_SERVERS} is set: in this process every server may start"
    return "\n".join([where, *([format_table(rows)] if rows else [])])


def _entry_line(server: Server) -> str:
    """Return the entry of a server as one line without secrets: a saved notebook keeps it."""
    secrets = {**collect_secrets(), **server.secrets}
    return "; ".join(server.mask(lambda text: redact_text(text, secrets)).describe())


def _find_server(name: str) -> Server:
    """Return the named server: a running one that code made, else the one in the folder's file.

    Raises UsageError if there is none.
    """
    started = {server.name: server for server, _ in HUB.states() if not server.file}
    return started.get(name) or read_servers().server(name)


def _allow(server: Server) -> str:
    """Ask whether a server may start, after showing what would start."""
    if server.allowed:
        return f"The MCP server {server.name} may start already."
    lines = [f'{shorten_path(Path(server.file))} would start the MCP server "{server.name}":']
    lines += [f"  {line}" for line in server.describe()]
    lines += [
        "A yes counts as long as this entry stays as it is; the program itself may change.",
        "Allow it? [y]es, [n]o: ",
    ]
    if not ask_yes_no(make_printable("\n".join(lines)), empty_is_no=True):
        return f"Not allowed. Where there is no keyboard: jupyter agent-nb mcp allow {server.name} in a terminal."
    message = f"allowed: the MCP server {server.name}"
    return message if Offer.allow_all([server.offer]) else f"{message}\n{NOT_SAVED}"


def _revoke(server: Server) -> str:
    was_allowed = server.offer.withdraw()
    HUB.stop(server)
    return f"{server.name}: {'may not start any more' if was_allowed else 'was not allowed'}"


def _stop(server: Server) -> str:
    was_running = HUB.running(server)
    HUB.stop(server)
    return f"{server.name}: {'stopped' if was_running else 'did not run'}"


# the word after `mcp` -> the function that applies it to a server and returns the message
VERBS = {"allow": _allow, "revoke": _revoke, "stop": _stop}
