"""The tools that the user has allowed for this notebook: until its kernel restarts.

Why separate from a run's approvals: only this permission outlives a run, so it can be listed and
revoked.

Rules
- Kept only in this process: in no file, record or event. A restart forgets it.
- A run whose conversation has turns from records that the user did not sign does not use it.
- It holds for the tool as it is: with another effect, description or schema the user is asked.
- The policy is consulted first; calls of untrusted records never get here (`agent.tape`).
"""

from __future__ import annotations

import threading

import msgspec

from ..wire.json_text import dumps
from .base import Tool


class Standing:
    """Tools that are allowed, by name. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, str] = {}

    @property
    def names(self) -> list[str]:
        """The names of the tools, sorted."""
        with self._lock:
            return sorted(self._known)

    def allow(self, tool: Tool) -> None:
        """Allow a tool from now on."""
        with self._lock:
            self._known[tool.name] = _mark(tool)

    def allows(self, tool: Tool) -> bool:
        """Return whether the user has allowed this tool."""
        with self._lock:
            return self._known.get(tool.name) == _mark(tool)

    def revoke(self, name: str) -> bool:
        """Revoke the permission; return whether there was one."""
        with self._lock:
            return self._known.pop(name, None) is not None


def _mark(tool: Tool) -> str:
    return dumps([tool.effect, msgspec.to_builtins(tool.spec)])


STANDING = Standing()
