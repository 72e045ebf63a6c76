"""What a notebook does for runs that Python code awaits, as `agent.display` finds it by name.

Why: an agent knows no notebook; this is the other side of that door (`agent.display.Presenter`).
"""

from ..follow.awaited_source import screen as followed
from .awaited_run import screen
from .recording import begun
from .show_run import show

__all__ = ["begun", "followed", "screen", "show"]
