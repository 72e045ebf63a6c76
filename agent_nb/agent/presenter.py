"""The presenter: the module that shows and records runs in a notebook (`agent.display.Presenter`).

Agents stand below the notebook and never import it. `agent_nb/__init__.py`, which stands above
agents and notebook, names the module; it is imported when a run first needs it.
"""

from __future__ import annotations

import importlib
from typing import Any

_MODULE_NAME: list[str] = []  # one name, or none yet


def name_presenter(module: str) -> None:
    """Make `module` the presenter of this process, by its dotted name."""
    _MODULE_NAME[:] = [module]


def load_presenter() -> Any:
    """Import the presenter that `name_presenter` named, and return it."""
    return importlib.import_module(_MODULE_NAME[0])
