"""Replace a run's references to MCP servers by the tools that these servers list now.

Every permission is checked before any server starts; the servers start at the same time.

Rule: a tool gets the name of its server before its own (`files_read`) if another tool of the run,
or a built-in or installed tool, is called `read`: a policy's rule for the one must never allow the
other.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Any

import msgspec

from ...errors import UsageError, did_you_mean
from ..base import Tool
from ..decorator import clean_name
from .config_file import read_servers
from .described import LARGEST_SCHEMA, ListedTool, make_tool, read_listed_tool
from .hub import HUB
from .references import Reference
from .server import Server, quote_ascii

MOST_TOOLS = 128  # of a server that a run wants as a whole; named tools are not counted
MOST_NAMED = 50  # tools that an error message names
LONGEST_NAME = 200  # characters of a tool's name; a tool with a longer name is not offered
# the tools that a server lists, by name; None: its name is too long or its schema too large
_Listing = dict[str, ListedTool | None]


class _ServerRequest(msgspec.Struct):
    """What a run wants from a server: the tools `tool_names`, or (`whole`) all of them."""

    server: Server
    tool_names: list[str]
    whole: bool


async def open_references(
    references: Iterable[Reference],
    reserved: Collection[str],
    folder: str,
    status: Callable[[str], object],
) -> tuple[list[Tool], list[dict[str, Any]]]:
    """Return the tools that the references stand for, and for the record a list for each server.

    `reserved`: names that no tool of a server gets; `status` receives a line for the user while
    servers start. Raises UsageError for an unknown server or tool, NotAllowed for a server that may
    not start, and ToolError for one that fails.
    """
    requests = _group_by_server(references, folder)
    for request in requests:
        request.server.require_permission()
    stopped = [request.server.name for request in requests if not HUB.running(request.server)]
    if stopped:
        status(f"starting the MCP server{'s' if stopped[1:] else ''} {', '.join(stopped)}")
    answers = await asyncio.gather(*(HUB.list_tools(request.server) for request in requests))
    listings: list[_Listing] = [
        {
            tool.name: read_listed_tool(tool) if len(tool.name) <= LONGEST_NAME else None
            for tool in answer.tools
        }
        for answer in answers
    ]
    chosen = [
        (request.server, tool)
        for request, listing in zip(requests, listings, strict=True)
        for tool in _choose_tools(request, listing)
    ]
    tools: list[Tool] = []
    entries: dict[str, list[dict[str, Any]]] = {request.server.digest: [] for request in requests}
    for (server, listed), name in zip(chosen, _make_names(chosen, reserved), strict=True):
        tools.append(make_tool(server, listed, name))
        entries[server.digest].append(_record_tool(tools[-1], listed))
    lists = [
        _record_list(request.server, answer.about, listing, entries[request.server.digest])
        for request, answer, listing in zip(requests, answers, listings, strict=True)
    ]
    return tools, lists


def _group_by_server(references: Iterable[Reference], folder: str) -> list[_ServerRequest]:
    """Return a request for each server that the references name, with all tools they name."""
    requests: dict[str, _ServerRequest] = {}
    for reference in references:
        server = reference.defined or read_servers(folder).server(reference.server)
        request = requests.setdefault(server.digest, _ServerRequest(server, [], whole=False))
        if reference.tool:
            request.tool_names.append(reference.tool)
        else:
            request.whole = True
    return list(requests.values())


def _choose_tools(request: _ServerRequest, listing: _Listing) -> list[ListedTool]:
    """Return the tools of a server that a run gets: those it names, or all that can be used.

    Raises UsageError if a named tool cannot be used, or a whole server has too many.
    """
    if not request.whole:
        tools = [_choose_tool(request.server, name, listing) for name in request.tool_names]
        return list({tool.name: tool for tool in tools}.values())  # two names may mean one tool
    usable = [tool for tool in listing.values() if tool is not None]
    if len(usable) > MOST_TOOLS:
        raise UsageError(
            f"The MCP server {quote_ascii(request.server.name)} has {len(usable)} tools; {MOST_TOOLS} are the most for one run. Choose some: -t mcp:{request.server.name}/TOOL."
        )
    return usable


def _choose_tool(server: Server, name: str, listing: _Listing) -> ListedTool:
    """Return the tool `name`: the server's own name for it, or the clean one that models write.

    Raises UsageError for an unknown tool, and for one that is None in the listing.
    """
    meant = (each for each in listing if clean_name(each) == name)
    listed_name = name if name in listing else next(meant, "")
    server_name = quote_ascii(server.name)
    if not listed_name:
        shown = [clean_name(each) for each in listing]
        hint = did_you_mean(name, shown)
        more = f" and {len(shown) - MOST_NAMED} more" if len(shown) > MOST_NAMED else ""
        listed = f"{', '.join(shown[:MOST_NAMED])}{more}" if shown else "none"
        raise UsageError(
            f"The MCP server {server_name} has no tool {quote_ascii(name)}.{hint} Tools: {listed}."
        )
    tool = listing[listed_name]
    if tool is not None:
        return tool
    why = f"its schema is larger than {LARGEST_SCHEMA:,}"
    if len(listed_name) > LONGEST_NAME:
        why = f"its name is longer than {LONGEST_NAME}"
    raise UsageError(
        f"The tool {quote_ascii(name[:LONGEST_NAME])} of the MCP server {server_name} cannot be used: {why} characters."
    )


def _make_names(chosen: list[tuple[Server, ListedTool]], reserved: Collection[str]) -> list[str]:
    """Return the names by which the model calls the tools: all different, none `reserved`."""
    plain = [clean_name(tool.name) for _, tool in chosen]
    long = [clean_name(f"{server.name}_{n}") for (server, _), n in zip(chosen, plain, strict=True)]
    counts = Counter(plain)
    unclear = {n for n, name in enumerate(plain) if name in reserved or counts[name] > 1}
    longer = unclear
    while longer:  # names that equal the long name of another tool become long, too
        taken = {long[n] for n in longer}
        longer = {n for n, name in enumerate(plain) if name in taken} - unclear
        unclear = unclear | longer
    names = [long[n] if n in unclear else name for n, name in enumerate(plain)]
    used = set(reserved)
    # a number must not depend on the order in which servers list their tools
    for n in sorted(range(len(names)), key=lambda n: (chosen[n][0].name, chosen[n][1].name)):
        number, first = 1, names[n]
        while names[n] in used:
            number += 1
            # the longest name has 64 characters, and `number` may have five
            names[n] = f"{first[:58]}_{number}"
        used.add(names[n])
    return names


def _record_tool(tool: Tool, listed: ListedTool) -> dict[str, Any]:
    """Return the entry of a tool in the record: its description as the model got it."""
    entry = {"name": tool.name, **msgspec.to_builtins(tool.spec)}
    if listed.name != tool.name:
        entry["tool"] = listed.name
    if listed.destructive:
        entry["destructive"] = True
    return entry


def _record_list(
    server: Server, about: str, listing: _Listing, entries: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return what the record keeps of a server's list; `entries`: of the tools that the run has."""
    left_out = [name[:LONGEST_NAME] for name, tool in listing.items() if tool is None]
    optional = {"left_out": left_out} if left_out else {}
    return {"server": server.name, "about": about, **optional, "tools": entries}
