"""Replace a run's references to MCP servers by the tools that these servers list now.

Why: which tools a server has is known only while it runs.

Rules
- Every permission is checked before any server starts. The servers start at the same time.
- If another tool of the run, or a built-in or installed tool, has the name `read`, the tool `read`
  of the server `files` is offered as `files_read`: a policy's rule for the one must never allow the
  other.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ...errors import UsageError, did_you_mean
from ..base import Tool
from ..decorator import clean_name
from .config_file import read_servers
from .described import LARGEST, ListedTool, make_tool, read_listed_tool
from .hub import HUB
from .references import Reference
from .server import Server, quote_ascii

MOST = 128  # tools of one server in one run
NAMED = 50  # tools that an error message names
LONGEST_NAME = 200  # characters of a tool's name; a tool with a longer name is not offered


class _Wanted(msgspec.Struct):
    """A server and the names of the tools that a run wants from it; `whole`: it wants all."""

    server: Server
    tools: list[str]
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
    wanted = _by_server(references, folder)
    for request in wanted:
        request.server.require_permission()
    stopped = [request.server.name for request in wanted if not HUB.running(request.server)]
    if stopped:
        status(f"starting the MCP server{'s' if stopped[1:] else ''} {', '.join(stopped)}")
    servers = await asyncio.gather(*(HUB.listed(request.server) for request in wanted))
    # for each server, its tools by name (None: the name is too long or the schema too large, which
    # the record notes)
    listings = [
        {
            tool.name: read_listed_tool(tool) if len(tool.name) <= LONGEST_NAME else None
            for tool in listed.tools
        }
        for listed in servers
    ]
    chosen = [
        (request.server, listed_tool)
        for request, tools in zip(wanted, listings, strict=True)
        for listed_tool in _chosen(request, tools)
    ]
    names = _names(chosen, reserved)
    tools = [
        make_tool(server, listed_tool, name)
        for (server, listed_tool), name in zip(chosen, names, strict=True)
    ]
    lists = [
        {
            "server": request.server.name,
            "about": listed.about,
            **(
                {"left_out": left_out}
                if (left_out := [name[:LONGEST_NAME] for name in listing if not listing[name]])
                else {}
            ),
            "tools": [
                _record(tool, listed_tool)
                for (server, listed_tool), tool in zip(chosen, tools, strict=True)
                if server is request.server
            ],
        }
        for request, listed, listing in zip(wanted, servers, listings, strict=True)
    ]
    return tools, lists


def _by_server(references: Iterable[Reference], folder: str) -> list[_Wanted]:
    """Return the servers of the references, each once, with the tools that are wanted."""
    wanted: dict[str, _Wanted] = {}
    for reference in references:
        server = reference.defined or read_servers(folder).server(reference.server)
        entry = wanted.setdefault(server.digest, _Wanted(server, [], whole=False))
        if reference.tool:
            entry.tools.append(reference.tool)
        else:
            entry.whole = True
    return list(wanted.values())


def _chosen(wanted: _Wanted, known: Mapping[str, ListedTool | None]) -> Iterator[ListedTool]:
    """Yield the wanted tools of a server.

    `known`: its tools by name; None marks a tool whose name is too long or whose schema is too
    large. Raises UsageError for a wanted tool that is unknown or so marked, and for too many.
    """
    server = quote_ascii(wanted.server.name)
    if wanted.whole:
        usable = [tool for tool in known.values() if tool is not None]
        if len(usable) > MOST:
            raise UsageError(
                f"The MCP server {server} has {len(usable)} tools; {MOST} are the most for one run. Choose some: -t mcp:{wanted.server.name}/TOOL."
            )
        yield from usable
        return
    for name in dict.fromkeys(wanted.tools):
        # the user may write the server's own name, or the clean one by which models call the tool
        listed_name = (
            name if name in known else next((n for n in known if clean_name(n) == name), "")
        )
        if not listed_name:
            shown = [clean_name(tool_name) for tool_name in known]
            hint = did_you_mean(name, shown)
            more = f" and {len(shown) - NAMED} more" if len(shown) > NAMED else ""
            listed = f"{', '.join(shown[:NAMED])}{more}" if shown else "none"
            raise UsageError(
                f"The MCP server {server} has no tool {quote_ascii(name)}.{hint} Tools: {listed}."
            )
        if (tool := known[listed_name]) is None:
            why = (
                f"its name is longer than {LONGEST_NAME}"
                if len(listed_name) > LONGEST_NAME
                else f"its schema is larger than {LARGEST:,}"
            )
            raise UsageError(
                f"The tool {quote_ascii(name[:LONGEST_NAME])} of the MCP server {server} cannot be used: {why} characters."
            )
        yield tool


def _names(chosen: list[tuple[Server, ListedTool]], reserved: Collection[str]) -> list[str]:
    """Return the names by which the model calls the tools: all different, none `reserved`."""
    plain = [clean_name(tool.name) for _, tool in chosen]
    counts = Counter(plain)
    names: list[str] = []
    for (server, _), name in zip(chosen, plain, strict=True):
        if name in reserved or counts[name] > 1:
            name = clean_name(f"{server.name}_{name}")  # noqa: PLW2901
        number, first = 1, name
        while name in {*reserved, *names}:
            number += 1
            # the longest name has 64 characters, and `number` may have five
            name = f"{first[:58]}_{number}"  # noqa: PLW2901
        names.append(name)
    return names


def _record(tool: Tool, listed: ListedTool) -> dict[str, Any]:
    """Return the entry of a tool in the record: its description as the model got it."""
    entry = {"name": tool.name, **msgspec.to_builtins(tool.spec)}
    if listed.name != tool.name:
        entry["tool"] = listed.name
    if listed.destructive:
        entry["destructive"] = True
    return entry
