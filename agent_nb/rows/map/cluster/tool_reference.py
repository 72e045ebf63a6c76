"""Tools by name: how a worker of another process finds the tools of a map.

Why names: a pickled function carries what it refers to, and a notebook's functions refer to the
notebook, its keys included.

Rules
- A tool travels as the name of a built-in or installed tool, or as `module:name` of a function or
  Tool at the top level of a module that can be imported. Everything else is a UsageError that says
  what to do: functions of the notebook, lambdas, closures, bound methods, agents, MCP servers,
  tools that live in the kernel.
- The worker compares the description of what it found with a digest, so that another version of a
  module is an error and not another tool.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import Any

import msgspec

from ....errors import AgentError, UsageError
from ....host import mark_foreign
from ....record import digest_value
from ....tools import Tool, Toolset, as_tool

INSTALLED = "tool"  # in place of a module: the name of a built-in or installed tool
_FIELDS = ("effect", "timeout", "thread", "command", "each", "context_parameter")
_KERNEL = ("python", "variables", "add_cell")


class ToolReference(msgspec.Struct, frozen=True):
    """A tool called `name`, found at `where`; `spec` is the digest of its description."""

    name: str
    where: str
    spec: str


def make_references(tools: Toolset) -> tuple[ToolReference, ...]:
    """Return the references to all tools. Raises UsageError for one that has none."""
    if tools.late:
        names = ", ".join(reference.name for reference in tools.late)
        raise UsageError(
            f"Tools of MCP servers do not travel to workers ({names}). Leave them out, or map without client=."
        )
    known = Toolset.installed()
    return tuple(_reference(tool, known.get(tool.name)) for tool in tools)


def find_tool(reference: ToolReference) -> Tool:
    """Return the tool in this process. Raises UsageError, which names what is missing here."""
    module, _, name = reference.where.partition(":")
    try:
        imported = (
            Toolset.installed()[name]
            if module == INSTALLED
            else as_tool(import_attribute(module, name))
        )
    except AgentError as fault:
        raise UsageError(f"The tool {reference.name!r} cannot be made: {fault}") from None
    except Exception as fault:  # whatever the import of a module raises
        raise UsageError(
            f"The tool {reference.name!r} cannot be imported here ({type(fault).__name__}: {fault})."
            f" Install {module} on every worker, or send it: client.upload_file('{module.partition('.')[0]}.py')."
        ) from None
    tool = msgspec.structs.replace(
        imported, spec=msgspec.structs.replace(imported.spec, name=reference.name)
    )
    if _digest(tool) != reference.spec:
        raise UsageError(
            f"The tool {reference.name!r} is another one here: {reference.where} has other parameters or another description."
            " Install the same version of it on every worker."
        )
    return tool


def _reference(tool: Tool, known: Tool | None) -> ToolReference:
    if tool.agent is not None:
        raise _stays(tool, "is an agent, which may hold keys")
    if tool.name in _KERNEL or (tool.declared and tool.uses_kernel):
        raise _stays(tool, "lives in the kernel")
    if known is not None and _same(tool, known):
        return ToolReference(tool.name, f"{INSTALLED}:{tool.name}", _digest(tool))
    return ToolReference(tool.name, _where(tool), _digest(tool))


def _where(tool: Tool) -> str:
    """Return `module:name` of a tool's function, or of the tool itself. Raises UsageError."""
    function = inspect.unwrap(tool.invoke)
    module = getattr(function, "__module__", None) or ""
    name = getattr(function, "__qualname__", "")
    if module == "__main__":
        raise _stays(tool, "is a function of the notebook")
    if "<" in name or "." in name or not name:
        raise _stays(tool, "is not a function at the top level of a module")
    held = vars(sys.modules[module]) if module in sys.modules else {}
    for candidate in (name, *(key for key, value in held.items() if value is tool)):
        if candidate in held and _makes(held[candidate], tool):
            return f"{module}:{candidate}"
    raise _stays(tool, f"is not what {module}.{name} is")


def _makes(value: Any, tool: Tool) -> bool:
    try:
        return _same(as_tool(value), tool)
    except AgentError:
        return False


def _same(one: Tool, other: Tool) -> bool:
    """Return whether two tools are the same but for their names."""
    alike = all(getattr(one, field) == getattr(other, field) for field in _FIELDS)
    same = inspect.unwrap(one.invoke) == inspect.unwrap(other.invoke)
    return alike and same and _digest(one, "") == _digest(other, "")


def _digest(tool: Tool, name: str | None = None) -> str:
    spec = tool.spec
    return digest_value([spec.name if name is None else name, spec.description, spec.parameters])


def _stays(tool: Tool, why: str) -> UsageError:
    return UsageError(
        f"The tool {tool.name!r} {why}, and cannot travel to workers. Put it into a module that every worker can import,"
        " as a function at its top level, and import it from there; or map without client=."
    )


@mark_foreign
def import_attribute(module: str, name: str) -> Any:
    """Return what a module of the user has, wherever this process finds that module."""
    return getattr(importlib.import_module(module), name)
