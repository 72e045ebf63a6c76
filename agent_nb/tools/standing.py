"""The tools that the user has allowed until the kernel restarts.

Why apart from a run's approvals: this is the one yes that outlives a run, so it stands where it can
be listed and taken back.

Rules
- Kept in this process only: in no file, no record, no event. A restart forgets it.
- A run whose conversation has turns of records that the user did not sign does not use it.
- It counts for the tool as it is: a tool of the same name with another effect, description or
  schema is asked about.
- Whoever answers from it has asked the policy first; calls of records that nobody trusts never get
  here (`tape`).
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
        """Take the permission back; return whether there was one."""
        with self._lock:
            return self._known.pop(name, None) is not None


def _mark(tool: Tool) -> str:
    return dumps([tool.effect, msgspec.to_builtins(tool.spec)])


STANDING = Standing()
