"""The version of this package, as messages between processes and reports carry it.

Why here: rooms of all floors use it, and nothing below the face may import the face.
"""

from __future__ import annotations

__version__ = "0.1.0"
