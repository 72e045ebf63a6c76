"""The version of this package; nothing below the face may import the face for it."""

from __future__ import annotations

__version__ = "0.1.0"
