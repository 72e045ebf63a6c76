"""The tools of MCP servers as a record lists them, for its replay.

Why: a replay starts no server, but it too must know the names that a policy may mention, and say
which calls the policy denies now.

Rules
- They never run: their effect is `outside`, and a replay runs no such call again.
- A record may be a stranger's: what is not a list of tools is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...errors import ToolError
from ...events import Event, State
from ...models import ToolSpec
from ...wire import as_dict, as_list
from ..base import Tool
from ..decorator import clean_name

KIND = "mcp"  # of the State event that lists the tools of one server
_MOST = 1_000


def add_recorded_tools(tools: Iterable[Tool], events: Iterable[Event]) -> list[Tool]:
    """Return the tools, and those of MCP servers that a run's events list under other names."""
    known = {tool.name: tool for tool in tools}
    for tool in _tools(events):
        if len(known) < _MOST:
            known.setdefault(tool.name, tool)
    return list(known.values())


def _tools(events: Iterable[Event]) -> Iterator[Tool]:
    for event in events:
        if not isinstance(event, State) or event.kind != KIND or event.span:
            continue
        for entry in map(as_dict, as_list(as_dict(event.payload).get("tools"))):
            name = entry.get("name")
            if isinstance(name, str) and name == clean_name(name):
                spec = ToolSpec(
                    name, str(entry.get("description") or ""), as_dict(entry.get("parameters"))
                )
                yield Tool(spec=spec, invoke=_never, validate=dict, effect="outside")


def _never(**_: Any) -> None:
    raise ToolError("A replay does not call tools of MCP servers.")
