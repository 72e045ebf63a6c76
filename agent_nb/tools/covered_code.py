"""Which code the digest of a tool covers: that of the notebook and of files below its folder.

Why: a tool changes when the user changes code of the project. Packages change with their versions:
their code, and this package's, is not covered, even below that folder.
"""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import msgspec

from .reads import MAIN
from .safe_types import is_a, module_name

_SITES = ("site-packages", "dist-packages")
_OURS = __name__.partition(".")[0]


class CoveredCode(msgspec.Struct, frozen=True):
    """The code that a digest covers.

    `root`: the folder of its files, resolved. `library`: the folder of the standard library, whose
    code is not covered; None: no file counts as one of it.
    """

    root: Path
    library: Path | None = None

    def has_file(self, path: Path) -> bool:
        """Return whether the code of a file, a resolved path, is covered."""
        if self.library is not None and path.is_relative_to(self.library):
            return False
        return path.is_relative_to(self.root) and not any(part in _SITES for part in path.parts)

    def defines(self, value: Any) -> bool:
        """Return whether covered code defines a function, class, module or other value."""
        module = find_module(value)
        if not isinstance(module, str) or module.partition(".")[0] == _OURS:
            return False
        if module == MAIN:
            return True
        file = getattr(sys.modules.get(module), "__file__", None)
        return isinstance(file, str) and self.has_file(Path(file).resolve())


def find_module(value: Any) -> Any:
    """Return the name of the module that defines a value; a foreign object may name anything.

    A function's own `__module__` does not count: a wrapper copies that of its target.
    """
    if is_a(value, types.FunctionType):
        return value.__globals__.get("__name__")
    if is_a(value, type):
        return module_name(value)
    return value.__name__ if is_a(value, types.ModuleType) else getattr(value, "__module__", None)
