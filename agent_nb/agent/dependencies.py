"""Digests of the tools and sub-agents of a run, and the differences from recorded digests.

They are not among the inputs of the run, by which its record is found: if a tool's code has
changed, the record must still be found, so that a test can report the change.

Rules
- A part that the record lacks is not compared. Older records have no digests, or the digest `code`
  of a tool (by the rules of `tools.source`) in place of `source` (`tools.project_source`).
- Schemas of functions with readable code are digested without defaults: machines may differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from inspect import unwrap
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from ..events import Event, RunStart
from ..record import digest_value
from ..wire import as_dict

if TYPE_CHECKING:
    from ..tools import Tool, Toolset

#: {"tools": {name: {part: digest}}, "agents": {name: {part: digest, "behind": Digests}}}
Digests = dict[str, Any]
TOOL_PARTS = ("schema", "code", "source")
AGENT_PARTS = ("model", "settings", "tools")  # inputs of a sub-agent; `tools`: the names of its own
MOST_LEVELS = 5  # levels of sub-agents; deeper ones are not digested
_OUR_PACKAGE = __name__.partition(".")[0]


class CodeReader(msgspec.Struct, frozen=True, kw_only=True):
    """Digests the code of tools; `folder` is the notebook's.

    `earlier`: follow the rules of earlier versions, for their records. `unread` collects the names
    of functions and modules whose code cannot be read.
    """

    folder: str
    earlier: bool = False
    unread: set[str] = msgspec.field(default_factory=set)

    def digest_code(self, tool: Tool) -> dict[str, str]:
        """Return {"source": digest}, or {"code": digest} by earlier rules; {} without any code."""
        from ..tools import ProjectSearch

        digest = ProjectSearch.read(tool.invoke, self.folder, earlier=self.earlier)
        self.unread.update(digest.unseen)
        part = "code" if self.earlier else "source"
        return {part: digest.digest} if digest.digest else {}


def digest_dependencies(tools: Toolset, reader: CodeReader, depth: int = 0) -> Digests:
    """Return the digests of tools and sub-agents by name; `depth`: of the agent that has them."""
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


def follows_earlier_rules(log: Sequence[Event]) -> bool:
    """Return whether an earlier version wrote the record, so that its rules for code apply.

    The place in a record of this version has the folders of the interpreter (`python`).
    """
    return "python" not in as_dict(RunStart.first_in(log).settings.get("place"))


def is_built_in(tool: Tool) -> bool:
    """Return whether the function of the tool belongs to this package."""
    module = getattr(unwrap(tool.invoke), "__module__", None)
    return isinstance(module, str) and module.partition(".")[0] == _OUR_PACKAGE


def _digest_tool(tool: Tool, reader: CodeReader) -> dict[str, str]:
    """Return the digests of a tool's schema and code; {} for a tool of this package."""
    if is_built_in(tool):
        return {}
    code, parameters = reader.digest_code(tool), tool.spec.parameters
    schema = _digest_schema(tool, _without_defaults(parameters) if code else parameters)
    return {"schema": schema, **code}


def _digest_schema(tool: Tool, parameters: Any) -> str:
    return digest_value([tool.spec.name, tool.spec.description, parameters])


def _digest_agent(agent: Any, reader: CodeReader, depth: int) -> Digests:
    """Return the digests of a sub-agent: its `AGENT_PARTS`, and `behind`: those of its tools."""
    # any prompt will do: no part in `AGENT_PARTS` depends on it
    inputs: Mapping[str, str] = agent.inputs(".")
    dependencies = digest_dependencies(agent.tools, reader, depth)
    parts: Digests = {name: inputs[name] for name in AGENT_PARTS if inputs[name]}
    return {**parts, "behind": dependencies} if dependencies else parts


def _without_defaults(schema: Any) -> Any:
    """Return a JSON schema without the default values in it."""
    if isinstance(schema, Mapping):
        # an object under the key `default` may be the schema of a field with that name
        kept = {k: v for k, v in schema.items() if k != "default" or isinstance(v, Mapping)}
        return {k: _without_defaults(v) for k, v in kept.items()}
    return [_without_defaults(v) for v in schema] if isinstance(schema, list | tuple) else schema


class ChangedPart(NamedTuple):
    """A part of a tool or agent whose digest differs from the recorded one.

    `name`: of the tool or agent. `part`: one of `TOOL_PARTS` or `AGENT_PARTS`. `agents`: the
    sub-agents around it, outermost first, as `a/b`; "" in the run's own agent.
    """

    name: str
    part: str
    agents: str


def find_changed(recorded: Any, current: Any, agents: str = "") -> Iterator[ChangedPart]:
    """Yield the parts that differ between two `Digests`, of tools and agents that both have.

    `agents`: the sub-agents around them, as in `ChangedPart`.
    """
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
