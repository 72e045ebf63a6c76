"""Load the tools that the command line of a server names: built-in tools and Python files."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import UsageError
from ..tools import Tool


def load_tools(references: Iterable[str]) -> list[Any]:
    """Return the names of built-in tools, and the tools or functions of files.

    A reference is the path of a `.py` file, or comma-separated names, which are not checked here.
    Raises UsageError if a file cannot be run or has no tools.
    """
    tools: list[Any] = []
    for text in references:
        if text.endswith(".py"):
            tools += _load_file(Path(text))
        else:
            tools += [name.strip() for name in text.split(",") if name.strip()]
    return tools


def _load_file(path: Path) -> list[Any]:
    """Return the tools of a Python file: those marked with `@tool`, else its own public functions.

    Imported tools count too. Raises UsageError if the file fails or has none.
    """
    names = vars(_execute(path))
    public = {name: value for name, value in names.items() if not name.startswith("_")}
    # a Tool, or a function to which `@tool` gave one
    marked = [v for v in public.values() if isinstance(getattr(v, "tool", v), Tool)]
    functions = [
        value
        for value in public.values()
        if inspect.isfunction(value) and value.__module__ == names["__name__"]  # not imported
    ]
    if not (marked or functions):
        raise UsageError(f"{path} has no tools: write functions in it, or mark them with @tool.")
    return marked or functions


def _execute(path: Path) -> ModuleType:
    """Return the module that a file defines; it stays in `sys.modules`, as dataclasses need it."""
    name = f"agent_nb_tools_{path.stem}"
    while name in sys.modules:  # of another file of this name
        name += "_"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise UsageError(f"There is no Python file {path}.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as fault:  # whatever the user's file raises
        del sys.modules[name]
        raise UsageError(f"{path} cannot be run: {type(fault).__name__}: {fault}") from fault
    return module
