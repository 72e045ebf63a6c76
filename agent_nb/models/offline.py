"""Which models may run where live runs are forbidden: only scripts, which never vary.

In CI a model that costs money, or answers differently each time, must not run by mistake.
`Scripted` registers itself in `SCRIPTS`, so that this check imports no provider.
"""

from __future__ import annotations

from typing import Any

SCRIPTS: list[type] = []  # the class `Scripted`, once its module is imported


def is_script(model: Any) -> bool:
    """Return whether a model is exactly `Scripted`, which only plays its script.

    Subclasses do not count, because their code may call anything.
    """
    return any(type(model) is script for script in SCRIPTS)
