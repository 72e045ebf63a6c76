"""The notebook's `agent.display.Presenter`, which `host.plugins` finds by name.

Why: an agent must not import the notebook, yet a cell shows the runs that its code awaits.
"""

from ..context import of_running_cell as context
from ..follow.awaited_source import screen as followed
from .awaited_run import host, screen
from .recording import begun
from .show_run import show

__all__ = ["begun", "context", "followed", "host", "screen", "show"]
