"""agent_nb: an `%%agent` cell magic that drives an LLM agent and records its run in the notebook.

Rules
- Public names are imported when they are first used: `%load_ext agent_nb` must not wait for pandas,
  httpx or a markdown parser.
- At import, `launch` reads the environment and removes the secret from it, and `install_guard`
  keeps the notebook's folder out of our imports.
- `name_presenter` says which module shows runs: agents stand below the notebook, and do not import
  it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .agent.presenter import name_presenter as _name_presenter
from .host import launch as launch  # imported for its effect
from .host.imports import install_guard as _install
from .host.version import __version__ as __version__

if TYPE_CHECKING:
    from .agent.parse import parse as parse
    from .agent.run import Run as Run
    from .agent.stream import Stream as Stream
    from .codecs.convert import decode as decode
    from .codecs.convert import encode as encode
    from .errors import RunFailed as RunFailed
    from .events.columns import CALLS as CALLS
    from .events.columns import EVENTS as EVENTS
    from .events.columns import RUNS as RUNS
    from .events.columns import TURNS as TURNS
    from .events.log import EventLog as EventLog
    from .events.tool_events import adapt_tool_event as adapt_tool_event
    from .external.attached_run import attach as attach
    from .external.watched_run import watch as watch
    from .models.scripted import Scripted as Scripted
    from .rows.agent import Agent as Agent
    from .rows.eval.comparison import compare as compare
    from .rows.recorded_runs import runs as runs
    from .server.serve import serve as serve
    from .tools.base import Pictured as Pictured
    from .tools.base import ToolContext as ToolContext
    from .tools.decorator import tool as tool
    from .tools.mcp.server import mcp_server as mcp_server

_install()
_name_presenter("agent_nb.notebook.presenter")

# public name: the module, below this package, that defines it
_WHERE = {
    "Agent": "rows.agent",
    "Stream": "agent.stream",
    "Run": "agent.run",
    "RunFailed": "errors",
    "EventLog": "events.log",
    "Scripted": "models.scripted",
    "Pictured": "tools.base",
    "ToolContext": "tools.base",
    "tool": "tools.decorator",
    "mcp_server": "tools.mcp.server",
    "adapt_tool_event": "events.tool_events",
    "parse": "agent.parse",
    "compare": "rows.eval.comparison",
    "runs": "rows.recorded_runs",
    "EVENTS": "events.columns",
    "CALLS": "events.columns",
    "TURNS": "events.columns",
    "RUNS": "events.columns",
    "decode": "codecs.convert",
    "encode": "codecs.convert",
    "attach": "external.attached_run",
    "serve": "server.serve",
    "watch": "external.watched_run",
}

__all__ = [*_WHERE, "load_ipython_extension", "unload_ipython_extension"]  # noqa: PLE0604  (names of the table above)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_WHERE[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})


def load_ipython_extension(shell: Any) -> None:
    """Register `%%agent` and `%agent` (IPython calls this on `%load_ext agent_nb`)."""
    from .notebook.magic import load_magics

    load_magics(shell)


def _guard_hosts(shell: Any) -> None:
    """Make each cell of a test fail that sends a request to a host of models."""
    from .notebook.cell.refusing import guard_hosts

    guard_hosts(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Undo everything that `load_ipython_extension` registered."""
    from .notebook.magic import unload_magics

    unload_magics(shell)
