"""Appends the columns of a map's results to a polars frame.

Types that polars infers depend on the values, and a map with failures has few. So they follow the
schema of the answer; a column without a type in polars, or with a misfit, is JSON text.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from ....events import replace_half_characters
from ....wire import dumps
from .answer_fields import Column, Shape

_TYPES = {  # names of polars types, by kind of shape
    "int": "Int64",
    "count": "Int64",
    "float": "Float64",
    "bool": "Boolean",
    "text": "String",
    "null": "Null",
}


def column_names(frame: Any) -> set[str]:
    """Return the names of the columns of a frame."""
    return set(frame.columns)


def append_columns(
    frame: Any, positions: Sequence[int] | None, columns: Mapping[str, Column]
) -> Any:
    """Return the rows at `positions` (None: all), with further columns at the right."""
    selected = frame if positions is None else frame[list(positions)]
    series = [_make_series(name, column) for name, column in columns.items()]
    return selected.hstack(series)


def _make_series(name: str, column: Column) -> Any:
    polars: Any = sys.modules["polars"]
    shape, values = column
    kind = _polars_type(polars, shape)
    misfits = (TypeError, ValueError, OverflowError, AttributeError, polars.exceptions.PolarsError)
    if kind is not None:
        with suppress(*misfits):  # one value does not fit: the whole column becomes JSON text
            converted = [_convert(value, shape) for value in values]
            return polars.Series(name, converted, dtype=kind, strict=True)
    texts = [value if value is None else replace_half_characters(dumps(value)) for value in values]
    return polars.Series(name, texts, dtype=polars.String)


def _polars_type(polars: Any, shape: Shape) -> Any:
    """Return polars' type of a shape, None if it has none."""
    if shape.kind == "list" and shape.item is not None:
        return polars.List(_polars_type(polars, shape.item))
    if shape.kind == "struct":
        return polars.Struct({name: _polars_type(polars, member) for name, member in shape.members})
    return getattr(polars, _TYPES.get(shape.kind, ""), None)


def _convert(value: Any, shape: Shape) -> Any:
    """Convert a value for polars. Raises one of `misfits` (`_make_series`) if it does not fit."""
    if value is None:
        return None
    if shape.kind == "struct":
        return {name: _convert(value.get(name), member) for name, member in shape.members}
    if shape.item is not None:
        return [_convert(item, shape.item) for item in _require(list, value)]
    if shape.kind == "float":
        return float(_require((int, float), value))
    if shape.kind == "null":  # polars would drop the value in silence
        raise TypeError(value)
    if shape.kind == "text":
        return replace_half_characters(value)
    return value


def _require(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(kind)
    return value
