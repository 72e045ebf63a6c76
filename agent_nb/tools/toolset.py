"""The tools of an agent: ordered, with unique names, found by name.

Why: `-t list,read,my_function` mixes built-ins, installed plug-ins and notebook functions; the loop
needs one list. References stand for the tools of MCP servers until a run starts (`mcp.opening`).

Rules
- A name is looked up, in this order, among the functions and Tools of the notebook's namespace, the
  built-in tools and files of tools, and the installed entry points.
- Tools that the user did not choose (`unchosen`) are not an input of a run: its record still
  matches after they change.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from ..errors import AgentError, UsageError, did_you_mean
from ..events import Event
from ..host import blame_plugin, find_faults, list_builtin, list_plugins, load_plugin
from ..models import ToolSpec
from .base import Tool
from .decorator import as_tool, clean_name, is_tool
from .mcp.references import Reference, is_reference, parse_reference
from .mcp.server import Server
from .safe_types import defines_name, is_a

_ROOM = "tools"  # the room whose plug-ins are tools (`host.plugins`)


class Toolset:
    """An ordered collection of tools with unique names, and which of them the user chose.

    - `late`: references to tools that become known when a run starts
    - `chosen`: the names that the user chose, an input of a run (None: all tools and references)
    - `by_prompt`: the prompt itself chose them, not a configuration

    It is immutable. The combinators (`filter`, `prefix`, `rename`, `+`) return toolsets whose tools
    all count as chosen by the prompt. Raises UsageError if two different tools have the same name.
    """

    def __init__(
        self,
        tools: Iterable[Tool] = (),
        late: Iterable[Reference] = (),
        *,
        chosen: tuple[str, ...] | None = None,
        by_prompt: bool = True,
    ) -> None:
        self._chosen, self.by_prompt = chosen, by_prompt
        self.late = tuple({reference.key: reference for reference in late}.values())
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            earlier = self._tools.setdefault(tool.name, tool)
            function, other = inspect.unwrap(tool.invoke), inspect.unwrap(earlier.invoke)
            if tool.spec != earlier.spec or function != other:
                raise UsageError(
                    f"Two tools are named {tool.name!r}. Rename one: @tool(name=…), or Toolset.rename."
                )

    @classmethod
    def resolve(
        cls,
        wanted: Iterable[Any] | str,
        namespace: Mapping[str, Any] | None = None,
        *,
        by_prompt: bool = True,
    ) -> Toolset:
        """Return the toolset of any mix of names, functions, Tools, Toolsets and MCP servers.

        A text may hold several names with commas. A name is looked up in `namespace` first. A
        Toolset is returned as it is, whatever `by_prompt` says. Raises UsageError for an unknown
        name, with suggestions.
        """
        if isinstance(wanted, Toolset):
            return wanted
        is_one = is_a(wanted, Server) or isinstance(wanted, str) or not is_a(wanted, Iterable)
        items = [wanted] if is_one else list(wanted)
        tools: list[Tool] = []
        late: list[Reference] = []
        for item in _split_names(items):
            target: Any = (namespace or {}).get(item) if isinstance(item, str) else item
            if is_a(target, Server):
                late.append(Reference(target.name, defined=target))
            elif isinstance(item, str) and is_reference(item):
                late.append(parse_reference(item))
            elif isinstance(item, str):
                tools.extend(_find_tools(item, namespace or {}))
            else:
                if isinstance(item, Toolset):
                    late.extend(item.late)
                tools.extend(_make_tools(item))
        return cls(tools, late, by_prompt=by_prompt)

    @classmethod
    def unchosen(cls, names: Iterable[Any] = ()) -> Toolset:
        """Return the built-in tools of these names as tools that the user did not choose.

        Other names are left out, since a record may name anything.
        """
        builtin = list_builtin(_ROOM)
        known = [str(name) for name in names if str(name).replace("_", "-") in builtin]
        tools = [tool for name in known for tool in cls.of_plugin(name) if tool.name == name]
        return cls(tools, chosen=(), by_prompt=False)

    @staticmethod
    def of_plugin(name: str) -> list[Tool]:
        """Return the tools of a plug-in.

        Raises MissingExtra, and PluginError if the plug-in of another package cannot be used.
        """
        with blame_plugin(_ROOM, name):
            plugin = load_plugin(_ROOM, name)
            try:
                return list(_make_tools(plugin))
            except UsageError as error:
                # an AgentError would pass `blame_plugin`, which names the package of other errors
                raise TypeError(str(error)) from None

    @staticmethod
    def installed() -> dict[str, Tool]:
        """Return the built-in and installed tools by name."""
        return {tool.name: tool for plugin in list_plugins(_ROOM) for tool in _load_tools(plugin)}

    async def with_servers(
        self, folder: str, status: Callable[[str], object]
    ) -> tuple[Toolset, list[dict[str, Any]]]:
        """Return the toolset with the tools of its references, and the servers' lists.

        The lists are for the record. `status` receives messages about the progress. Raises
        UsageError for a server that is unknown or may not start, and ToolError for one that fails.
        """
        from .mcp.opening import open_references

        reserved = {*self.names, *Toolset.installed()}
        tools, lists = await open_references(self.late, reserved, folder, status)
        return Toolset([*self, *tools], chosen=self.chosen, by_prompt=self.by_prompt), lists

    def with_recorded(self, events: Iterable[Event]) -> Toolset:
        """Return the tools, and those of MCP servers that a recorded run's events list."""
        from .mcp.recorded import add_recorded_tools

        return Toolset(add_recorded_tools(self, events))

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __add__(self, other: Toolset) -> Toolset:
        return Toolset([*self, *other], [*self.late, *other.late])

    def __repr__(self) -> str:
        return f"Toolset({', '.join(self._names_and_references)})"

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in order."""
        return tuple(self._tools)

    @property
    def _names_and_references(self) -> tuple[str, ...]:
        return (*self._tools, *(reference.name for reference in self.late))

    @property
    def chosen(self) -> tuple[str, ...]:
        """The names that the user chose: those of tools, then those of references."""
        return self._names_and_references if self._chosen is None else self._chosen

    @property
    def is_unchosen(self) -> bool:
        """Whether the user chose no tools, neither for the prompt nor by configuration."""
        return not self.by_prompt and not self.chosen

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The specs for the model, in order."""
        return tuple(tool.spec for tool in self)

    def get(self, name: str) -> Tool | None:
        """Return the tool called `name`, or None."""
        return self._tools.get(name)

    def filter(self, keep: Callable[[Tool], bool]) -> Toolset:
        """Return those tools for which `keep` is true, and the references."""
        return Toolset((tool for tool in self if keep(tool)), self.late)

    def prefix(self, text: str) -> Toolset:
        """Return the tools with `text` before each name, and the references as they are."""
        return Toolset((_rename(tool, text + tool.name) for tool in self), self.late)

    def rename(self, names: Mapping[str, str]) -> Toolset:
        """Return the tools renamed (old: new). Raises UsageError for an unknown old name."""
        for name in names:
            if name not in self:
                raise UsageError(
                    f"There is no tool {name!r} to rename. Tools: {', '.join(self.names) or 'none'}."
                )
        return Toolset((_rename(tool, names.get(tool.name, tool.name)) for tool in self), self.late)


def _split_names(items: Iterable[Any]) -> Iterator[Any]:
    """Yield the items, with a text of several names split at its commas."""
    for item in items:
        if isinstance(item, str):
            yield from filter(None, (name.strip() for name in item.split(",")))
        else:
            yield item


def available() -> dict[str, tuple[str, ...]]:
    """Return plug-in -> the names of its tools, () if it cannot be used here."""
    plugins = list_plugins(_ROOM)
    return {plugin: tuple(tool.name for tool in _load_tools(plugin)) for plugin in plugins}


def find_tool_values(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a namespace that can be tools, by the name of the tool."""
    return {
        _name_tool(name, value): value
        for name, value in list(namespace.items())
        if not name.startswith("_") and _is_usable(value)
    }


def _name_tool(name: str, value: Any) -> str:
    """Return the name of the tool that a variable would be."""
    with suppress(Exception):  # an object that cannot be a tool as it is
        if is_tool(value) or defines_name(value, "as_tool"):
            return as_tool(value).name
    return clean_name(name)


def _find_tools(name: str, namespace: Mapping[str, Any]) -> Iterable[Tool]:
    """Return the tools that a name means. Raises UsageError."""
    value = namespace.get(name)
    if _is_usable(value):
        return [as_tool(value, name)]
    tools = (v for v in namespace.values() if is_tool(v) and not inspect.ismethod(v))
    declared = next((tool for tool in tools if as_tool(tool).name == name), None)
    if declared is not None:
        return [as_tool(declared)]
    if name.replace("_", "-") in list_builtin(_ROOM) or name in list_plugins(_ROOM):
        # a file of tools may be named like one of them: then only this tool is meant
        loaded = Toolset.of_plugin(name)
        return [tool for tool in loaded if tool.name == name] or loaded
    offered = (tool for plugin in list_plugins(_ROOM) for tool in _load_tools(plugin))
    if (same := next((tool for tool in offered if tool.name == name), None)) is not None:
        return [same]
    raise UsageError(_explain_unknown(name, value, namespace))


def _is_usable(value: Any) -> bool:
    """Return whether a value can be made a tool; reads no attribute of an object."""
    return (
        is_tool(value)
        or (callable(value) and not is_a(value, type))
        or defines_name(value, "as_tool")
    )


def _make_tools(item: Any) -> Iterable[Tool]:
    """Return the tools made of a value, or of each item of a collection. Raises UsageError."""
    items = item if isinstance(item, Toolset | tuple | list) else [item]
    tools = [as_tool(each) for each in items]
    for tool in tools:
        if not isinstance(tool, Tool):
            raise UsageError(f"as_tool() of an object gave a {type(tool).__name__}, not a Tool.")
    return tools


def _load_tools(name: str) -> Iterable[Tool]:
    """Return the tools of a plug-in, none if it cannot be used: the others must still be found."""
    try:
        return Toolset.of_plugin(name)
    except AgentError:
        return ()


def _rename(tool: Tool, name: str) -> Tool:
    """Return the tool under another name."""
    spec = msgspec.structs.replace(tool.spec, name=clean_name(name))
    return msgspec.structs.replace(tool, spec=spec)


def _explain_unknown(name: str, own: Any, namespace: Mapping[str, Any]) -> str:
    if own is not None:
        return f"{name!r} is a {type(own).__name__}, not a function; it cannot be a tool."
    known = {tool for tools in available().values() for tool in tools}
    functions = {
        n for n, v in namespace.items() if not n.startswith("_") and is_a(v, types.FunctionType)
    }
    hint = did_you_mean(name, known | functions, 3, cutoff=0.5)
    broken = "".join(f" {fault}" for fault in find_faults(_ROOM, Toolset.of_plugin))
    return f"There is no tool or function named {name!r}.{hint} Built in: {', '.join(sorted(known)) or 'none'}.{broken}"
