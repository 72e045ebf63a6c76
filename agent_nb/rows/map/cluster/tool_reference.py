"""References to the tools of a map by name, with which a worker in another process finds them.

A pickled function carries what it refers to: in a notebook that is everything, keys included.

Rule: the worker compares a digest of the tool's name, description and parameters. It does not
notice other code behind the same parameters.
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

INSTALLED = "tool"  # stands for the module before the name of a built-in or installed tool
#: Fields that two Tools must share to be the same tool, beside function, description, parameters.
_COMPARED_FIELDS = ("effect", "timeout", "thread", "command", "each", "context_parameter")
_KERNEL = ("python", "variables", "add_cell")  # built-in tools that need the notebook's kernel


class ToolReference(msgspec.Struct, frozen=True):
    """A tool called `name`, found at `where` (`module:name`); `digest`: see `_digest_tool`."""

    name: str
    where: str
    digest: str


def make_references(tools: Toolset) -> tuple[ToolReference, ...]:
    """Return the references to all tools.

    A tool travels as the name of a built-in or installed tool, or as `module:name` of a function
    or Tool at the top level of an importable module. Raises UsageError for any other tool.
    """
    if tools.late:
        names = ", ".join(reference.name for reference in tools.late)
        raise UsageError(
            f"Tools of MCP servers do not travel to workers ({names}). Leave them out, or map without client=."
        )
    return tuple(ToolReference(tool.name, _locate_tool(tool), _digest_tool(tool)) for tool in tools)


def find_tool(reference: ToolReference) -> Tool:
    """Return the tool in this process. Raises UsageError if it is missing or differs here."""
    module, _, name = reference.where.partition(":")
    try:
        if module == INSTALLED:
            imported = Toolset.installed()[name]
        else:
            imported = as_tool(import_attribute(module, name))
    except AgentError as fault:
        raise UsageError(f"The tool {reference.name!r} cannot be made: {fault}") from None
    except Exception as fault:  # importing a module may raise anything
        raise UsageError(
            f"The tool {reference.name!r} cannot be imported here ({type(fault).__name__}: {fault})."
            f" Install {module} on every worker, or send it: client.upload_file('{module.partition('.')[0]}.py')."
        ) from None
    spec = msgspec.structs.replace(imported.spec, name=reference.name)
    tool = msgspec.structs.replace(imported, spec=spec)
    if _digest_tool(tool) != reference.digest:
        raise UsageError(
            f"The tool {reference.name!r} is another one here: {reference.where} has other parameters or another description."
            " Install the same version of it on every worker."
        )
    return tool


def _locate_tool(tool: Tool) -> str:
    """Return where a worker finds a tool: `module:name`. Raises UsageError, with the reason."""
    if tool.agent is not None:
        raise _make_refusal(tool, "is an agent, which may hold keys")
    if tool.name in _KERNEL or (tool.declared and tool.uses_kernel):
        raise _make_refusal(tool, "lives in the kernel")
    if _makes_same_tool(Toolset.installed().get(tool.name), tool):
        return f"{INSTALLED}:{tool.name}"
    function = inspect.unwrap(tool.invoke)
    module = getattr(function, "__module__", None) or ""
    name = getattr(function, "__qualname__", "")
    if module == "__main__":
        raise _make_refusal(tool, "is a function of the notebook")
    if "<" in name or "." in name or not name:
        raise _make_refusal(tool, "is not a function at the top level of a module")
    members = vars(sys.modules[module]) if module in sys.modules else {}
    # a Tool may stand under another name than its function
    for candidate in (name, *(key for key, value in members.items() if value is tool)):
        if _makes_same_tool(members.get(candidate), tool):
            return f"{module}:{candidate}"
    raise _make_refusal(tool, f"is not what {module}.{name} is")


def _make_refusal(tool: Tool, reason: str) -> UsageError:
    return UsageError(
        f"The tool {tool.name!r} {reason}, and cannot travel to workers. Put it into a module that every worker can import,"
        " as a function at its top level, and import it from there; or map without client=."
    )


def _makes_same_tool(value: Any, tool: Tool) -> bool:
    """Return whether a value of a module becomes the same tool, perhaps with another name."""
    try:
        other = as_tool(value)
    except AgentError:
        return False
    return (
        all(getattr(tool, field) == getattr(other, field) for field in _COMPARED_FIELDS)
        and inspect.unwrap(tool.invoke) == inspect.unwrap(other.invoke)
        and tool.spec.description == other.spec.description
        and tool.spec.parameters == other.spec.parameters
    )


def _digest_tool(tool: Tool) -> str:
    return digest_value([tool.name, tool.spec.description, tool.spec.parameters])


@mark_foreign
def import_attribute(module: str, name: str) -> Any:
    """Return an attribute of a module, which may be the user's own code."""
    return getattr(importlib.import_module(module), name)
