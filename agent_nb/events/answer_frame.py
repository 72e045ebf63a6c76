"""The typed answer of a run as a DataFrame.

Rules: a list of objects is one row each, an object is one row; any other value, or each value of a
list, is a row of the column `value`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

COLUMN = "value"


def answer_frame(document: Any) -> pd.DataFrame:
    """Return a plain JSON value as a frame."""
    import pandas as pd

    rows = document if isinstance(document, list) else [document]
    if rows and all(isinstance(row, Mapping) for row in rows):
        return pd.DataFrame.from_records(rows)
    return pd.DataFrame({COLUMN: rows})
