"""The typed answer of a run as a DataFrame: asked for a list of objects, a user wants a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .column_type import replace_half_characters
from .field_order import order_fields, order_names

if TYPE_CHECKING:
    import pandas as pd

COLUMN = "value"  # of rows that are not objects


def make_answer_frame(document: Any, order: tuple[str, ...] = ()) -> pd.DataFrame:
    """Return a JSON value as a frame; `order`: the names of its fields (see `field_order`).

    A list becomes one row per item, any other value one row. If all rows are objects, their fields
    are the columns; otherwise one column, `value`, holds the rows.
    """
    import pandas as pd

    document = order_fields(document, order)
    rows = document if isinstance(document, list) else [document]
    if rows and all(isinstance(row, Mapping) for row in rows):
        rows = [{_cell(name): _cell(value) for name, value in row.items()} for row in rows]
        names = dict.fromkeys(name for row in rows for name in row)
        return pd.DataFrame(rows, columns=order_names(names, order))
    return pd.DataFrame({COLUMN: list(map(_cell, rows))})


def _cell(value: Any) -> Any:
    """Return a value as a column can hold it."""
    return replace_half_characters(value) if isinstance(value, str) else value
