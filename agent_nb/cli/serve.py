"""The command `serve`: offers an agent and recorded runs over HTTP.

Rules
- The command prints where the token is, never the token.
- With --notebook or --store (or AGENT_NB_HUB), and without --model, the server only shows runs.
"""

from __future__ import annotations

import argparse
import os
import secrets
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..host import shorten_path
from .shared import OK, Arguments, add_number, add_text, add_texts, folder_option, list_notebooks
from .terminal import print_complaint, print_lines

if TYPE_CHECKING:
    from ..events import EventLog
    from ..rows import Agent

TOKEN_VARIABLE = "AGENT_NB_TOKEN"  # noqa: S105  (the name of a variable)


def serve_runs(arguments: Arguments) -> int:
    """serve an agent and recorded runs over HTTP: POST /runs, and their events as SSE or JSON lines
    in any format
    """
    from ..models import hide_secret
    from ..server import Agents, Server, Settings, configured_address, open_hub

    token, token_place = _find_token(arguments)
    settings = Settings(keepalive=arguments.keep_alive, active=arguments.max_runs)
    address = configured_address(arguments.store)
    hub = open_hub(address, keep=arguments.buffer)
    keep_run = _restore_runs(arguments.keep, hub)
    only_shows = bool(arguments.notebook or address) and not arguments.model
    agents: Any = None if only_shows else Agents(_make_agent(arguments), on_start=keep_run)
    server = Server(
        hub,
        agents,
        host=arguments.host,
        port=arguments.port,
        token=token,
        origins=tuple(arguments.cors),
        settings=settings,
        closing=None if agents is None else agents.stop,
    )
    hide_secret(server.token)
    _publish_notebooks(arguments, hub)
    with ExitStack() as at_end:
        at_end.callback(hub.stop)
        server.run(lambda server: _announce(server, hub.where, token_place, at_end))
    print_complaint("stopped")
    return OK


def _announce(server: Any, hub_address: str, token_place: str, at_end: ExitStack) -> None:
    """Say where the server and its token are; write a note for other processes of the user."""
    from ..external import write_server_note

    note = write_server_note(server.url, server.token)
    if note is not None:
        at_end.callback(note.close)
        token_place = token_place or f"in {shorten_path(note.path)}"
    print_lines(f"agent-nb serves at {server.url}")
    if hub_address:
        print_lines(f"runs of other kernels: over {hub_address}")
    where = token_place or "lost: no file for it can be written; set AGENT_NB_TOKEN"
    print_lines(
        f"token: {where}\nfollow a run: %agent attach {server.url} (in a notebook)\nstop: Ctrl-C"
    )


def serve_options(sub: argparse.ArgumentParser) -> None:
    """Add the options of `serve`."""
    host_help = "the address to listen at (default: 127.0.0.1, this machine only)"
    add_text(sub, "--host", "HOST", host_help, "127.0.0.1")
    port_help = "the port (default: 8765; 0: a free one)"
    sub.add_argument("--port", type=int, default=8765, help=port_help)
    token = sub.add_mutually_exclusive_group()
    advice = "the token; others on this machine see it, better AGENT_NB_TOKEN or --token-file"
    add_text(token, "--token", "TOKEN", advice)
    add_text(token, "--token-file", "FILE", "a file with the token; made if it is not there")
    add_text(sub, "--model", "MODEL", "the model of the agent (default: as in a notebook)")
    add_texts(sub, "--tools", "TOOLS", "tools by name, with commas, or a FILE.py that has them")
    add_text(sub, "--system", "TEXT", "instructions for the model")
    add_text(sub, "--dialect", "NAME", "how the model writes its turns: native, xml, section")
    approve_help = "ask (who follows the run), auto, deny, or a policy file"
    add_text(sub, "--approve", "HOW", approve_help, "ask")
    folder_option(sub)
    add_texts(sub, "--notebook", "FILE", "publish the recorded runs of a notebook")
    keep_help = "write every run down there; after a restart it is published again"
    add_text(sub, "--keep", "FOLDER", keep_help)
    store_help = "the Redis that kernels share their runs through (redis://…); with a password better AGENT_NB_HUB"
    add_text(sub, "--store", "URL", store_help, None)
    add_texts(sub, "--cors", "ORIGIN", "a page of this origin may use the server")
    alive_help = "seconds between comments on quiet streams (0: none)"
    add_number(sub, "--keep-alive", "S", alive_help, 30.0)
    add_number(sub, "--max-runs", "N", "how many runs may go on at once", 16)
    buffer_help = "how many events of a run are kept for those who come back"
    add_number(sub, "--buffer", "N", buffer_help, 20_000)


def _find_token(arguments: Arguments) -> tuple[str | None, str]:
    """Return the token (None: the server makes one), and its place in words ("": not known yet).

    Raises UsageError if the token file can be neither read nor made.
    """
    if arguments.token:
        return arguments.token, "as given with --token"
    if arguments.token_file:
        return read_token(Path(arguments.token_file)), f"in {arguments.token_file}"
    if token := os.environ.get(TOKEN_VARIABLE, ""):
        return token, f"in {TOKEN_VARIABLE}"
    return None, ""


def read_token(path: Path) -> str:
    """Return the token in a file; if the file is missing, create it with a new token.

    Only the user can read a file created here. Raises UsageError if the file can be neither read
    nor created.
    """
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        token = secrets.token_urlsafe(24)
    except (OSError, UnicodeDecodeError) as fault:
        raise UsageError(f"The token cannot be read from {path}: {fault}.") from None
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(token + "\n")
    except OSError as fault:
        raise UsageError(
            f"The token cannot be written to {path}: {fault.strerror or fault}."
        ) from None
    return token


def _restore_runs(folder: str, hub: Any) -> Callable[[EventLog], object]:
    """Publish the runs in the folder of --keep; return the function that keeps a run that starts.

    Without a folder, the function does nothing. Raises UsageError if the folder cannot be made.
    """
    from ..server import Store

    if not folder:
        return lambda _: None
    store = Store(Path(folder))
    for log in store.logs():
        hub.attach(log)
    return store.write


def _make_agent(arguments: Arguments) -> Agent:
    """Return the agent that the options describe.

    Raises UsageError for a model, tools or policy with which the first run would fail.
    """
    from ..agent import Basis
    from ..host import Offer
    from ..rows import Agent
    from ..server import load_tools
    from ..tools import Policy

    # the user named the folder and the policy file on the command line, and so allows them
    if arguments.trust_folder:
        os.environ[Offer.TRUST_FOLDER] = Offer.OPTION
    if arguments.approve not in Policy.MODES:
        Offer.trust_file(arguments.approve)
    agent = Agent(
        arguments.model or None,
        load_tools(arguments.tools),
        system=arguments.system,
        dialect=arguments.dialect or None,
        approve=arguments.approve,
    )
    Basis.of(agent, agent.redaction())  # raises now, not in the first run
    return agent


def _publish_notebooks(arguments: Arguments, hub: Any) -> None:
    """Publish the recorded runs of --notebook, each once. Raises UsageError if there are none."""
    if not arguments.notebook:
        return
    from ..notebook import read_runs

    published_runs: set[str] = {info.run for info in hub.runs()}
    runs = list(read_runs(list_notebooks(arguments.notebook), every=True))
    if not runs:
        raise UsageError("The named notebooks hold no recorded run.")
    for run in runs:
        if run.id in published_runs:
            continue
        published_runs.add(run.id)
        hub.attach(run.log)
