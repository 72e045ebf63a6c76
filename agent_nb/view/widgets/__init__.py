"""Nodes → ipywidgets, changing only what changed.

Why: a replaced widget loses its scroll position, its focus and whether it was open, and every
change is a message. Only this package imports ipywidgets; one thread paints. Read `slots` first.
"""

from .board import Board

__all__ = ["Board"]
