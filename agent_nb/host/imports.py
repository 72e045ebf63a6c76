"""Keeps this package's own imports from resolving in the notebook's folder.

A kernel has the notebook's folder on `sys.path`, before the installed packages. A `keyring.py`
beside a stranger's notebook would run, unseen, when this package imports keyring.

Rules
- The user's imports stay as they are. An import is the user's or ours by the first frame up the
  call stack that is one of both. The user's frames are `__main__`, modules of the project, and our
  functions that run foreign code (`mark_foreign`).
- What the user has imported from the project stays in `sys.modules`, even under the name of a
  library. `import_library` and `find_library` then treat the library as absent;
  `verify_libraries` reports it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.machinery import ModuleSpec, PathFinder
from types import CodeType, FrameType, ModuleType
from typing import Any, TypeVar

from ..errors import UsageError
from .import_places import Places

F = TypeVar("F", bound=Callable[..., Any])
OURS = "agent_nb"
# libraries that `verify_libraries` looks at; all are required ones
NEEDED = (
    "IPython", "anyio", "httpx", "ipykernel", "ipywidgets", "markdown_it", "msgspec", "nbclient",
    "nbformat", "nh3", "numpy", "pandas", "platformdirs", "pydantic", "pygments", "yaml",
)  # fmt: skip
_swapping = threading.RLock()  # held while `sys.path` is replaced
_replaced: list[list[str]] = []  # the paths to put back, the outermost first
# id -> code of a function marked as foreign; no set, as a code object's hash reads all constants
_foreign: dict[int, CodeType] = {}


def mark_foreign(function: F) -> F:
    """Mark a function of ours that calls foreign code: imports of that code are not ours."""
    _foreign[id(function.__code__)] = function.__code__
    return function


class Guard:
    """The finder for our imports; the working folder at its creation also counts as a project."""

    def __init__(self) -> None:
        self._start = _read_folder()
        # `sys.path` and the working folder for which `_places` was made
        self._state: tuple[Sequence[str], str] = ((), "")
        self._places = Places((), ())

    def places(self) -> Places:
        """Return the places for the current `sys.path` and working folder."""
        state = ([entry for entry in sys.path if isinstance(entry, str)], _read_folder())
        if state != self._state:
            self._places = Places(state[0], [f for f in {self._start, state[1]} if f])
            self._state = state
        return self._places

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module that this package imports.

        None for imports by other code, for modules within an ordinary package, and if no finder
        finds the module. Raises ModuleNotFoundError for a module that only the project has.
        """
        if (
            name.startswith(f"{OURS}.")
            # a submodule of an ordinary package is found in the folder of that package
            or (path is not None and not _is_namespace_part(name))
            or not self._is_ours(sys._getframe(1))  # noqa: SLF001
        ):
            return None
        places = self.places()
        if path is None:
            spec, refused = self._search(name, target), places.rest
        else:
            package = name.rpartition(".")[0]
            refused = [p for p in path if places.is_in_project(package, p)]
            spec = PathFinder.find_spec(name, [p for p in path if p not in refused], target)
        if spec is None and (hidden := PathFinder.find_spec(name, refused, target)) is not None:
            message = f"No module named {name!r} is installed; agent_nb does not import {_locate(hidden)} of the notebook's folder"
            raise ModuleNotFoundError(message, name=name)
        return spec

    def _search(self, name: str, target: ModuleType | None) -> ModuleSpec | None:
        """Return the first spec outside the project; ask the finders as the import system does."""
        places = self.places()
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, places.path if finder is PathFinder else None, target)
            # the finder of an editable installation, which names its folder
            editable = str(getattr(finder, "__module__", "")).startswith("__editable__")
            if spec is not None and (
                finder is PathFinder or editable or not places.is_in_project(name, _locate(spec))
            ):
                return spec
        return None

    def _is_ours(self, frame: FrameType | None) -> bool:
        """Return whether the first frame that is ours or the user's, from `frame` up, is ours."""
        places = self.places()
        while frame is not None:
            code, name = frame.f_code, str(frame.f_globals.get("__name__"))
            if name == "__main__" or id(code) in _foreign:
                return False
            if name == OURS or name.startswith(f"{OURS}."):
                return True
            if not code.co_filename.startswith("<") and places.is_in_project(
                name, code.co_filename
            ):
                return False
            frame = frame.f_back
        return False


def install_guard() -> None:
    """Put the finder before all others; a second call changes nothing."""
    if GUARD not in sys.meta_path:
        sys.meta_path.insert(0, GUARD)


def is_from_project(module: ModuleType) -> bool:
    """Return whether a module comes from the project. A module without a file does not."""
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    return isinstance(file, str) and GUARD.places().is_in_project(
        getattr(module, "__name__", ""), file
    )


def import_library(name: str) -> ModuleType | None:
    """Import and return the installed module `name`, or None. Raises what the module raises."""
    loaded = sys.modules.get(name)
    if loaded is not None:
        return None if is_from_project(loaded) else loaded
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as fault:
        # the module or its package is absent; a module that it needs in turn is another fault
        if fault.name and f"{name}.".startswith(f"{fault.name}."):
            return None
        raise


def find_library(name: str) -> ModuleSpec | None:
    """Return the spec of the installed module `name`, or None, without importing it."""
    loaded = sys.modules.get(name)
    if loaded is not None and is_from_project(loaded):
        return None
    with suppress(ImportError, ValueError):  # ValueError: a module without a spec
        return importlib.util.find_spec(name)
    return None


def verify_libraries() -> None:
    """Raise UsageError if a module of the project replaces a library that we need."""
    for name in NEEDED:
        module = sys.modules.get(name)
        if module is not None and is_from_project(module):
            location = getattr(module, "__file__", None) or name
            raise UsageError(
                f"The module {name!r} of this process is {location}, not the library. Rename that file and restart the kernel."
            )


@contextmanager
def without_project() -> Iterator[None]:
    """Limit `sys.path` to `import_places`, for a library that reads its own entry points.

    Other threads share `sys.path` and do not see the project meanwhile: keep the block short.
    """
    with _swapping:
        _replaced.append(sys.path)
        try:
            sys.path = list(GUARD.places().path)
            yield
        finally:
            sys.path = _replaced[-1]
            _replaced.pop()


def _end_swap() -> None:
    """End, in a forked child, what another thread has begun, which the child does not have."""
    if not _swapping._is_owned():  # type: ignore[attr-defined]  # noqa: SLF001
        _swapping._at_fork_reinit()  # type: ignore[attr-defined]  # noqa: SLF001
        sys.path = next(iter(_replaced), sys.path)
        _replaced.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_end_swap)


def _is_namespace_part(name: str) -> bool:
    """Return whether the parent of `name` is a namespace package, whose parts may lie anywhere."""
    parent = sys.modules.get(name.rpartition(".")[0])
    return parent is not None and getattr(parent, "__file__", None) is None


def _locate(spec: ModuleSpec) -> str:
    """Return the file of a module, or the folder of a namespace package."""
    path = spec.origin
    if not spec.has_location:
        path = next(iter(spec.submodule_search_locations or ()), None)
    return path or os.__file__  # built in or frozen


def _read_folder() -> str:
    """Return the working folder ("": it was deleted)."""
    try:
        return os.getcwd()
    except OSError:
        return ""


GUARD = Guard()
