"""What a notebook does for runs that Python code awaits, as `agent.display` finds it by name.

Why: an agent knows no notebook; this is the other side of that door (`agent.display.Presenter`).
"""

from .awaited import screen as followed
from .recording import begun
from .shown import screen, show

__all__ = ["begun", "followed", "screen", "show"]
