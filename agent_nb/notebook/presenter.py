"""The notebook's implementation of `agent.display.Presenter`: this module itself.

Why: an agent must not import the notebook, yet a cell shows the runs that its code awaits. So
`agent_nb/__init__.py` names this module, and the agent imports it by that name when it is needed.
"""

from .cell.awaited_run import find_cell_host as find_host
from .cell.awaited_run import make_cell_screen as make_screen
from .cell.context import gather_running_context as gather_context
from .cell.recording import begin_recording
from .cell.show_run import display_run as show_run
from .follow.awaited_source import source_screen as make_source_screen

__all__ = [
    "begin_recording", "find_host", "gather_context", "make_screen", "make_source_screen",
    "show_run",
]  # fmt: skip
