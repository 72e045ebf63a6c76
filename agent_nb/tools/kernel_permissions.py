"""The tools that the user has allowed for this notebook: until its kernel restarts.

Why separate from a run's approvals: only such a permission outlives a run, so users must be able to
list and revoke it. It is kept only in this process: in no file, record or event.

Rule: a run whose conversation has turns from records that the user did not sign uses no permission:
its Approver gets None (`agent.assembly`).
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import msgspec

from ..record import digest_value
from .base import Tool


class KernelPermissions:
    """Tools that are allowed, by name. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, str] = {}  # name of a tool -> its `mark` when it was allowed

    @staticmethod
    def mark(tool: Tool) -> str:
        """Return the digest of a tool as it is now; a remembered answer holds for it only.

        An MCP tool counts with its server and whether it may destroy; a Python tool with its
        function (`_describe_code`); an agent with its tools.
        """
        return digest_value(json.dumps(_describe_tool(tool, ()), default=str), 64)

    @property
    def names(self) -> list[str]:
        """The names of the tools, sorted."""
        with self._lock:
            return sorted(self._known)

    def allow(self, tool: Tool) -> None:
        """Allow a tool from now on."""
        with self._lock:
            self._known[tool.name] = self.mark(tool)

    def allows(self, tool: Tool) -> bool:
        """Return whether the user has allowed this tool."""
        with self._lock:
            known = self._known.get(tool.name)
        return known is not None and known == self.mark(tool)

    def revoke(self, name: str) -> bool:
        """Revoke the permission; return whether there was one."""
        with self._lock:
            return self._known.pop(name, None) is not None


def _describe_tool(tool: Tool, within: tuple[int, ...]) -> list[Any]:
    """Return all that a permission depends on: effect, `each`, schema, code or server, inner tools.

    `within`: ids of the agents already entered, so that a cycle ends.
    """
    spec = msgspec.to_builtins(tool.spec)
    behind = [tool.origin] if tool.origin else _describe_code(tool.invoke)
    agent = tool.agent
    tools = agent.tools if agent is not None and id(agent) not in within else ()
    below = [_describe_tool(each, (*within, id(agent))) for each in tools]
    return [tool.effect, tool.each, spec, behind, below]


def _describe_code(function: Any) -> list[str]:
    """Return a function's module, its name and the digest of its code ("": no code can be seen).

    The notebook's folder is not known here, so code below the current folder counts. After
    `os.chdir` the digest may change, and the user is asked again.
    """
    from .source import digest_code  # a kernel that is never asked does not need it

    named = function if hasattr(function, "__qualname__") else type(function)
    module, name = getattr(named, "__module__", ""), getattr(named, "__qualname__", "")
    return [str(module), str(name), digest_code(function, Path()).digest]


KERNEL_PERMISSIONS = KernelPermissions()
