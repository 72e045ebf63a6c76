"""Find a plug-in by its room and name: a file of that name in the room, or an entry point.

Why: a new provider, dialect, codec, tool or card is one file, with no registry to edit. The public name of a plug-in is its file
name with `-` for `_`; the module offers it under the room's attribute (`ATTRIBUTE`).

Rules: a file is a plug-in if it defines that attribute at its left margin, else it is machinery of the room;
nothing is imported until it is asked for; the built-in file wins over an entry point of the same name;
an unknown name is a UsageError that lists the known ones.
"""

from __future__ import annotations

import importlib
import re
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from .errors import UsageError

ATTRIBUTE = {"models": "provider", "dialects": "dialect", "codecs": "codec", "tools": "tools", "view.cards": "card"}
@cache
def builtin(room: str) -> dict[str, str]:
    """Return public name -> module name of the plug-in files in `room` (for example `"models"`)."""
    package = importlib.import_module(f"agent_nb.{room}")
    folder = Path(str(package.__file__)).parent
    offers = re.compile(rf"^(def {ATTRIBUTE[room]}\(|{ATTRIBUTE[room]}\s*[:=])", re.MULTILINE)
    files = [f for f in sorted(folder.glob("*.py")) if offers.search(f.read_text(encoding="utf-8"))]
    return {f.stem.replace("_", "-"): f"agent_nb.{room}.{f.stem}" for f in files}


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
