"""The sources of names for completion: models, tools, variables, conversations, runs, files …

Why only local sources: the user is typing and must not wait. So no network and no key is used, and
no code of the user's objects runs (`tools.safe_types`).
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from ...errors import AgentError
from ...host import list_builtin, list_plugins
from ...models import Config, list_known_models
from ...tools import (
    Server,
    Tool,
    Toolset,
    defines_name,
    module_name,
    open_confined,
    public_name,
    read_servers,
    text_entries,
    user_variables,
)
from ..cell.context_cells import readable_cells
from ..cell.offered_cells import list_offers
from ..identity import Cell
from ..mentions import CELL, is_path
from ..option_table import DEFAULT_CONVERSATION, NO_TOOLS

if TYPE_CHECKING:
    from ..session import Session

MOST_NAMES = 200  # that are offered
_OURS = __name__.partition(".")[0]  # the name of this package
MOST_ENTRIES = 2_000  # of a folder that are looked through
FRAMES = tuple(f"{lib}.{kind}" for lib in ("pandas", "polars") for kind in ("DataFrame", "Series"))
Source = Callable[["Session", str], Iterable[str]]


def fixed_words(*choices: str) -> Source:
    """Return a source of these words."""
    return lambda session, prefix: choices


def model_names(session: Session, prefix: str) -> Iterator[str]:
    """Yield variables that hold a model, configured models, and providers followed by a slash.

    After a slash, yield the models that are known here without asking a provider.
    """
    if "/" not in prefix:
        yield from (n for n, value in _list_variables(session) if defines_name(value, "stream"))
        of_environment = os.environ.get("AGENT_NB_MODEL", "")
        chosen = (session.defaults()["model"], of_environment, Config.load(lenient=True).model)
        yield from (name for name in chosen if "/" in name)
        yield from (f"{provider}/" for provider in provider_names(session, prefix))
        return
    for models in list_known_models().values():
        yield from models
    for provider_name, offered in session.offered.items():
        yield from (f"{provider_name}/{model}" for model in offered)


def provider_names(session: Session, prefix: str) -> list[str]:
    """Return the providers and the configured endpoints."""
    return list(list_known_models())


def tool_names(session: Session, prefix: str) -> Iterator[str]:
    """Yield tools of the notebook (functions, agents, servers), built-in and installed ones.

    Then come the MCP servers of the folder, last the word for no tools.
    """
    yield from (name for name, value in _list_variables(session) if _can_be_tool(value))
    builtin = list_builtin("tools")
    yield from (tool.name for plugin in builtin for tool in Toolset.of_plugin(plugin))
    yield from (name for name in list_plugins("tools") if name not in builtin)
    with suppress(AgentError):  # a faulty `.mcp.json` is reported where it is used
        yield from read_servers().references
    yield NO_TOOLS


def server_names(session: Session, prefix: str) -> list[str]:
    """Return the MCP servers that the folder's `.mcp.json` describes; nothing is started."""
    try:
        return list(read_servers().servers)
    except AgentError:  # as in `tool_names`
        return []


def _can_be_tool(value: Any) -> bool:
    """Return whether a value can be a tool: a user's function, an agent, a Tool or a Server."""
    if type(value) is types.FunctionType:
        return module_name(value).partition(".")[0] != _OURS
    return type(value) is Tool or type(value) is Server or defines_name(value, "as_tool")


def _list_variables(session: Session) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of all variables but IPython's own and those that begin with _."""
    hidden = session.shell.user_ns_hidden
    for name, value in text_entries(session.shell.user_ns):
        if name.isidentifier() and not name.startswith("_") and hidden.get(name) is not value:
            yield name, value


def variable_names(session: Session, prefix: str) -> Iterable[str]:
    """Return the user's variables that are neither functions nor classes."""
    shell = session.shell
    variables = user_variables(shell.user_ns, shell.user_ns_hidden)
    return [
        n for n, v in variables.items() if type(v) is not types.FunctionType and type(v) is not type
    ]


def table_names(session: Session, prefix: str) -> Iterator[str]:
    """Yield the variables whose rows can be asked: frames first, then lists."""
    variables = list(_list_variables(session))
    yield from (n for n, v in variables if public_name(v) in FRAMES)
    yield from (n for n, v in variables if (type(v) is list or type(v) is tuple) and v)


def type_names(session: Session, prefix: str) -> Iterator[str]:
    """Yield the user's classes, and plain types."""
    for name, value in _list_variables(session):
        if issubclass(type(value), type) and module_name(value).partition(".")[0] != _OURS:
            yield name
    yield from ("str", "int", "float", "bool")


def attachable_names(session: Session, prefix: str) -> Iterator[str]:
    """Yield variables that hold a picture, and files."""
    for name, value in _list_variables(session):
        shows = ("savefig", "_repr_png_", "_repr_image_")
        if type(value) is bytes or any(defines_name(value, method) for method in shows):
            yield name
    yield from files_ending()(session, prefix)


def described_names(session: Session, prefix: str) -> list[str]:
    """Return the variables that an `@name` can mean."""
    shell = session.shell
    return list(user_variables(shell.user_ns, shell.user_ns_hidden, imports=False))


def cell_numbers(session: Session, prefix: str) -> list[str]:
    """Return `cell:N` for each cell that ran here and may be sent, the newest first."""
    readable = readable_cells(session.shell, Cell(key=""), session.library.read_file(ask=False))
    return [f"{CELL}{cell.count}" for cell in readable]


def readable_files(session: Session, prefix: str) -> Iterator[str]:
    """Yield the files below the notebook's folder that a model may read, and its folders.

    A name that a prompt can hold only in quotes is yielded in quotes.
    """
    path = prefix.removeprefix('"')
    if path.startswith(("/", "~", "..")):
        return
    for name in files_ending()(session, path):
        plain = is_path(name)
        if name.endswith("/"):
            yield name if plain and path == prefix else f'"{name}'
        elif name.startswith(path) and _is_readable(name):
            yield name if plain and path == prefix else f'"{name}"'


def _is_readable(name: str) -> bool:
    try:
        open_confined(os.curdir, name).close()
    except (AgentError, OSError):
        return False
    return True


#: kind of what an `@name` can mean -> its source, in the order in which the names are offered
MENTIONS: dict[str, Source] = {
    "variable": described_names,
    "cell": cell_numbers,
    "file": readable_files,
}


def conversation_names(session: Session, prefix: str) -> list[str]:
    """Return the default conversation and those of this kernel."""
    return [DEFAULT_CONVERSATION, *(c.name for c in session.conversations)]


def run_ids(session: Session, prefix: str) -> list[str]:
    """Return the ids of the runs of this kernel, the newest of each cell first."""
    return [run.id for listed in session.runs.values() for run in listed]


def offered_cells(session: Session, prefix: str) -> list[str]:
    """Return the numbers of the cells that the latest run offered."""
    count = len(list_offers(session.latest.log)) if session.latest is not None else 0
    return [str(n) for n in range(1, count + 1)]


def files_ending(*endings: str) -> Source:
    """Return a source of folders, and of files with these endings (none: all), from one folder."""

    def source(session: Session, prefix: str) -> Iterator[str]:
        head, slash, tail = prefix.rpartition("/")
        folder = f"{head}{slash}"
        try:
            with os.scandir(os.path.expanduser(folder) or ".") as entries:
                items = sorted(islice(entries, MOST_ENTRIES), key=lambda item: item.name)
                for item in items:
                    if item.name.startswith(".") and not tail.startswith("."):
                        continue
                    if item.is_dir():
                        yield f"{folder}{item.name}/"
                    elif not endings or item.name.lower().endswith(endings):
                        yield f"{folder}{item.name}"
        except OSError:
            return

    return source
