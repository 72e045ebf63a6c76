"""Nodes → ipywidgets, changing only what changed.

Why: the live view is redrawn many times a second; a widget that is made anew loses its place, its
focus and whether it was open, and every change is a message.

Rules: this package is the only place that imports ipywidgets; one thread paints.
"""

from .board import Board

__all__ = ["Board"]
