"""The columns of a map's results beside those of a polars frame.

Rules
- Types do not depend on the answers: a nested answer is a Struct or a List where its schema says
  what is in it, else JSON text. A column with a value that does not fit is JSON text too.
- polars is not imported: the user's frame has brought it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ....events import replace_half_characters
from ....wire import dumps
from .answer_fields import Shape

_TYPES = {"int": "Int64", "count": "Int64", "float": "Float64", "bool": "Boolean", "text": "String"}


def taken(frame: Any) -> set[str]:
    """Return the names that a frame has."""
    return set(frame.columns)


def extended(
    frame: Any, positions: Sequence[int] | None, columns: Mapping[str, tuple[Shape, list[Any]]]
) -> Any:
    """Return the rows at `positions` (None: all) of a frame with columns at its right."""
    held = frame if positions is None else frame[list(positions)]
    series = [_series(name, shape, values) for name, (shape, values) in columns.items()]
    return held.hstack(series)


def _series(name: str, shape: Shape, values: list[Any]) -> Any:
    polars: Any = sys.modules["polars"]
    kind = _type(polars, shape)
    if kind is not None:
        try:
            fitted = [_fitted(value, shape) for value in values]
            return polars.Series(name, fitted, dtype=kind, strict=True)
        except (
            TypeError,
            ValueError,
            OverflowError,
            AttributeError,
            polars.exceptions.PolarsError,
        ):
            pass
    texts = [value if value is None else replace_half_characters(dumps(value)) for value in values]
    return polars.Series(name, texts, dtype=polars.String)


def _type(polars: Any, shape: Shape) -> Any:
    """Return polars' type of a shape, None if it has none."""
    if shape.kind == "list" and shape.item is not None:
        return polars.List(_type(polars, shape.item))
    if shape.kind == "struct":
        return polars.Struct({name: _type(polars, held) for name, held in shape.members})
    return getattr(polars, _TYPES.get(shape.kind, ""), None)


def _fitted(value: Any, shape: Shape) -> Any:
    """Return a value as polars takes it. Raises TypeError and AttributeError if it does not fit."""
    if value is None:
        return None
    if shape.kind == "struct":
        return {name: _fitted(value.get(name), held) for name, held in shape.members}
    if shape.item is not None:
        return [_fitted(item, shape.item) for item in _of(list, value)]
    if shape.kind == "float":
        return float(_of((int, float), value))
    return replace_half_characters(value) if shape.kind == "text" else value


def _of(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(kind)
    return value
