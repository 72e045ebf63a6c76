"""The door of a room (a subpackage): its `__init__` offers names, and loads each on first use.

    if TYPE_CHECKING:
        from .frames import Frames as Frames      # for type checkers and editors
    _NAMES = {"frames": "Frames"}                 # for Python: file -> the names that it defines
    __getattr__, __dir__ = open_door(__name__, _NAMES)

Other rooms import from the door alone, so the files behind it may change freely. A plain list of
imports would load pandas, httpx and widgets with the first name. A file never imports from the
door of its own room. The door stores no loaded name, so that a test can replace one in its file.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def open_door(
    package: str, files: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and the `__dir__` of a package that offers the names in `files`.

    `files`: module, relative to the package (`map.options`) -> the names that it defines, with
    spaces between them.
    """
    paths = {name: f"{package}.{file}" for file, names in files.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in paths:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        module = sys.modules.get(paths[name])
        # `import_module`, which is slow for functions that every cell calls, waits for a module
        # that another thread is loading
        if module is None or getattr(module.__spec__, "_initializing", True):
            module = importlib.import_module(paths[name])
        return getattr(module, name)

    return get, lambda: sorted(paths)
