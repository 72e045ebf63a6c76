"""What a run depends on besides its inputs: code and schema of its tools and sub-agents (as
digests), and its place: time zone and folders.

Why outside the inputs: a record is found by what the user put in. A tool that has changed is
reported, and the record is found all the same.

Rules
- Only what both sides have is compared: older records have none of this.
- The schema of a function with readable code counts without defaults, which may depend on the
  machine.
- Built-in tools do not count: they change with releases.
- The place serves to recognise times and paths in results (`masks`). A folder is recorded as the
  length and digest of its path, so it can be found in a text but not read from the record.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from inspect import unwrap
from typing import TYPE_CHECKING, Any

from ..record.clock import here
from ..record.masks import unnamed
from ..record.packing import digest

if TYPE_CHECKING:
    from ..tools.base import Tool
    from ..tools.toolset import Toolset

Behind = dict[str, Any]
TOOL, AGENT = ("schema", "code"), ("model", "settings", "tools")
DEEPEST = 5  # agents below one another
_OURS = __name__.partition(".")[0]


def behind(tools: Toolset, folder: str, unseen: set[str] | None = None, depth: int = 0) -> Behind:
    """Return the digests of tools and sub-agents by name; `folder` is the notebook's.

    `unseen` receives the names of functions and modules they use whose code does not count.
    """
    unseen = set() if unseen is None else unseen
    found = {
        tool.name: seen
        for tool in tools
        if tool.agent is None and (seen := _tool(tool, folder, unseen))
    }
    among = [tool for tool in tools if tool.agent is not None and depth < DEEPEST]
    agents = {
        tool.name: {
            "schema": _schema(tool, tool.spec.parameters),
            **_agent(tool.agent, folder, unseen, depth + 1),
        }
        for tool in among
    }
    return {**({"tools": found} if found else {}), **({"agents": agents} if agents else {})}


def place(folder: str) -> dict[str, Any]:
    """Return the place of a run: time zone, working folder, temporary folder (as digests)."""
    zone, offset = here()
    return {
        "zone": zone,
        "offset": offset,
        "work": unnamed(os.path.abspath(folder)),
        "temporary": unnamed(tempfile.gettempdir()),
    }


def _tool(tool: Tool, folder: str, unseen: set[str]) -> dict[str, str]:
    from ..tools.source import code_of

    if _own(tool):
        return {}
    found = code_of(tool.invoke, folder)
    unseen.update(found.unseen)
    code = found.digest
    schema = _schema(tool, _bare(tool.spec.parameters) if code else tool.spec.parameters)
    return {"schema": schema, **({"code": code} if code else {})}


def _schema(tool: Tool, parameters: Any) -> str:
    return digest([tool.spec.name, tool.spec.description, parameters])


def _own(tool: Tool) -> bool:
    module = getattr(unwrap(tool.invoke), "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] == _OURS


def _agent(agent: Any, folder: str, unseen: set[str], depth: int) -> Behind:
    inputs: Mapping[str, str] = agent.inputs(".")
    within = behind(agent.tools, folder, unseen, depth)
    return {
        **{name: inputs[name] for name in AGENT if inputs[name]},
        **({"behind": within} if within else {}),
    }


def _bare(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        return {k: _bare(v) for k, v in schema.items() if k != "default" or isinstance(v, Mapping)}
    return [_bare(v) for v in schema] if isinstance(schema, list | tuple) else schema


def changed(recorded: Any, now: Behind, below: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield (name of the tool or agent, changed part, owning agent) for each differing digest.

    The part is `schema` or `code` of a tool, `model`, `settings` or `tools` of an agent.
    """
    old, new = _mapping(recorded), _mapping(now)
    for kind in ("tools", "agents"):
        before, after = _mapping(old.get(kind)), _mapping(new.get(kind))
        for name in sorted(before.keys() & after.keys()):
            one, other = _mapping(before[name]), _mapping(after[name])
            yield from (
                (name, part, below)
                for part in (*TOOL, *AGENT)
                if part in one and one[part] != other.get(part)
            )
            if kind == "agents":
                yield from changed(
                    one.get("behind"), other.get("behind", {}), f"{below}/{name}".strip("/")
                )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
