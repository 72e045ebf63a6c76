"""Find out an object's type and its fields without running the object's code.

Why: a variable may be a lazy frame, a mock, a proxy of a remote object, or broken. The ordinary
ways to look at it (an attribute, `len`, `repr`, `isinstance`) may then compute for hours, print, or
raise.

Rules
- Types come from `type(x)`, never from `x.__class__`. Classes are read by the descriptors of `type`
  and compared by identity: `==`, `in` and a dictionary of types may call a metaclass.
- A user's dictionary is searched with `get` only if all keys are of type `str`: `get` may call the
  `__eq__` of another key.
"""

from __future__ import annotations

import datetime
import sys
import types
import zoneinfo
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import repeat
from operator import is_
from typing import Any, TypeVar

from ..wire import Redactor

T = TypeVar("T")
ABSENT: Any = object()  # stands for a field or cell that does not exist or cannot be read safely
LONGEST_NAME = 80  # characters of a type's name
# Py_TPFLAGS_HEAPTYPE: a class created at run time, not a static one of an extension
_HEAP_FLAG = 1 << 9
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)
SAFE_ZONES = (type(None), datetime.timezone, zoneinfo.ZoneInfo)  # of times; none runs user code
_SLOT_TYPES = (types.GetSetDescriptorType, types.MemberDescriptorType)


def module_space(module: str) -> dict[str, Any]:
    """Return the namespace of an imported module; {} of any other, and of a lazy module."""
    imported = sys.modules.get(module)
    return vars(imported) if type(imported) is types.ModuleType else {}


def read_class(class_: Any, name: str) -> Any:
    """Return an attribute of every class, such as `__bases__`; run no code of its metaclass."""
    return type.__dict__[name].__get__(class_)


def own_fields(value: Any) -> dict[Any, Any] | None:
    """Return the instance dictionary of any object, not a copy; None if it has none."""
    space = read_slot(value, "__dict__", find_entry)
    return space if type(space) is dict else None


def read_slot(
    value: Any, name: str, find: Callable[[types.MappingProxyType[str, Any], str], Any]
) -> Any:
    """Return the value of the slot `name`; ABSENT unless a descriptor written in C reads it.

    `find` returns an entry of the dictionary of a class, or ABSENT.
    """
    for owner in read_class(type(value), "__mro__"):
        slot = find(read_class(owner, "__dict__"), name)
        if slot is not ABSENT:
            return slot.__get__(value) if is_exactly(slot, _SLOT_TYPES) else ABSENT
    return ABSENT


def find_entry(space: dict[Any, Any] | types.MappingProxyType[Any, Any], name: str) -> Any:
    """Return the entry `name` of a plain dictionary or of a class's dictionary, or ABSENT."""
    if all(map(is_, map(type, space), repeat(str))):
        return space.get(name, ABSENT)
    return next((v for k, v in text_entries(space) if k == name), ABSENT)


def text_entries(space: Any) -> Iterator[tuple[str, Any]]:
    """Yield the items whose key is of type `str`, from a dictionary or a class's dictionary."""
    items = space.items() if type(space) is types.MappingProxyType else dict.items(space)
    return ((k, v) for k, v in list(items) if type(k) is str)


def module_name(value: Any) -> str:
    """Return the `__module__` of a class, a function, or an object's class; "" if no text."""
    if is_exactly(value, _FUNCTIONS):
        module = value.__module__
    else:
        kind = value if is_a(value, type) else type(value)
        module = find_entry(read_class(kind, "__dict__"), "__module__")
        # a static class has no such entry; `type` takes its module from its name in C
        if module is ABSENT and not read_class(kind, "__flags__") & _HEAP_FLAG:
            module = read_class(kind, "__module__")
    return module if type(module) is str else ""


def type_name(kind: type) -> str:
    """Return the name of a class on one line, with its module unless builtin or of the notebook.

    The text may be longer than `LONGEST_NAME` by the length of a key: filter secrets first, then
    cut it (`plain_values.class_name` does).
    """
    module, name = module_name(kind), str.__str__(read_class(kind, "__qualname__"))
    bare = module in ("", "builtins", "__main__")
    return one_line(name if bare else f"{module}.{name}", LONGEST_NAME + Redactor.LONGEST_KEY)


def is_imported(name: str, value: Any) -> bool:
    """Return whether `value` is a function, class or other callable that a module offers.

    A class or function is looked up under its own name in its own module. Another callable, such as
    a ufunc of NumPy, is looked up under `name` in the package of its type.
    """
    function = value.__func__ if type(value) is types.MethodType else value
    if is_a(function, type):
        module, own = module_name(function), read_class(function, "__name__")
    elif is_exactly(function, _FUNCTIONS):
        module, own = module_name(function), function.__name__
    elif defines_name(value, "__call__"):
        module, own = module_name(value).partition(".")[0], name
    else:
        return False
    importable = module not in ("", "__main__") and type(own) is str
    return importable and find_entry(module_space(module), own) is value


def defines_name(value: Any, name: str) -> bool:
    """Return whether the class of a value, or one of its bases, defines `name`."""
    owners = read_class(type(value), "__mro__")
    return any(find_entry(read_class(owner, "__dict__"), name) is not ABSENT for owner in owners)


def is_exactly(value: Any, kinds: Iterable[type]) -> bool:
    """Return whether the type of `value` is one of `kinds`, and no subclass."""
    return any(type(value) is kind for kind in kinds)


def is_a(value: Any, kinds: Any) -> bool:
    """Return whether the real type of `value` is one of `kinds` or derives from one.

    `kinds`: a class, or a union or tuple of classes, whose metaclass is `type`. `isinstance` would
    also read `__class__`, which an object may compute.
    """
    return issubclass(type(value), kinds)


def find_by_type(table: Mapping[type, T], value: Any) -> T | None:
    """Return the entry of a table of builtin types for exactly the type of `value`, or None."""
    # a metaclass could define `__hash__` and `__eq__`, which `get` would call
    kind = type(value)
    return table.get(kind) if type(kind) is type else None


def one_line(text: str, limit: int) -> str:
    """Return `text` on one line in at most `limit` characters, with `…` at its end if it is cut.

    Characters that cannot be encoded or printed are replaced.
    """
    # enough of the text to fill the limit if most of it is spaces; the rest is not looked at
    head = text[: 4 * limit].encode("utf-8", "replace").decode()
    shown = "".join(c if c.isprintable() else " " for c in head)
    shown = " ".join(shown.split())
    complete = len(text) <= 4 * limit and len(shown) <= limit
    return shown if complete else f"{shown[: limit - 1]}…"
