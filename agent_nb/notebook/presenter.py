"""The notebook's `agent.display.Presenter`, which the face names (`host.presenter`).

Why: an agent must not import the notebook, yet a cell shows the runs that its code awaits.
"""

from .cell.awaited_run import host, screen
from .cell.context import of_running_cell as context
from .cell.recording import begun
from .cell.show_run import show
from .follow.awaited_source import screen as followed

__all__ = ["begun", "context", "followed", "host", "screen", "show"]
