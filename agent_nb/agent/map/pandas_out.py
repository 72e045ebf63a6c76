"""The columns of a map's results beside those of a pandas frame.

Rules
- By position: the index, duplicates and levels included, is that of the frame, and its own columns
  keep their types.
- Types do not depend on the answers: whole numbers are `Int64`, truth values `boolean`, numbers
  `float64`, texts pandas' own; a value that does not fit (a number beyond 64 bits) makes its column
  one of objects, so that nothing is lost.
- A frame with levels of columns gets the names at the first level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .answer_fields import Kind, Shape

_NULLABLE: dict[Kind, tuple[Any, tuple[type, ...]]] = {
    "int": ("Int64", (int, float)),
    "bool": ("boolean", (bool,)),
}


def taken(frame: Any) -> set[str]:
    """Return the names that a frame has."""
    labels = frame.columns.get_level_values(0) if frame.columns.nlevels > 1 else frame.columns
    return set(map(str, labels))


def extended(
    frame: Any, places: Sequence[int] | None, columns: Mapping[str, tuple[Shape, list[Any]]]
) -> Any:
    """Return the rows at `places` (None: all) of a frame with columns at its right."""
    import pandas as pd

    held = frame.copy() if places is None else frame.iloc[list(places)].copy()
    made = {name: _array(shape.kind, values) for name, (shape, values) in columns.items()}
    # with their types: of an array of objects, pandas would make a column of texts
    series = {n: pd.Series(a, index=held.index, dtype=a.dtype) for n, a in made.items()}
    added = pd.DataFrame(series, index=held.index)
    levels = held.columns.nlevels
    if levels > 1:
        added.columns = pd.MultiIndex.from_tuples([(name, *[""] * (levels - 1)) for name in made])
    out = pd.concat([held, added], axis=1)
    out.columns.names = held.columns.names
    out.attrs = held.attrs
    return out


def _array(kind: Kind, values: list[Any]) -> Any:
    """Return the values as a column of their kind, else as objects."""
    try:
        return _MAKERS.get(kind, _objects)(kind, values)
    except (TypeError, ValueError, OverflowError):
        return _objects(kind, values)


def _nullable(kind: Kind, values: list[Any]) -> Any:
    import pandas as pd

    dtype, types = _NULLABLE[kind]
    if not all(v is None or type(v) in types for v in values):
        raise TypeError(kind)  # pandas would read numbers out of texts
    return pd.array(values, dtype=dtype)


def _count(kind: Kind, values: list[Any]) -> Any:
    import numpy as np

    return np.array(values, np.int64)


def _float(kind: Kind, values: list[Any]) -> Any:
    import numpy as np

    if any(isinstance(v, str) for v in values):
        raise TypeError(kind)
    return np.array(values, np.float64)


def _text(kind: Kind, values: list[Any]) -> Any:
    from ...events.event_frame import text_array

    if not all(v is None or isinstance(v, str) for v in values):
        raise TypeError(kind)
    return text_array(_objects(kind, values))


def _objects(kind: Kind, values: list[Any]) -> Any:
    import numpy as np

    return np.fromiter(values, object, len(values))


_MAKERS: dict[Kind, Callable[[Kind, list[Any]], Any]] = {
    "int": _nullable,
    "bool": _nullable,
    "count": _count,
    "float": _float,
    "text": _text,
}
