"""Look at objects without running their code: what they are, which library they come from, and what
their fields hold.

Why: a variable may be a lazy frame, a mock, a proxy of a remote object, or broken. Asking it
anything in Python's ordinary way (an attribute, `len`, `repr`, `isinstance`) may compute for hours,
print, or raise.

Rules
- Types come from `type(x)`, never from `x.__class__`. Classes are read by the descriptors of `type`
  and compared by identity: `==`, `in` and a search by type may call a metaclass.
- A field is what stands in the instance's own dictionary or behind a descriptor written in C. A
  property, a method or `__getattr__` is never evaluated.
- A dictionary is searched only if its keys are exactly texts, else walked: a search may call the
  `__eq__` of a key.
- A library counts only if it has been imported already; nothing is imported here. A class counts
  only if it is the very one that the library offers: subclasses are foreign.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from operator import is_
from typing import Any, TypeVar

from ..wire.key_search import LONGEST

Found = TypeVar("Found")
ABSENT: Any = object()
NAME = 80  # characters of a type's name
_NAME = type.__dict__["__name__"]
_HEAP = 1 << 9  # the flag of classes that were made at run time
_FLAGS = type.__dict__["__flags__"]
_MRO = type.__dict__["__mro__"]
_SPACE = type.__dict__["__dict__"]
_MODULE = type.__dict__["__module__"]
_QUALNAME = type.__dict__["__qualname__"]
_MODULE_SPACE: Any = vars(types.ModuleType)["__dict__"]
_IN_C = (types.GetSetDescriptorType, types.MemberDescriptorType)
_MASKED = ("IntegerArray", "FloatingArray", "BooleanArray")
_TIMED = ("DatetimeArray", "TimedeltaArray", "PeriodArray")
_OTHER = ("Categorical", "IntervalArray", "SparseArray", "StringArray", "NumpyExtensionArray")
_KINDS = ("", "Range", "Multi", "Datetime", "Timedelta", "Categorical", "Period", "Interval")
_INDEXES = tuple(f"{kind}Index" for kind in _KINDS)
_BLOCKS = (
    *("NumpyBlock", "ExtensionBlock", "DatetimeLikeBlock", "NDArrayBackedExtensionBlock"),
    *("NumericBlock", "ObjectBlock", "DatetimeTZBlock"),  # before pandas 3
)
_SCALARS = (
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    *("float16", "float32", "float64", "bool_", "str_", "datetime64", "timedelta64"),
)
# The classes whose fields are read, by the module that offers them.
_OFFERED: dict[str, tuple[str, ...]] = {
    "numpy": ("ndarray", *_SCALARS),
    "pandas": ("DataFrame", "Series", "Timestamp", "Timedelta", "CategoricalDtype", *_INDEXES),
    "pandas.arrays": (*_MASKED, *_TIMED, *_OTHER, "ArrowStringArray", "ArrowExtensionArray"),
    "pandas.core.internals.managers": ("BlockManager", "SingleBlockManager"),
    "pandas.core.internals.blocks": _BLOCKS,
    "pandas._libs.internals": ("BlockPlacement",),
    "polars": ("DataFrame", "LazyFrame", "Series"),
    "polars._plr": ("PyDataFrame", "PySeries"),
    "polars.polars": ("PyDataFrame", "PySeries"),
    "pyarrow": ("ChunkedArray", "DataType", "TimestampType", "Date32Type"),
    "matplotlib.figure": ("Figure",),
    "matplotlib.axes": ("Axes",),
}
# By the name of a class: where it may be offered, under which name.
_PLACES: dict[str, list[tuple[str, str]]] = {}
for _module, _names in _OFFERED.items():
    for _name in _names:
        for _called in {_name, _name.rstrip("_")}:
            _PLACES.setdefault(_called, []).append((_module, _name))


def type_name(kind: type) -> str:
    """Return the qualified name of a class on one line; classes of builtins and of the notebook
    have their bare name.

    It is longer than `NAME` by what a key may be long: filter secrets, then cut it.
    """
    module, name = module_of(kind), str.__str__(_QUALNAME.__get__(kind))
    bare = module in ("", "builtins", "__main__")
    return line(name if bare else f"{module}.{name}", NAME + LONGEST)


def imported(name: str, value: Any) -> bool:
    """Return whether a value is the function, class or other callable that a module offers: under
    its own name in the module it comes from, or under `name` in the package of its type.
    """
    kind = type(value)
    held = value.__func__ if kind is types.MethodType else value
    if is_a(held, type):
        module, own = module_of(held), _NAME.__get__(held)
    elif exactly(held, (types.FunctionType, types.BuiltinFunctionType)):
        module, own = held.__module__, held.__name__
    elif defines(value, "__call__"):
        module, own = module_of(kind).partition(".")[0], name
    else:
        return False
    known = type(module) is str and module not in ("", "__main__") and type(own) is str
    return known and entry(library(module), own) is value


def module_of(kind: type) -> str:
    """Return the name of the module that a class says it comes from, "" where it says none."""
    named = entry(_SPACE.__get__(kind), "__module__")
    if named is ABSENT and not _FLAGS.__get__(kind) & _HEAP:
        named = _MODULE.__get__(kind)
    return named if type(named) is str else ""


def offered(value: Any) -> str:
    """Return the name under which a library offers exactly the type of `value`, such as
    `pandas.DataFrame`; "" for foreign types.
    """
    kind = type(value)
    called = _NAME.__get__(kind)
    for module, name in _PLACES.get(called, ()) if type(called) is str else ():
        if library(module).get(name) is kind:
            return f"{module}.{name}"
    return ""


def library(module: str) -> dict[str, Any]:
    """Return the namespace of a module that has been imported, {} of any other and of one that
    loads lazily.
    """
    held = sys.modules.get(module)
    return _MODULE_SPACE.__get__(held) if type(held) is types.ModuleType else {}


def entry(space: dict[Any, Any] | types.MappingProxyType[Any, Any], name: str) -> Any:
    """Return what an exact dictionary holds under `name`, or ABSENT."""
    if all(map(is_, map(type, space), repeat(str))):
        return space.get(name, ABSENT)
    return next((v for k, v in entries(space) if k == name), ABSENT)


def entries(space: Any) -> Iterator[tuple[str, Any]]:
    """Yield the items of a dictionary, or of a class's, whose keys are exactly texts."""
    items = space.items() if type(space) is types.MappingProxyType else dict.items(space)
    return ((k, v) for k, v in list(items) if type(k) is str)


def field(value: Any, name: str) -> Any:
    """Return a field of an object whose type is `offered`: from its own dictionary, else behind a
    descriptor in C; ABSENT if there is neither.
    """
    place = _known(type(value), "__dict__")
    space = None if place is ABSENT else place.__get__(value)
    held = entry(space, name) if type(space) is dict else ABSENT
    if held is not ABSENT:
        return held
    found = _known(type(value), name)
    return ABSENT if found is ABSENT else found.__get__(value)


def own(value: Any) -> dict[Any, Any] | None:
    """Return the instance dictionary itself, None where there is none."""
    found = _described(type(value), "__dict__")
    space = None if found is ABSENT else found.__get__(value)
    return space if type(space) is dict else None


def _known(kind: type, name: str) -> Any:
    """Return `_described`, remembered: libraries have few classes, and walking one takes long."""
    held = _remembered.get((id(kind), name))
    if held is None or held[0] is not kind:
        held = _remembered[id(kind), name] = (kind, _described(kind, name))
    return held[1]


_remembered: dict[tuple[int, str], tuple[type, Any]] = {}


def _described(kind: type, name: str) -> Any:
    """Return the descriptor in C that a class has for `name`; ABSENT if it is anything else."""
    for owner in _MRO.__get__(kind):
        found = entry(_SPACE.__get__(owner), name)
        if found is not ABSENT:
            return found if exactly(found, _IN_C) else ABSENT
    return ABSENT


def defines(value: Any, name: str) -> bool:
    """Return whether the class of a value, or one of its bases, defines `name`."""
    owners = _MRO.__get__(type(value))
    return any(entry(_SPACE.__get__(owner), name) is not ABSENT for owner in owners)


def exactly(value: Any, kinds: Iterable[type]) -> bool:
    """Return whether the type of `value` is one of these."""
    return any(type(value) is kind for kind in kinds)


def by_type(table: Mapping[type, Found], value: Any) -> Found | None:
    """Return what a table of builtin types has for exactly the type of `value`."""
    kind = type(value)
    return table.get(kind) if type(kind) is type else None


def is_a(value: Any, kind: type) -> bool:
    """Return whether the real type of `value` is `kind` or derives from it, by its bases alone."""
    return any(base is kind for base in _MRO.__get__(type(value)))


def line(text: str, limit: int) -> str:
    """Return a text on one line, of at most `limit` characters, that can be encoded."""
    head = text[: 4 * limit].encode("utf-8", "replace").decode()
    shown = "".join(c if c.isprintable() else " " for c in head)
    shown = " ".join(shown.split())
    whole = len(text) <= 4 * limit and len(shown) <= limit
    return shown if whole else f"{shown[: limit - 1]}…"
