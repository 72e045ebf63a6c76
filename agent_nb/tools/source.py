"""Compute the digest of a tool's code: its function, and the notebook and folder code it uses.

Why: a replay takes the result of a tool from the record. A changed tool might return another
result, and a test reports that.

Rules
- The rules of this file never change: earlier records have digests made by them, in the field
  `code` of a tool. Newer records have the field `source` instead (`project_source`).
- The digest covers source text, never bytecode, which differs between versions of Python.
- It covers what the function names, if `__main__` or a file below the notebook's folder defines it:
  functions, classes, closures and their constants, top-level assignments; no notebook variables.
- `unseen` lists the names of other code: packages, built-in tools, functions without source.
- Nothing is run or imported: values are read with `is_a` and `getattr_static`, and classes through
  the descriptors of `type`, because the ordinary ways may call code of an object or metaclass.
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
from .reads import MAIN, find_global_names, list_closure
from .safe_types import is_a
from .source_text import find_attributes, normalize_source, parse_source, read_source

_SITES = ("site-packages", "dist-packages")
_OURS = __name__.partition(".")[0]
_CONSTANT = (bool, int, float, complex, str, bytes, type(None))
_LONGEST = 200  # characters of a constant that the digest covers


class Code(msgspec.Struct, frozen=True):
    """The digest of a tool's code ("": none is visible), and the names of code outside it."""

    digest: str = ""
    unseen: tuple[str, ...] = ()


def code_of(function: Any, folder: str | Path) -> Code:
    """Return the Code of a function by the rules of this file; `folder` is the notebook's."""
    search = Search(Path(folder).resolve())
    search.add(function, "")
    return search.code


class Search:
    """Walks from one function to everything that it names; visits each value once.

    `texts`: the source texts that the digest covers. `unseen`: the names of code outside it. `add`
    passes a value to the method for its kind; `project_source` overrides some of these methods.
    """

    def __init__(self, folder: Path) -> None:
        self.texts: list[str] = []
        self.unseen: set[str] = set()
        # imports are looked up in `_folder`; the digest covers code below `_root`,
        # which `project_source` widens
        self._folder = self._root = folder
        self._visited: list[Any] = []

    @property
    def code(self) -> Code:
        """The digest of the texts, and what is unseen."""
        return Code(
            digest_value(sorted(set(self.texts))) if self.texts else "", tuple(sorted(self.unseen))
        )

    def add(self, value: Any, name: str) -> None:
        """Add the text of `value`, known as `name`, and of the code that this text names."""
        if any(value is visited for visited in self._visited):
            return
        self._visited.append(value)
        for kinds, add in self._kinds:
            if is_a(value, kinds):
                add(value, name)
                return
        if (wrapped := inspect.getattr_static(value, "__wrapped__", None)) is not None:
            self.add(wrapped, name)
        elif callable(value) and self._is_visible(type(value)):
            self._class(type(value))

    @property
    def _kinds(self) -> tuple[tuple[Any, Callable[[Any, str], None]], ...]:
        """The kinds of values and the methods that add them; the first kind that fits is used."""
        return (
            (functools.partial, self._partial),
            (types.MethodType | staticmethod | classmethod, self._method),
            (property, self._property),
            (types.FunctionType, self._function),
            (type, lambda value, name: self._class(value)),
            (types.ModuleType, self._module),
            (types.BuiltinFunctionType, self._note_unseen),
        )

    def _partial(self, value: Any, name: str) -> None:
        self.add(value.func, name)
        for bound in (*value.args, *value.keywords.values()):
            self._constant(bound)

    def _method(self, value: Any, name: str) -> None:
        self.add(value.__func__, name)

    def _property(self, value: Any, name: str) -> None:
        for accessor in filter(None, (value.fget, value.fset)):
            self.add(accessor, name)

    def _function(self, function: types.FunctionType, name: str) -> None:
        wrapped = function.__dict__.get("__wrapped__")
        if not self._is_visible(function):
            # the digest does not cover a library's wrapper, but perhaps the function inside
            (self._note_unseen if wrapped is None else self.add)(
                function if wrapped is None else wrapped, name
            )
            return
        text = read_source(function)
        if not text:
            self.unseen.add(name or function.__qualname__)
            return
        self.texts.append(text)
        module = sys.modules.get(_module_of(function))
        for used in sorted(set(find_global_names(function.__code__))):
            if used in function.__globals__:
                self._named(used, function.__globals__[used], text)
                self._assignment(module, used)
        for used, value in list_closure(function):
            self._constant(value)
            self._named(used, value, text)
        for path in self._imports(text, module):
            self._file(path)
        self._defaults(function, text)
        if wrapped is not None:
            self.add(wrapped, name)

    def _named(self, name: str, value: Any, text: str) -> None:
        """Add the value of `name` in `text`; of a module only the attributes that the text uses."""
        if is_a(value, types.ModuleType) and self._is_visible(value):
            for attribute in sorted(find_attributes(text, name)):
                self.add(inspect.getattr_static(value, attribute, None), f"{name}.{attribute}")
                self._assignment(value, attribute)
        elif is_a(value, types.ModuleType):
            self.unseen |= {
                f"{value.__name__}.{attribute}" for attribute in find_attributes(text, name)
            } or {value.__name__}
        else:
            self.add(value, name)

    def _class(self, class_: type) -> None:
        if not self._is_visible(class_):
            self._note_unseen(class_, class_.__name__)
            return
        for base in class_.__bases__:
            if base is not object:
                self.add(base, base.__name__)
        for name, member in sorted(type.__dict__["__dict__"].__get__(class_).items()):
            if is_a(member, types.FunctionType | staticmethod | classmethod | property | type):
                self.add(member, f"{class_.__name__}.{name}")
            elif not name.startswith("__"):
                self._constant(member)

    def _module(self, module: types.ModuleType, name: str) -> None:
        if self._is_visible(module) and module.__file__:
            self._file(Path(module.__file__))
        else:
            self.unseen.add(name)

    def _file(self, path: Path) -> None:
        """Add the text of a whole file."""
        try:
            self.texts.append(normalize_source(path.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError):
            self.unseen.add(path.name)

    def _assignment(self, module: types.ModuleType | None, name: str) -> None:
        """Add the source of a module's assignment to `name`, but not its value, which may change.

        Assignments of the notebook are not added: they are notebook variables.
        """
        file = getattr(module, "__file__", None)
        if module is None or module.__name__ == MAIN or not isinstance(file, str):
            return
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return
        for node in parse_source(text).body:
            single = [node.target] if isinstance(node, ast.AnnAssign) else []
            targets = node.targets if isinstance(node, ast.Assign) else single
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                self.texts.append(normalize_source(ast.get_source_segment(text, node) or ""))

    def _defaults(self, function: types.FunctionType, text: str) -> None:
        """Add what the defaults of a function name: nothing by the rules of this file."""

    def _imports(self, text: str, module: types.ModuleType | None) -> Iterator[Path]:
        """Yield the files of the folder that a function imports when it runs."""
        for node in ast.walk(parse_source(text)):
            modules = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules.append(node.module)
            for imported in modules:
                base = self._folder.joinpath(*imported.split("."))
                files = (base.with_suffix(".py"), base / "__init__.py")
                yield from [f for f in files if f.is_file()][:1]

    def _is_visible(self, value: Any) -> bool:
        """Return whether `value` is defined in the notebook or its folder."""
        module = _module_of(value)
        if module == MAIN:
            return True
        if not isinstance(module, str) or module.partition(".")[0] == _OURS:
            return False
        file = getattr(sys.modules.get(module), "__file__", None)
        if not isinstance(file, str):
            return False
        return self._counts(Path(file).resolve())

    def _counts(self, path: Path) -> bool:
        """Return whether digests cover the code of a file."""
        return path.is_relative_to(self._root) and not any(part in _SITES for part in path.parts)

    def _note_unseen(self, value: Any, name: str) -> None:
        """Note the name of code that the digest does not cover."""
        module, qualified = _module_of(value), getattr(value, "__qualname__", None) or name
        if module != "builtins" and qualified:
            self.unseen.add(f"{module}.{qualified}" if isinstance(module, str) else str(qualified))

    def _constant(self, value: Any) -> None:
        if is_a(value, _CONSTANT):
            self.texts.append(repr(value)[:_LONGEST])


def _module_of(value: Any) -> Any:
    """Return the name of the module that defines a value.

    A function's own `__module__` does not count: a wrapper copies that of its target.
    """
    if is_a(value, types.FunctionType):
        return value.__globals__.get("__name__")
    return value.__name__ if is_a(value, types.ModuleType) else getattr(value, "__module__", None)
