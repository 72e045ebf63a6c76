"""Appends the columns of a map's results to a pandas frame.

pandas itself would align by index, which may have duplicates, and guess the dtypes. Here the dtype
follows from the kind of the column (`_TYPES`); it is object for another kind, and for a value that
does not fit (a number beyond 64 bits).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from .answer_fields import Column, Kind

# kind -> the dtype, and the types of Python that fit into it: pandas would convert others
_TYPES: dict[Kind, tuple[Any, tuple[type, ...]]] = {
    "int": ("Int64", (int, float)),
    "float": ("float64", (int, float)),
    "bool": ("boolean", (bool,)),
    "count": ("int64", (int,)),
    "text": (None, (str,)),  # the dtype that this version of pandas has for texts (`text_array`)
}


def column_names(frame: Any) -> set[str]:
    """Return the names of a frame's columns as texts; of several levels only the first."""
    labels = frame.columns.get_level_values(0) if frame.columns.nlevels > 1 else frame.columns
    return set(map(str, labels))


def append_columns(
    frame: Any, positions: Sequence[int] | None, columns: Mapping[str, Column]
) -> Any:
    """Return a copy of the rows at `positions` (None: all) with further columns at the right.

    In a frame with several column levels, a new name stands at the first level, "" at the others.
    """
    import pandas as pd

    selected = frame.copy() if positions is None else frame.iloc[list(positions)].copy()
    arrays = {name: _to_array(column.shape.kind, column.values) for name, column in columns.items()}
    # an explicit dtype: pandas would turn an object array of texts into its string dtype
    series = {n: pd.Series(a, index=selected.index, dtype=a.dtype) for n, a in arrays.items()}
    added = pd.DataFrame(series, index=selected.index)
    levels = selected.columns.nlevels
    if levels > 1:
        added.columns = pd.MultiIndex.from_tuples([(name, *[""] * (levels - 1)) for name in arrays])
    out = pd.concat([selected, added], axis=1)
    out.columns.names = selected.columns.names
    out.attrs = selected.attrs
    return out


def _to_array(kind: Kind, values: list[Any]) -> Any:
    """Return the values as a column of their kind, else as objects."""
    import numpy as np
    import pandas as pd

    from ....events import text_array

    objects = np.fromiter(values, object, len(values))
    dtype, types = _TYPES.get(kind, (None, ()))
    # values of subclasses of str fit too; those of int do not, since bool is a subclass of int
    exact = all(value is None or type(value) in types for value in values)
    texts = kind == "text" and all(value is None or isinstance(value, str) for value in values)
    if types and (exact or texts):
        with suppress(TypeError, ValueError, OverflowError):  # such as more than 64 bits
            return text_array(objects) if kind == "text" else pd.array(values, dtype=dtype)
    return objects
