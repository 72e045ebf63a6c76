"""What stands behind the inputs of a run, as digests in its record: the code and schema of its
tools and the agents among them; and where and by which clock it went on.

Why outside the inputs: a run is found by what the user put in. A tool that changed since is
noticed, and the run is found all the same.

Rules
- Nothing that is absent is compared: older records have none of this.
- A schema counts without the defaults of functions whose code is seen, for a default may come from
  the machine.
- Our own tools do not count: they change with releases.
- The place is for reading times and paths in results (`masks`). A folder stands there as the length
  and the digest of its path: it can be found again in a text, and not be read.
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
    """Return the digests of the tools and the agents among them, by name; `folder` is the
    notebook's.

    `unseen` receives the names of functions and modules that they use and whose code does not
    count.
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
    """Return where a run goes on: the zone of its clock, its working folder and that for temporary
    files, which are not named.
    """
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
    """Yield (name of a tool or agent, what of it changed, the agent it belongs to) where two sets
    of digests differ.

    What is changed is `schema` or `code` of a tool, `model`, `settings` or `tools` of an agent.
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
