"""Compute the digest of a tool's code with everything it uses from the notebook's project.

Why: a record is stale if the code that its tools use has changed. Why apart from `source`, whose
rules hold here too: the digests of earlier records must not change.

Rules
- The project begins at the nearest folder from the notebook's upwards that has a `pyproject.toml`
  or `.git`; without one it is the notebook's folder.
- A name that a module imports is followed to where it is assigned, through any number of modules;
  so are the names in that assignment, in defaults of arguments and in the body of a class.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
import sysconfig
import types
from collections.abc import Iterator, Sequence, Set
from functools import lru_cache
from pathlib import Path
from typing import Any

from .covered_code import CoveredCode
from .reads import MAIN
from .safe_types import is_a, module_name, read_class
from .source import CodeDigest, Search, digest_code
from .source_text import normalize_source, parse_source, read_module_source

# what the top folder of a project has
_MARKS = ("pyproject.toml", ".git")
_LIBRARY = Path(sysconfig.get_path("stdlib")).resolve()
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@lru_cache(64)
def find_project(folder: str | Path) -> Path:
    """Return the folder at which the project of a notebook's `folder` begins."""
    own = Path(folder).resolve()
    marked = (p for p in (own, *own.parents) if any((p / mark).exists() for mark in _MARKS))
    return next(marked, own)


class ProjectSearch(Search):
    """Walks from a function or piece of code to everything in the project that it names."""

    #: how the search reads a text; one that cannot be parsed is an empty module
    parse = staticmethod(parse_source)

    def __init__(self, folder: str | Path) -> None:
        super().__init__(
            Path(folder).resolve(), CoveredCode(find_project(folder), library=_LIBRARY)
        )
        self._bound: set[tuple[str, str]] = set()  # (module, name) whose assignment was looked up

    @classmethod
    def read(cls, function: Any, folder: str | Path, *, earlier: bool = False) -> CodeDigest:
        """Return the code of a function, as far as it is in `__main__` or the project of `folder`.

        `earlier`: use the rules of `source` instead.
        """
        if earlier:
            return digest_code(function, folder)
        search = cls(folder)
        search.add(function, "")
        return search.code

    def add_code(self, text: str, namespace: dict[str, Any]) -> None:
        """Add a piece of code that runs in `namespace`, and what it names."""
        self.texts.append(text)
        for name in sorted(_find_names(parse_source(text))):
            if name in namespace:
                self._add_named(name, namespace[name], text)
                if self._covered.defines(kind := type(namespace[name])):
                    self.add(kind, "")

    def _add_method(self, value: Any, name: str) -> None:
        super()._add_method(value, name)
        if is_a(value, types.MethodType):
            owner = value.__self__ if is_a(value.__self__, type) else type(value.__self__)
            if self._covered.defines(owner):
                self.add(owner, "")

    def _add_class(self, class_: type) -> None:
        super()._add_class(class_)
        module = sys.modules.get(module_name(class_))
        if not self._covered.defines(class_) or module is None:
            return
        text = read_module_source(module)
        qualname = read_class(class_, "__qualname__")
        for node in _find_class_definitions(parse_source(text), qualname):
            for statement in node.body:
                if not isinstance(statement, _SCOPES):
                    self._add_statement(module, text, statement)

    def _add_assignment(self, module: types.ModuleType | None, name: str) -> None:
        """Add the assignments of a module to a name, and follow imports of the name."""
        if module is None or module.__name__ == MAIN or (module.__name__, name) in self._bound:
            return
        self._bound.add((module.__name__, name))
        text = read_module_source(module) if self._covered.defines(module) else ""
        for node in _list_statements(parse_source(text).body):
            if isinstance(node, ast.ImportFrom):
                self._follow_import(module, node, name)
            elif not isinstance(node, _SCOPES) and name in _find_names(node, ast.Store):
                self._add_statement(module, text, node)

    def _add_statement(self, module: types.ModuleType, text: str, node: ast.stmt) -> None:
        """Add a statement of a module, and what it names."""
        segment = ast.get_source_segment(text, node) or ""
        self.texts.append(normalize_source(segment))
        self._add_names(_find_names(node), module.__dict__, module, segment)

    def _add_names(
        self, names: Set[str], space: dict[str, Any], module: types.ModuleType | None, text: str
    ) -> None:
        """Add what `names` stand for in the namespace `space`, and where `module` assigns them.

        `text`: the code in which the names occur.
        """
        for name in sorted(names & space.keys()):
            self._add_named(name, space[name], text)
            self._add_assignment(module, name)

    def _follow_import(self, module: types.ModuleType, node: ast.ImportFrom, name: str) -> None:
        """Follow a name to the module that it is imported from."""
        origin = sys.modules.get(_find_origin(node, module))
        for alias in node.names if origin is not None else ():
            if alias.name == "*" or (alias.asname or alias.name) == name:
                self._add_assignment(origin, name if alias.name == "*" else alias.name)

    def _add_defaults(self, function: types.FunctionType, text: str) -> None:
        """Add what the defaults of a function name."""
        module = sys.modules.get(str(function.__globals__.get("__name__")))
        for used in _find_default_names(text):
            self._add_names(used, function.__globals__, module, text)

    def _find_imported_files(self, text: str, module: types.ModuleType | None) -> Iterator[Path]:
        """Yield the files of the project that a function imports when it runs."""
        for node in _find_import_statements(text):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            else:
                origin = _find_origin(node, module)
                modules = [origin, *(f"{origin}.{alias.name}" for alias in node.names)]
            for name in filter(None, modules):
                yield from self._find_files(name)

    def _find_files(self, name: str) -> Iterator[Path]:
        """Yield the file of the module `name`, loaded or not, if the project has it."""
        loaded = getattr(sys.modules.get(name), "__file__", None)
        paths: list[Path] = []
        if isinstance(loaded, str):
            paths = [Path(loaded)]
        else:  # where Python would look
            for base in (self._folder, *map(Path, sys.path)):
                stem = base.joinpath(*name.split("."))
                paths += (stem.with_suffix(".py"), stem / "__init__.py")
        yield from [p for p in paths if self._covered.has_file(p.resolve()) and p.is_file()][:1]


def _find_origin(node: ast.ImportFrom, module: types.ModuleType | None) -> str:
    """Return the full name of the module that a statement imports from, "" if it is unknown."""
    if not node.level:
        return node.module or ""
    package = getattr(module, "__package__", None)
    try:
        return importlib.util.resolve_name("." * node.level + (node.module or ""), package or "")
    except ImportError:
        return ""


def _list_statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, those below `if`, `try` and the like too."""
    for node in body:
        # blocks stand in the statement itself, in its `except` handlers and in its `case`s
        owners = (node, *getattr(node, "handlers", []), *getattr(node, "cases", []))
        fields = ("body", "orelse", "finalbody")
        blocks = [getattr(owner, field, []) for owner in owners for field in fields]
        if isinstance(node, _SCOPES) or not any(blocks):
            yield node
            continue
        for block in blocks:
            yield from _list_statements(block)


@lru_cache(64)
def _find_default_names(text: str) -> tuple[frozenset[str], ...]:
    """Return the names in the defaults of each list of arguments."""
    listed = (n for n in ast.walk(parse_source(text)) if isinstance(n, ast.arguments))
    values = ([*n.defaults, *filter(None, n.kw_defaults)] for n in listed)
    return tuple(frozenset().union(*map(_find_names, each)) for each in values if each)


@lru_cache(64)
def _find_import_statements(text: str) -> tuple[ast.Import | ast.ImportFrom, ...]:
    return tuple(
        n for n in ast.walk(parse_source(text)) if isinstance(n, ast.Import | ast.ImportFrom)
    )


def _find_names(node: ast.AST, context: type[ast.expr_context] = ast.Load) -> set[str]:
    """Return the names that a piece of code reads; with the context Store, those it assigns."""
    names = (n for n in ast.walk(node) if isinstance(n, ast.Name))
    return {n.id for n in names if isinstance(n.ctx, context)}


def _find_class_definitions(tree: ast.Module, qualname: str) -> Iterator[ast.ClassDef]:
    """Yield the definitions of the class of this qualified name in a module."""
    body: Sequence[ast.stmt] = tree.body
    *outer, last = qualname.split(".")
    for name in outer:
        body = next((n.body for n in _list_classes(body) if n.name == name), [])
    yield from (n for n in _list_classes(body) if n.name == last)


def _list_classes(body: Sequence[ast.stmt]) -> Iterator[ast.ClassDef]:
    return (n for n in _list_statements(body) if isinstance(n, ast.ClassDef))
