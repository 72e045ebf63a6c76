"""The typed answer of a run as a DataFrame.

Rules: a list of objects is one row each, an object is one row, with the columns, and the fields of
objects in cells, in the order of the type; any other value, or each value of a list, is a row of
the column `value`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .field_order import order_fields, order_names

if TYPE_CHECKING:
    import pandas as pd

COLUMN = "value"


def make_answer_frame(document: Any, order: tuple[str, ...] = ()) -> pd.DataFrame:
    """Return a plain JSON value as a frame; `order`: of its fields (`field_order`)."""
    import pandas as pd

    document = order_fields(document, order)
    rows = document if isinstance(document, list) else [document]
    if rows and all(isinstance(row, Mapping) for row in rows):
        return pd.DataFrame(
            rows, columns=order_names(dict.fromkeys(k for r in rows for k in r), order)
        )
    return pd.DataFrame({COLUMN: rows})
