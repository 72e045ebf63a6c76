"""Stand-ins for a record's MCP tools: a replay checks their calls against today's policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...errors import ToolError
from ...events import Event, State
from ...models import ToolSpec
from ...wire import as_dict, as_list
from ..base import Tool
from ..decorator import clean_name

KIND = "mcp"  # the `kind` of the State event that lists the tools of one server
_MOST = 1_000  # tools in all, since a stranger's record may list any number


def add_recorded_tools(tools: Iterable[Tool], events: Iterable[Event]) -> list[Tool]:
    """Return `tools` and those that a run's `events` list; `tools` win if the names are equal."""
    known = {tool.name: tool for tool in tools}
    for tool in _recorded_tools(events):
        if len(known) < _MOST:
            known.setdefault(tool.name, tool)
    return list(known.values())


def _recorded_tools(events: Iterable[Event]) -> Iterator[Tool]:
    """Yield a tool for each valid entry of the run's own events, not those of its sub-agents."""
    for event in events:
        if not isinstance(event, State) or event.kind != KIND or event.span:
            continue
        for entry in map(as_dict, as_list(as_dict(event.payload).get("tools"))):
            name = entry.get("name")
            if isinstance(name, str) and name == clean_name(name):
                description = str(entry.get("description") or "")
                spec = ToolSpec(name, description, as_dict(entry.get("parameters")))
                yield Tool(spec=spec, invoke=_refuse_call, validate=dict, effect="outside")


def _refuse_call(**_: Any) -> None:
    raise ToolError("A replay does not call tools of MCP servers.")
