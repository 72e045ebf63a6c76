"""Finds a plug-in by room and name: a file or package of the room, or an entry point.

A new provider, dialect, codec, tool or card is one file or package, with no registry to edit. A
room is a subpackage of agent_nb, such as `models` or `view.cards`.

Rules
- A built-in plug-in has the name of its file with `-` for `_`. The file offers it under the room's
  attribute (`ATTRIBUTE`), at its left margin; files without that are other code of the room.
- A built-in plug-in wins over an entry point of the same name.
- An installed plug-in that fails raises a PluginError that names its package, and does not disturb
  the others.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from ..errors import AgentError, PluginError, UsageError, unknown_name
from .entry_points import list_entry_points

ATTRIBUTE = {  # room -> the attribute by which a file offers its plug-in
    "models": "provider",
    "dialects": "dialect",
    "codecs": "codec",
    "tools": "tools",
    "view.cards": "card",
}
_FUNCTIONS = ("models", "view.cards")  # rooms whose plug-ins are functions
_MEMBERS = {  # room -> the members that its plug-in objects must have, with spaces between
    "dialects": "name native instructions shots grammar parser assistant results",
    "codecs": "name forms sniff decoder encoder",
}
_LONGEST_REASON = 300  # characters that a PluginError quotes of a plug-in's error


@cache
def list_builtin(room: str) -> dict[str, str]:
    """Return public name -> module name of the built-in plug-ins of `room` (such as "models")."""
    package = importlib.import_module(f"agent_nb.{room}")
    folder = Path(str(package.__file__)).parent
    name = ATTRIBUTE[room]
    # the text is searched, because importing every plug-in would load every library
    offers = re.compile(rf"^(def {name}\(|{name}\s*[:=]|from \.\w+ import {name}\b)", re.MULTILINE)
    files = {f.stem: f for f in folder.glob("*.py") if f.stem != "__init__"}
    files |= {f.parent.name: f for f in folder.glob("*/__init__.py")}
    stems = [n for n, f in sorted(files.items()) if offers.search(f.read_text(encoding="utf-8"))]
    return {stem.replace("_", "-"): f"agent_nb.{room}.{stem}" for stem in stems}


def list_plugins(room: str) -> list[str]:
    """Return the names of all plug-ins of `room`, built-in and installed."""
    return sorted({*list_builtin(room), *(e.name for e in _list_entries(room))})


def load_plugin(room: str, name: str) -> Any:
    """Return the plug-in `name` of `room`.

    Raises UsageError for an unknown name, PluginError if the plug-in cannot be used.
    """
    module = list_builtin(room).get(name.replace("_", "-"))
    if module is not None:
        return getattr(importlib.import_module(module), ATTRIBUTE[room])
    for entry in _list_entries(room):
        if entry.name == name:
            with blame_plugin(room, name):
                return _check_plugin(room, entry.load())
    raise UsageError(unknown_name(f"{_name_kind(room)} named", name, list_plugins(room)))


@contextmanager
def blame_plugin(room: str, name: str) -> Iterator[None]:
    """Turn an exception of an installed plug-in into a PluginError that names its package.

    AgentErrors pass unchanged: they say what to do.
    """
    try:
        yield
    except AgentError:
        raise
    except (Exception, SystemExit) as error:
        if name.replace("_", "-") in list_builtin(room):
            raise
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST_REASON]
        entry = next((e for e in _list_entries(room) if e.name == name), None)
        package = getattr(getattr(entry, "dist", None), "name", None)
        whose = advice = ""
        if package:
            whose = f" of the package {package}"
            advice = f" Update it with: pip install --upgrade {package}, or remove it with: pip uninstall {package}"
        raise PluginError(
            f"The {_name_kind(room)} {name!r}{whose} cannot be used: {reason}.{advice}"
        ) from error


def find_faults(room: str, use: Callable[[str], Any] | None = None) -> Iterator[str]:
    """Yield a message for each installed plug-in of a room that fails.

    `use` is called with the plug-in's name; without `use`, the plug-in is only loaded.
    """
    use = use if use is not None else partial(load_plugin, room)
    for entry in _list_entries(room):
        try:
            use(entry.name)
        except AgentError as fault:
            yield str(fault)


def _check_plugin(room: str, plugin: Any) -> Any:
    """Return the plug-in if it has what the room needs.

    Raises TypeError if it is of the wrong kind, or what reading its members raises.
    """
    if room in _FUNCTIONS and not callable(plugin):
        raise TypeError(f"it is a {type(plugin).__name__}, not a function")
    for member in _MEMBERS.get(room, "").split():
        getattr(plugin, member)
    return plugin


def _name_kind(room: str) -> str:
    """Return the word for one plug-in of a room: `model`, `card`."""
    return room.rsplit(".", 1)[-1].removesuffix("s")


def _list_entries(room: str) -> list[Any]:
    """Return the entry points of other packages for a room; `view.cards` has the group `cards`."""
    return list_entry_points(f"agent_nb.{room.rsplit('.', 1)[-1]}")
