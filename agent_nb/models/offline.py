"""Which models may be asked where nothing runs live: only scripts, as they always say the same.

Rules: `Scripted` registers itself in `SCRIPTS`. A subclass may call anything and does not count.
"""

from __future__ import annotations

from typing import Any

SCRIPTS: list[type] = []


def is_script(model: Any) -> bool:
    """Return whether a model is exactly `Scripted`, which only plays its script."""
    return any(type(model) is script for script in SCRIPTS)
