"""The version of this package. Here, since no module may import it from `agent_nb/__init__.py`."""

from __future__ import annotations

__version__ = "0.1.0"
