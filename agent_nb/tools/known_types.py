"""The types of pandas, polars, NumPy, PyArrow and Matplotlib that are known by name.

Why: a table or array can be described by its private fields if its class is exactly a library's,
since then none of the user's code runs. All other types, subclasses too, are foreign. Nothing is
imported here.
"""

from __future__ import annotations

from functools import lru_cache
from types import MappingProxyType
from typing import Any

from .safe_types import ABSENT, find_entry, module_space, read_class, read_slot

# module -> the names of the classes that it offers
_KNOWN_TYPES = {
    "numpy": "ndarray bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32"
    " float64 str_ datetime64 timedelta64",
    "pandas": "DataFrame Series Timestamp Timedelta CategoricalDtype DatetimeTZDtype Index RangeIndex"
    " MultiIndex DatetimeIndex TimedeltaIndex CategoricalIndex PeriodIndex IntervalIndex",
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


@lru_cache(256)
def _list_offers(class_name: str) -> tuple[tuple[str, str], ...]:
    """Return the (module, name) pairs under which a class with this `__name__` may be offered."""
    # `_`: NumPy 2 offers the class with the `__name__` "bool" as `numpy.bool_`
    bare = class_name.rstrip("_")
    pairs = ((module, name) for module, names in _KNOWN_TYPES.items() for name in names.split())
    return tuple(pair for pair in pairs if pair[1].rstrip("_") == bare)


def public_name(value: Any) -> str:
    """Return the name, such as `pandas.DataFrame`, by which a library offers the type of `value`.

    Return "" for a type that is not known.
    """
    kind = type(value)
    own = read_class(kind, "__name__")
    if type(own) is not str:  # a subclass, whose methods may be the user's
        return ""
    for module, name in _list_offers(own):
        if module_space(module).get(name) is kind:
            return f"{module}.{name}"
    return ""


def read_field(value: Any, name: str) -> Any:
    """Return a field of an object whose type is known; ABSENT of any other."""
    if not public_name(value):
        return ABSENT
    space = read_slot(value, "__dict__", _get_entry)
    entry = find_entry(space, name) if type(space) is dict else ABSENT
    return read_slot(value, name, _get_entry) if entry is ABSENT else entry


def _get_entry(space: MappingProxyType[str, Any], name: str) -> Any:
    """Search the dictionary of a known class. All its keys are texts: `setattr` refuses others."""
    return space.get(name, ABSENT)
