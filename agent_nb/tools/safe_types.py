"""Find out what an object is without running its code: its type, the library that the type comes
from, and the fields of objects of known libraries.

Why: a variable may be a lazy frame, a mock, a proxy of a remote object, or broken. Asking it
anything in Python's ordinary way (an attribute, `len`, `repr`, `isinstance`) may compute for hours,
print, or raise.

Rules
- Types come from `type(x)`, never from `x.__class__`. Classes are read by the descriptors of `type`
  and compared by identity: `==`, `in` and a search by type may call a metaclass.
- A class is known only if it is the very one that an imported library offers. Subclasses are
  foreign. Nothing is imported here.
- A field is an entry of the instance's own dictionary or stands behind a descriptor written in C.
  Properties, methods and `__getattr__` are never evaluated.
- A dictionary is searched only if its keys are exactly texts, else walked: a search may call the
  `__eq__` of a key.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import repeat
from operator import is_
from typing import Any, TypeVar

from ..wire import Redactor

T = TypeVar("T")
ABSENT: Any = object()
NAME = 80  # characters of a type's name
# the descriptors of `type`: reading a class through them runs nothing of its metaclass
_NAME = type.__dict__["__name__"]
_HEAP = 1 << 9  # the flag of classes that were made at run time
_FLAGS = type.__dict__["__flags__"]
_MRO = type.__dict__["__mro__"]
_SPACE = type.__dict__["__dict__"]
_MODULE = type.__dict__["__module__"]
_QUALNAME = type.__dict__["__qualname__"]
_MODULE_SPACE: Any = vars(types.ModuleType)["__dict__"]
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)
_IN_C = (types.GetSetDescriptorType, types.MemberDescriptorType)
# the known classes, by the module that offers them
_OFFERED = {
    "numpy": "ndarray bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32"
    " float64 str_ datetime64 timedelta64",
    "pandas": "DataFrame Series Timestamp Timedelta CategoricalDtype Index RangeIndex MultiIndex"
    " DatetimeIndex TimedeltaIndex CategoricalIndex PeriodIndex IntervalIndex",
    "pandas.arrays": "IntegerArray FloatingArray BooleanArray DatetimeArray TimedeltaArray"
    " PeriodArray Categorical IntervalArray SparseArray StringArray NumpyExtensionArray"
    " ArrowStringArray ArrowExtensionArray",
    "pandas.core.internals.managers": "BlockManager SingleBlockManager",
    "pandas.core.internals.blocks": "NumpyBlock ExtensionBlock DatetimeLikeBlock"
    " NDArrayBackedExtensionBlock NumericBlock ObjectBlock DatetimeTZBlock",
    "polars": "DataFrame LazyFrame Series",
    "polars._plr": "PyDataFrame PySeries",
    "polars.polars": "PyDataFrame PySeries",
    "pyarrow": "ChunkedArray DataType TimestampType",
    "matplotlib.figure": "Figure",
    "matplotlib.axes": "Axes",
}
# (module, name there) by the name that the class itself has: NumPy 2 calls `numpy.bool_` "bool"
_BY_NAME: dict[str, list[tuple[str, str]]] = {}
for _module, _names in _OFFERED.items():
    for _name in _names.split():
        _BY_NAME.setdefault(_name.rstrip("_"), []).append((_module, _name))


def public_name(value: Any) -> str:
    """Return the name under which a library offers exactly the type of `value`, such as
    `pandas.DataFrame`; "" for a class that is not known.
    """
    kind = type(value)
    own = _NAME.__get__(kind)
    for module, name in _BY_NAME.get(own.rstrip("_"), ()) if type(own) is str else ():
        if module_space(module).get(name) is kind:
            return f"{module}.{name}"
    return ""


def module_space(module: str) -> dict[str, Any]:
    """Return the namespace of a module that has been imported; {} of any other, and of one that
    loads lazily.
    """
    held = sys.modules.get(module)
    return _MODULE_SPACE.__get__(held) if type(held) is types.ModuleType else {}


def read_field(value: Any, name: str) -> Any:
    """Return a field of an object of a known class, ABSENT of any other object or field."""
    if not public_name(value):
        return ABSENT
    space = _read_slot(value, "__dict__", _get)
    held = find_entry(space, name) if type(space) is dict else ABSENT
    return _read_slot(value, name, _get) if held is ABSENT else held


def own_fields(value: Any) -> dict[Any, Any] | None:
    """Return the instance dictionary itself, None where there is none."""
    space = _read_slot(value, "__dict__", find_entry)
    return space if type(space) is dict else None


def _read_slot(value: Any, name: str, find: Callable[[Any, str], Any]) -> Any:
    """Return what a descriptor in C gives for `name`, else ABSENT.

    `find` looks a name up in the dictionary of a class: `_get` if the class is known.
    """
    for owner in _MRO.__get__(type(value)):
        slot = find(_SPACE.__get__(owner), name)
        if slot is not ABSENT:
            return slot.__get__(value) if is_exactly(slot, _IN_C) else ABSENT
    return ABSENT


def _get(space: types.MappingProxyType[str, Any], name: str) -> Any:
    """Search a known class: it has only texts as keys, for `setattr` lets nothing else in."""
    return space.get(name, ABSENT)


def find_entry(space: dict[Any, Any] | types.MappingProxyType[Any, Any], name: str) -> Any:
    """Return what an exact dictionary holds under `name`, or ABSENT."""
    if all(map(is_, map(type, space), repeat(str))):
        return space.get(name, ABSENT)
    return next((v for k, v in text_entries(space) if k == name), ABSENT)


def text_entries(space: Any) -> Iterator[tuple[str, Any]]:
    """Yield the items of a dictionary, or of a class's, whose keys are exactly texts."""
    items = space.items() if type(space) is types.MappingProxyType else dict.items(space)
    return ((k, v) for k, v in list(items) if type(k) is str)


def module_name(value: Any) -> str:
    """Return the module that a class, a function, or the class of any other object says it comes
    from; "" where it says none.
    """
    if is_exactly(value, _FUNCTIONS):
        named = value.__module__
    else:
        kind = value if is_a(value, type) else type(value)
        named = find_entry(_SPACE.__get__(kind), "__module__")
        if named is ABSENT and not _FLAGS.__get__(kind) & _HEAP:
            named = _MODULE.__get__(kind)
    return named if type(named) is str else ""


def type_name(kind: type) -> str:
    """Return the qualified name of a class on one line; classes of builtins and of the notebook
    have their bare name.

    It is longer than `NAME` by what a key may be long: filter secrets, then cut it.
    """
    module, name = module_name(kind), str.__str__(_QUALNAME.__get__(kind))
    bare = module in ("", "builtins", "__main__")
    return one_line(name if bare else f"{module}.{name}", NAME + Redactor.LONGEST_KEY)


def is_imported(name: str, value: Any) -> bool:
    """Return whether a value is the function, class or other callable that a module offers: under
    its own name in the module it comes from, or under `name` in the package of its type.
    """
    held = value.__func__ if type(value) is types.MethodType else value
    if is_a(held, type):
        module, own = module_name(held), _NAME.__get__(held)
    elif is_exactly(held, _FUNCTIONS):
        module, own = module_name(held), held.__name__
    elif defines_name(value, "__call__"):
        module, own = module_name(value).partition(".")[0], name
    else:
        return False
    known = module not in ("", "__main__") and type(own) is str
    return known and find_entry(module_space(module), own) is value


def defines_name(value: Any, name: str) -> bool:
    """Return whether the class of a value, or one of its bases, defines `name`."""
    owners = _MRO.__get__(type(value))
    return any(find_entry(_SPACE.__get__(owner), name) is not ABSENT for owner in owners)


def is_exactly(value: Any, kinds: Iterable[type]) -> bool:
    """Return whether the type of `value` is one of these."""
    return any(type(value) is kind for kind in kinds)


def is_a(value: Any, kinds: Any) -> bool:
    """Return whether the real type of `value` is one of `kinds` or derives from one.

    `kinds`: a plain class, a union or tuple of them. `isinstance` would also read `__class__`,
    which an object may compute.
    """
    return issubclass(type(value), kinds)


def find_by_type(table: Mapping[type, T], value: Any) -> T | None:
    """Return what a table of builtin types has for exactly the type of `value`."""
    kind = type(value)
    return table.get(kind) if type(kind) is type else None


def one_line(text: str, limit: int) -> str:
    """Return a text on one line, of at most `limit` characters, that can be encoded."""
    head = text[: 4 * limit].encode("utf-8", "replace").decode()
    shown = "".join(c if c.isprintable() else " " for c in head)
    shown = " ".join(shown.split())
    whole = len(text) <= 4 * limit and len(shown) <= limit
    return shown if whole else f"{shown[: limit - 1]}…"
