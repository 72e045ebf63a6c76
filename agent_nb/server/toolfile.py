"""The tools of a server: names of built-ins, and Python files with tools.

Rules
- A file provides its tools (`@tool`) or, if it marks none, its public functions. It is run, since
  the user names it on the command line.
- A fault of a file is a UsageError that names it.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import UsageError
from ..tools import Tool


def load_tools(references: Iterable[str]) -> list[Any]:
    """Return the tools for comma-separated names and for files. Raises UsageError."""
    found: list[Any] = []
    for text in references:
        if text.endswith(".py"):
            found += from_file(Path(text))
        else:
            found += [name.strip() for name in text.split(",") if name.strip()]
    return found


def from_file(path: Path) -> list[Any]:
    """Return the tools of a Python file. Raises UsageError if it fails or has none."""
    names = vars(_module(path))
    public = {name: value for name, value in names.items() if not name.startswith("_")}
    marked = [
        value
        for value in public.values()
        if isinstance(value, Tool) or isinstance(getattr(value, "tool", None), Tool)
    ]
    plain = [
        value
        for value in public.values()
        if inspect.isfunction(value) and value.__module__ == names["__name__"]
    ]
    if not (marked or plain):
        raise UsageError(f"{path} has no tools: write functions in it, or mark them with @tool.")
    return marked or plain


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"agent_nb_tools_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise UsageError(f"There is no Python file {path}.")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as fault:  # whatever the user's file raises
        raise UsageError(f"{path} cannot be run: {type(fault).__name__}: {fault}") from fault
    return module
