"""What a run depends on besides its inputs: tools and sub-agents (as digests), and its place.

Why not among the inputs: a record is found by its inputs, which hold only the names of tools. If a
tool's code has changed, the record must still be found, so that a test can report the change.

Rules
- Only tools and agents that both sides have are compared, in the parts that the record has. Older
  records have no digests, or have a tool's `code` by earlier rules (`tools.source`) in place of its
  `source` (`tools.project_source`).
- The schema of a function with readable code counts without defaults, which may depend on the
  machine.
- Built-in tools do not count: they change with releases.
- The place is time zone and folders, by which `masks` recognises times and paths. A folder is
  recorded as length and digest of its path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from inspect import unwrap
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ..events import Event, RunStart
from ..record import digest_value
from ..wire import as_dict
from .masking.clock import read_time_zone
from .masking.folders import describe_folders

if TYPE_CHECKING:
    from ..tools import Tool, Toolset

#: {"tools": {name: {part: digest}}, "agents": {name: {part: digest, "behind": Digests}}}
Digests = dict[str, Any]
TOOL_PARTS = ("schema", "code", "source")
AGENT_PARTS = ("model", "settings", "tools")  # inputs of a sub-agent; `tools`: the names of its own
MOST_LEVELS = 5  # levels of sub-agents; deeper ones are not digested
_OUR_PACKAGE = __name__.partition(".")[0]


class Reader(msgspec.Struct, frozen=True, kw_only=True):
    """Reads the code of tools; `folder` is the notebook's.

    `earlier`: follow the rules of earlier versions, for their records. `unseen` receives the names
    of functions and modules whose code is not read.
    """

    folder: str
    earlier: bool = False
    unseen: set[str] = msgspec.field(default_factory=set)

    def code(self, tool: Tool) -> dict[str, str]:
        """Return {"source": digest of a tool's code}, or {"code": …} by earlier rules, or {}."""
        from ..tools import ProjectSearch

        digest = ProjectSearch.read(tool.invoke, self.folder, earlier=self.earlier)
        self.unseen.update(digest.unseen)
        part = "code" if self.earlier else "source"
        return {part: digest.digest} if digest.digest else {}


def digest_dependencies(tools: Toolset, reader: Reader, depth: int = 0) -> Digests:
    """Return the digests of tools and sub-agents by name."""
    digests: Digests = {"tools": {}, "agents": {}}
    for tool in tools:
        if tool.agent is None:
            if parts := _digest_tool(tool, reader):
                digests["tools"][tool.name] = parts
        elif depth < MOST_LEVELS:
            schema = _digest_schema(tool, tool.spec.parameters)
            agent = _digest_agent(tool.agent, reader, depth + 1)
            digests["agents"][tool.name] = {"schema": schema, **agent}
    return {kind: by_name for kind, by_name in digests.items() if by_name}


def describe_place(folder: str) -> dict[str, Any]:
    """Return the place of a run: its time zone, and its folders (as digests)."""
    zone, offset = read_time_zone()
    return {"zone": zone, "offset": offset, **describe_folders(folder)}


def follows_earlier_rules(log: Sequence[Event]) -> bool:
    """Return whether an earlier version wrote the record, so that its rules for code apply.

    The place in a record of this version has the folders of the interpreter (`python`).
    """
    return "python" not in as_dict(RunStart.first_in(log).settings.get("place"))


def is_built_in(tool: Tool) -> bool:
    """Return whether the function of the tool belongs to this package."""
    module = getattr(unwrap(tool.invoke), "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] == _OUR_PACKAGE


def _digest_tool(tool: Tool, reader: Reader) -> dict[str, str]:
    """Return the digests of a tool's schema and code; {} for a tool of this package."""
    if is_built_in(tool):
        return {}
    code, parameters = reader.code(tool), tool.spec.parameters
    schema = _digest_schema(tool, _without_defaults(parameters) if code else parameters)
    return {"schema": schema, **code}


def _digest_schema(tool: Tool, parameters: Any) -> str:
    return digest_value([tool.spec.name, tool.spec.description, parameters])


def _digest_agent(agent: Any, reader: Reader, depth: int) -> Digests:
    """Return the digests of a sub-agent: of its own values, and of what its runs depend on."""
    # any prompt: `AGENT_PARTS` names only digests that do not depend on it
    inputs: Mapping[str, str] = agent.inputs(".")
    dependencies = digest_dependencies(agent.tools, reader, depth)
    parts: Digests = {name: inputs[name] for name in AGENT_PARTS if inputs[name]}
    return {**parts, "behind": dependencies} if dependencies else parts


def _without_defaults(schema: Any) -> Any:
    """Return a JSON schema without the default values in it."""
    if isinstance(schema, Mapping):
        # a member `default` that is an object may be the schema of a field with that name
        kept = {k: v for k, v in schema.items() if k != "default" or isinstance(v, Mapping)}
        return {k: _without_defaults(v) for k, v in kept.items()}
    return [_without_defaults(v) for v in schema] if isinstance(schema, list | tuple) else schema


class ChangedPart(NamedTuple):
    """A part of a tool or agent whose digest differs from the recorded one.

    `part`: `schema`, `code` or `source` of a tool; `schema`, `model`, `settings` or `tools` of an
    agent.
    `agents`: the sub-agents around it, outermost first, as `a/b`; "" in the run's own agent.
    """

    name: str
    part: str
    agents: str


def find_changed(recorded: Any, current: Any, agents: str = "") -> Iterator[ChangedPart]:
    """Yield the parts that differ between two `Digests`, at the depth of `agents`."""
    for kind in ("tools", "agents"):
        recorded_items = as_dict(as_dict(recorded).get(kind))
        current_items = as_dict(as_dict(current).get(kind))
        for name in sorted(recorded_items.keys() & current_items.keys()):
            old, new = as_dict(recorded_items[name]), as_dict(current_items[name])
            for part in (*TOOL_PARTS, *AGENT_PARTS):
                if part in old and old[part] != new.get(part):
                    yield ChangedPart(name, part, agents)
            if kind == "agents":
                inside = f"{agents}/{name}".strip("/")
                yield from find_changed(old.get("behind"), new.get("behind"), inside)
