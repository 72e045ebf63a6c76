"""The names of the package that another file, or another room, uses.

Why: what a room offers is what others use of it. The fewer names cross, the less must be read
before one is changed.

Rules
- A name is a pair: the module that defines it, and its name there. Names that a door (a package's
  `__init__`) passes on count where they are defined.
- Of an imported module the attributes count that the file reads; the module itself does not.
- The face and `__main__` are in no room: what only they use does not cross.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from . import import_graph
from .import_graph import all_nodes, imported_names, modules, offered_names, parse_file, room

Name = tuple[str, str]
OUTSIDE = ("", "__main__")


def find_used_names(checkout: Path) -> dict[Name, set[str]]:
    """Return each name that is used outside its module, and the modules that use it."""
    known = modules(checkout)
    offers = offered_names(known)
    users: dict[Name, set[str]] = {}
    for user, path in known.items():
        for name in _names_in(user, path, known):
            users.setdefault(offers.get(name, name), set()).add(user)
    return users


def _names_in(user: str, path: Path, known: Mapping[str, Path]) -> Iterator[Name]:
    """Yield the names of other modules that a module uses, as it imports them."""
    aliases = {}
    for module, name, here in imported_names(user, path):
        if f"{module}.{name}" in known:
            aliases[here] = f"{module}.{name}"
        elif module in known:
            yield module, name
    for node in all_nodes(path):
        if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
            continue
        if node.value.id in aliases:
            yield aliases[node.value.id], node.attr


def select_crossing(users: Mapping[Name, Iterable[str]]) -> set[Name]:
    """Return the names that are used in another room than their own."""
    return {
        name
        for name, modules_ in users.items()
        if room(name[0]) and any(room(m) not in (*OUTSIDE, room(name[0])) for m in modules_)
    }


def select_functions(names: Iterable[Name], checkout: Path) -> set[Name]:
    """Return those names that are functions at the left margin of their module."""
    functions = {
        module: {
            node.name
            for node in parse_file(path).body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        for module, path in modules(checkout).items()
    }
    return {name for name in names if name[1] in functions.get(name[0], ())}


def find_visible_files(checkout: Path) -> set[str]:
    """Return the files that another room imports, or imports from, doors aside."""
    known = modules(checkout)
    files = {module for module, path in known.items() if not import_graph.is_door(path)}
    seen = {
        imported
        for user, path in known.items()
        for module, name, _ in imported_names(user, path)
        for imported in (module, f"{module}.{name}")
        if imported in files and room(user) not in OUTSIDE and room(imported) != room(user)
    }
    return {file for file in seen if room(file)}
