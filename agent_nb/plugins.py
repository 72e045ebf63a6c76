"""Find a plug-in by its room and name: a file of that name in the room, or an entry point.

Why: a new provider, dialect, codec, tool or card is one file, with no registry to edit. The public name of a plug-in is its file
name with `-` for `_`; the module offers it under the attribute that the room's base module names (`ATTRIBUTE`).

Rules: nothing is imported until it is asked for; the built-in file wins over an entry point of the same name;
an unknown name is a UsageError that lists the known ones.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from .errors import UsageError

ATTRIBUTE = {"models": "provider", "dialects": "dialect", "codecs": "codec", "tools": "tools", "view.cards": "card"}
MACHINERY = {
    "models": {
        "base", "http", "faults", "body", "streaming", "calls", "chat", "chat_request", "responses", "responses_request",
        "messages_api", "messages_request", "choose", "keys", "config", "retry", "settings", "images", "llama",
    },  # fmt: skip
    "dialects": {"base", "markers", "calls", "render", "grammar"},
    "codecs": {"base", "framing", "detect", "correlate"},
    "tools": {"base", "schema", "decorator", "toolset", "approval", "runner", "policy", "paths", "results", "threads"},
    "view.cards": {"base", "common"},
}


@cache
def builtin(room: str) -> dict[str, str]:
    """Return public name -> module name of the plug-in files in `room` (for example `"models"`)."""
    package = importlib.import_module(f"agent_nb.{room}")
    folder = Path(str(package.__file__)).parent
    files = [m.name for m in pkgutil.iter_modules([str(folder)]) if m.name not in MACHINERY[room] and not m.name.startswith("_")]
    return {name.replace("_", "-"): f"agent_nb.{room}.{name}" for name in sorted(files)}


def names(room: str) -> list[str]:
    """Return the names of all plug-ins of `room`, built-in and installed."""
    return sorted({*builtin(room), *(e.name for e in _entries(room))})


def load(room: str, name: str) -> Any:
    """Return the plug-in `name` of `room`. Raises UsageError when there is none of that name."""
    module = builtin(room).get(name.replace("_", "-"))
    if module is not None:
        return getattr(importlib.import_module(module), ATTRIBUTE[room])
    for entry in _entries(room):
        if entry.name == name:
            return entry.load()
    kind = room.rsplit(".", 1)[-1].removesuffix("s")
    raise UsageError(f"There is no {kind} named {name!r}. Known: {', '.join(names(room))}.")


def _entries(room: str) -> list[Any]:
    return list(entry_points(group=f"agent_nb.{room.rsplit('.', 1)[-1]}"))
