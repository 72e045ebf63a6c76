"""The notebook variables that a function uses, read from its code without running it.

Why: a notebook function that computes with notebook data returns another result when the data
change, and may change the data itself. A replay that took its result from the record would hide
these changes.

Rules
- A variable is a global name, perhaps undefined, in the code of a function defined in `__main__`,
  of its inner functions, and of the functions and classes of `__main__` that it uses. Data in
  closures, mutable defaults and bound arguments count too.
- Nothing is run, and no attribute of a foreign object is read. Names made at run time (`eval`,
  `globals()`) and values reached through modules are not found: a tool that uses them must declare
  `@tool(effect="kernel")`.
"""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from .safe_types import ABSENT, defines_name, is_a, module_name, read_class

MAIN = "__main__"
_OURS = __name__.partition(".")[0]
# opcodes that read or write a global name; the third one stands in scopes inside a class body
_READING = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_WRITING = {"STORE_GLOBAL", "DELETE_GLOBAL"}
# kinds of functions and methods: not variables themselves, but the variables they use count
_FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.ClassMethodDescriptorType,
    functools.partial,
    staticmethod,
    classmethod,
    property,
)
# types of constants, and of the attributes of a class that count because they may change
_CONSTANTS = (type(None), bool, int, float, complex, str, bytes, type(...), type(NotImplemented))
_MUTABLES = (list, dict, set, bytearray)


def find_used_variables(function: Any, *, earlier: bool = False) -> frozenset[str]:
    """Return the names of the notebook variables that `function` uses, as far as its code shows.

    An unnamed value is named after its place: `self`, `a default`, or its closure variable.
    `earlier`: as earlier records were made: an object counts only if `__main__` defines its class,
    and inherited methods do not count.
    """
    return frozenset(_Search(earlier=earlier).find_in(function))


class _Search:
    """Walks from one function to everything that it uses; visits each value once."""

    def __init__(self, *, earlier: bool) -> None:
        self._earlier = earlier
        self._seen: dict[int, Any] = {}  # id -> the value, kept so that no id is reused

    def find_in(self, value: Any) -> Iterator[str]:
        """Yield the variables that calling `value` uses."""
        if id(value) in self._seen:
            return
        self._seen[id(value)] = value
        # no isinstance: it would read `__class__`, which an object of the user may compute
        yield from next(find for kinds, find in self._kinds if is_a(value, kinds))(value)
        if (wrapped := inspect.getattr_static(value, "__wrapped__", None)) is not None:
            yield from self.find_in(wrapped)

    @property
    def _kinds(self) -> tuple[tuple[Any, Callable[[Any], Iterator[str]]], ...]:
        """The kinds of values and the methods that search them; the first that fits is used."""
        return (
            (functools.partial, self._find_in_partial),
            (types.MethodType, self._find_in_method),
            (staticmethod | classmethod, lambda value: self.find_in(value.__func__)),
            (property, lambda value: self._find_in_all((value.fget, value.fset))),
            (types.FunctionType, self._find_in_function),
            (type, self._find_in_class),
            (types.BuiltinFunctionType, self._find_in_builtin),
            (object, self._find_in_object),
        )

    def _find_in_partial(self, value: Any) -> Iterator[str]:
        yield from self.find_in(value.func)
        yield from self._find_in_bound("a bound argument", (*value.args, *value.keywords.values()))

    def _find_in_builtin(self, function: Any) -> Iterator[str]:
        if self._is_in_notebook(function.__self__):
            yield "self"

    def _find_in_object(self, value: Any) -> Iterator[str]:
        """Yield `self` for an object of a notebook class or a nameless notebook callable."""
        is_nameless = defines_name(value, "__call__") and not _is_named_callable(value)
        if _in_main(type(value)) or (is_nameless and self._is_in_notebook(value)):
            yield "self"

    def _find_in_all(self, functions: Iterable[Any]) -> Iterator[str]:
        for function in functions:
            if function is not None:
                yield from self.find_in(function)

    def _find_in_method(self, method: types.MethodType) -> Iterator[str]:
        yield from self.find_in(method.__func__)
        if is_a(method.__self__, type):
            yield from self.find_in(method.__self__)
        elif _in_main(type(method.__self__)) or self._is_in_notebook(method.__self__):
            yield "self"

    def _is_in_notebook(self, value: Any) -> bool:
        """Return whether an object belongs to the notebook, wherever its class is defined."""
        if self._earlier or _is_code(value) or is_a(value, (type, types.NoneType)):
            return False
        home = module_name(type(value))
        if not home or home.partition(".")[0] == _OURS:
            return False
        # not of the notebook: an object that the module of its class holds and `__main__` does not
        return _is_held(MAIN, value) or not _is_held(home, value)

    def _find_in_function(self, function: types.FunctionType) -> Iterator[str]:
        cells = list(list_closure(function))
        # a library's wrapper: only the functions in its closure can be from the notebook
        if function.__globals__.get("__name__") != MAIN:
            yield from self._find_in_all(value for _, value in cells if is_a(value, _FUNCTIONS))
            return
        for name in find_global_names(function.__code__):
            yield from self._find_global(name, function.__globals__)
        for name, value in cells:
            yield from self._find_in_value(name, value)
        defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        yield from self._find_in_bound("a default", defaults)

    def _find_in_class(self, class_: type) -> Iterator[str]:
        """Yield what the methods of a notebook class use, and its public mutable attributes."""
        if not _in_main(class_):
            return
        if not self._earlier:
            yield from self._find_in_all(read_class(class_, "__bases__"))
        for name, member in read_class(class_, "__dict__").items():
            if is_a(member, _FUNCTIONS):
                yield from self.find_in(member)
            elif not name.startswith("_") and is_a(member, _MUTABLES):
                yield f"{read_class(class_, '__name__')}.{name}"

    def _find_global(self, name: str, space: Mapping[str, Any]) -> Iterator[str]:
        """Yield the variables behind a global name; an undefined name counts as one."""
        if name.startswith("__") and name.endswith("__"):
            return
        value = space.get(name, ABSENT)
        if value is not ABSENT:
            yield from self._find_in_value(name, value)
        elif not hasattr(builtins, name):
            yield name

    def _find_in_value(self, name: str, value: Any) -> Iterator[str]:
        """Yield `name` if `value` is data; for a function or class, the variables that it uses."""
        if is_a(value, types.BuiltinFunctionType):
            if not is_a(value.__self__, types.ModuleType | type | types.NoneType):
                yield name  # a bound method of data, such as `push = found.append`
        elif is_a(value, (*_FUNCTIONS, type)) or _is_named_callable(value):
            yield from self.find_in(value)
        elif not _is_code(value):
            yield name

    def _find_in_bound(self, name: str, values: tuple[Any, ...]) -> Iterator[str]:
        """Yield the variables in values bound to a function; constants are part of its text."""
        for value in values:
            if not _is_constant(value):
                yield from self._find_in_value(name, value)


@functools.lru_cache(512)  # each replay needs them for each tool; equal code has equal names
def find_global_names(code: types.CodeType) -> tuple[str, ...]:
    """Return the global names in a code object and in those inside it."""
    instructions = list(dis.get_instructions(code))
    # names that the code stores itself, as a class body does
    own = {i.argval for i in instructions if i.opname == "STORE_NAME"}
    names = [
        i.argval
        for i in instructions
        if i.opname in _WRITING or (i.opname in _READING and i.argval not in own)
    ]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names += find_global_names(constant)
    return tuple(names)


def list_closure(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the assigned variables of a function's closure and their values."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue


def _is_held(module_name: str, value: Any) -> bool:
    """Return whether a variable of a loaded module is this object."""
    space = getattr(sys.modules.get(module_name), "__dict__", {})
    return any(value is each for each in list(space.values()))


def _in_main(class_: type) -> bool:
    """Return whether `__main__` defines a class; runs no code of its metaclass."""
    return bool(read_class(class_, "__dict__").get("__module__") == MAIN)


def _is_named_callable(value: Any) -> bool:
    """Return whether a value is a callable with a name, as cached and compiled functions are."""
    # `hasattr(type(value), "__call__")` is true of every type: it finds the call of the type itself
    is_named = inspect.getattr_static(value, "__name__", None) is not None
    return is_named and defines_name(value, "__call__")


def _is_code(value: Any) -> bool:
    """Return whether a value is code or a type, not data; an object with `as_tool` is code."""
    # not every type of the module `types`: a SimpleNamespace holds data
    return (
        is_a(value, types.ModuleType | types.GenericAlias | types.UnionType)
        or module_name(type(value)) in ("typing", "typing_extensions")
        or defines_name(value, "as_tool")
    )


def _is_constant(value: Any) -> bool:
    """Return whether a value cannot change, so that the function's text stands for it."""
    if is_a(value, tuple | frozenset):
        return all(_is_constant(item) for item in value)
    return is_a(value, _CONSTANTS) or _is_code(value)
