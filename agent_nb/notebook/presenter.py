"""The notebook's implementation of `agent.display.Presenter`: this module itself.

Why: an agent must not import the notebook, yet a cell shows the runs that its code awaits. So
`agent_nb/__init__.py` names this module, and the agent imports it by that name when it is needed.
"""

from .cell.awaited_run import cell_host as host
from .cell.awaited_run import cell_screen as screen
from .cell.context import of_running_cell as context
from .cell.recording import begin_recording as begun
from .cell.show_run import display_run as show
from .follow.awaited_source import source_screen as followed

__all__ = ["begun", "context", "followed", "host", "screen", "show"]
