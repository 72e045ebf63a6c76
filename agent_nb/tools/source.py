"""Compute the digest of a tool's code: its function, and the notebook and folder code it uses.

Why: a replay takes the result of a tool from the record. A changed tool might return another
result, and `agent-nb test` reports that.

Rules
- What this file computes never changes: earlier records have these digests, in the field `code` of
  a tool. Newer records have the field `source` instead (`project_source`).
- The digest covers source text, never bytecode, which differs between versions of Python.
- Nothing is run or imported: values are read with `is_a`, `getattr_static` and `read_class`,
  because the ordinary ways may call code of an object or metaclass. Only a module with lazy loading
  is loaded, since its code counts.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from ..record import digest_value
from .covered_code import CoveredCode, find_module
from .reads import MAIN, find_global_names, list_closure
from .safe_types import is_a, read_class
from .source_text import (
    find_attributes,
    normalize_source,
    parse_source,
    read_module_source,
    read_source,
)

_CONSTANTS = (bool, int, float, complex, str, bytes, type(None))
_LONGEST_CONSTANT = 200  # characters of a constant that the digest covers


class CodeDigest(msgspec.Struct, frozen=True):
    """The digest of a tool's code ("": none is visible), and the names of code outside it.

    Such code is that of packages, built-in tools and functions without source.
    """

    digest: str = ""
    unseen: tuple[str, ...] = ()


def digest_code(function: Any, folder: str | Path) -> CodeDigest:
    """Return the digest of a function by the rules of this file; `folder` is the notebook's."""
    root = Path(folder).resolve()
    search = Search(root, CoveredCode(root))
    search.add(function, "")
    return search.code


class Search:
    """Walks from one function to everything that it names; visits each value once.

    `texts`: the source texts that the digest covers. `unseen`: the names of code outside it. `add`
    passes a value to the method for its kind; `project_source` overrides some of these methods.
    """

    def __init__(self, folder: Path, covered: CoveredCode) -> None:
        self.texts: list[str] = []
        self.unseen: set[str] = set()
        self._folder = folder  # where the imports of functions are looked up
        self._covered = covered
        self._visited: dict[int, Any] = {}  # id -> the value, kept so that no id is reused

    @property
    def code(self) -> CodeDigest:
        """The digest of the texts, and what is unseen."""
        digest = digest_value(sorted(set(self.texts))) if self.texts else ""
        return CodeDigest(digest, tuple(sorted(self.unseen)))

    def add(self, value: Any, name: str) -> None:
        """Add the text of `value`, known as `name`, and of the code that this text names."""
        if id(value) in self._visited:
            return
        self._visited[id(value)] = value
        for kinds, add in self._kinds:
            if is_a(value, kinds):
                add(value, name)
                return
        if (wrapped := inspect.getattr_static(value, "__wrapped__", None)) is not None:
            self.add(wrapped, name)
        elif callable(value) and self._covered.defines(type(value)):
            self._add_class(type(value))

    @property
    def _kinds(self) -> tuple[tuple[Any, Callable[[Any, str], None]], ...]:
        """The kinds of values and the methods that add them; the first kind that fits is used."""
        return (
            (functools.partial, self._add_partial),
            (types.MethodType | staticmethod | classmethod, self._add_method),
            (property, self._add_property),
            (types.FunctionType, self._add_function),
            (type, lambda value, name: self._add_class(value)),
            (types.ModuleType, self._add_module),
            (types.BuiltinFunctionType, self._add_unseen),
        )

    def _add_partial(self, value: Any, name: str) -> None:
        self.add(value.func, name)
        for bound in (*value.args, *value.keywords.values()):
            self._add_constant(bound)

    def _add_method(self, value: Any, name: str) -> None:
        self.add(value.__func__, name)

    def _add_property(self, value: Any, name: str) -> None:
        for accessor in filter(None, (value.fget, value.fset)):
            self.add(accessor, name)

    def _add_function(self, function: types.FunctionType, name: str) -> None:
        """Add a function, and the function that it wraps; of a library's only the wrapped one."""
        is_covered = self._covered.defines(function)
        wrapped = function.__dict__.get("__wrapped__")
        if is_covered and not self._add_source(function):
            self.unseen.add(name or function.__qualname__)
        elif wrapped is not None:
            self.add(wrapped, name)
        elif not is_covered:
            self._add_unseen(function, name)

    def _add_source(self, function: types.FunctionType) -> bool:
        """Add the source of a function and what it names; return whether it has a source."""
        text = read_source(function)
        if text:
            self.texts.append(text)
            self._add_used(function, text)
            self._add_defaults(function, text)
        return bool(text)

    def _add_used(self, function: types.FunctionType, text: str) -> None:
        """Add the globals, closure variables and imports of a function with the source `text`."""
        module = sys.modules.get(find_module(function))
        for used in sorted(set(find_global_names(function.__code__))):
            if used in function.__globals__:
                self._add_named(used, function.__globals__[used], text)
                self._add_assignment(module, used)
        for used, value in list_closure(function):
            self._add_constant(value)
            self._add_named(used, value, text)
        for path in self._find_imported_files(text, module):
            self._add_file(path)

    def _add_named(self, name: str, value: Any, text: str) -> None:
        """Add the value of `name` in `text`; of a module only the attributes that the text uses."""
        if not is_a(value, types.ModuleType):
            self.add(value, name)
            return
        attributes = sorted(find_attributes(text, name))
        if not self._covered.defines(value):
            self.unseen |= {f"{value.__name__}.{each}" for each in attributes} or {value.__name__}
            return
        for attribute in attributes:
            self.add(inspect.getattr_static(value, attribute, None), f"{name}.{attribute}")
            self._add_assignment(value, attribute)

    def _add_class(self, class_: type) -> None:
        own_name = read_class(class_, "__name__")
        if not self._covered.defines(class_):
            self._add_unseen(class_, own_name)
            return
        for base in read_class(class_, "__bases__"):
            if base is not object:
                self.add(base, "")
        for name, member in sorted(read_class(class_, "__dict__").items()):
            if is_a(member, types.FunctionType | staticmethod | classmethod | property | type):
                self.add(member, f"{own_name}.{name}")
            elif not name.startswith("__"):
                self._add_constant(member)

    def _add_module(self, module: types.ModuleType, name: str) -> None:
        if self._covered.defines(module) and module.__file__:
            self._add_file(Path(module.__file__))
        else:
            self.unseen.add(name)

    def _add_file(self, path: Path) -> None:
        """Add the text of a whole file."""
        try:
            self.texts.append(normalize_source(path.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError):
            self.unseen.add(path.name)

    def _add_assignment(self, module: types.ModuleType | None, name: str) -> None:
        """Add the source of a module's assignment to `name`, but not its value, which may change.

        Assignments of the notebook are not added: they are notebook variables.
        """
        if module is None or module.__name__ == MAIN:
            return
        text = read_module_source(module)
        for node in parse_source(text).body:
            targets: list[ast.expr] = []
            if isinstance(node, ast.Assign):
                targets = node.targets
            elif isinstance(node, ast.AnnAssign):
                targets = [node.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                self.texts.append(normalize_source(ast.get_source_segment(text, node) or ""))

    def _add_defaults(self, function: types.FunctionType, text: str) -> None:
        """Add what the defaults of a function name: nothing by the rules of this file."""

    def _find_imported_files(self, text: str, module: types.ModuleType | None) -> Iterator[Path]:
        """Yield the files of the folder that a function imports when it runs."""
        for node in ast.walk(parse_source(text)):
            modules: list[str] = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules = [node.module]
            for imported in modules:
                base = self._folder.joinpath(*imported.split("."))
                files = (base.with_suffix(".py"), base / "__init__.py")
                yield from [f for f in files if f.is_file()][:1]

    def _add_unseen(self, value: Any, name: str) -> None:
        """Add the name of code that the digest does not cover: a function or class."""
        qualname = read_class(value, "__qualname__") if is_a(value, type) else value.__qualname__
        module, qualified = find_module(value), qualname or name
        if module != "builtins" and qualified:
            self.unseen.add(f"{module}.{qualified}" if isinstance(module, str) else str(qualified))

    def _add_constant(self, value: Any) -> None:
        if is_a(value, _CONSTANTS):
            self.texts.append(repr(value)[:_LONGEST_CONSTANT])
