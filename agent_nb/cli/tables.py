"""Formats runs as a table, for the command `events`: text for a terminal, CSV, JSON or Parquet.

Rule: only the text table is shortened, to fit a terminal; the other formats keep every value.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..rows import Runs
from ..view import show_output
from ..wire import fit_text

if TYPE_CHECKING:
    from ..events import EventFrame


WIDEST = 60  # characters of a cell in a text table; a longer text is cut


def runs_frame(runs: Runs, columns: str = "") -> EventFrame:
    """Return the runs as a frame; `columns`: a preset's name, or names of columns with commas.

    With "" the frame has the columns of events (`EVENTS`).
    Raises UsageError for unknown names.
    """
    from ..events import PRESETS

    names = [c.strip() for c in columns.split(",") if c.strip()]
    return runs.to_frame(
        None if not names else names[0] if len(names) == 1 and names[0] in PRESETS else names
    )


def text_table(table: EventFrame) -> str:
    """Return a frame as text, one line per row, without empty columns; durations in seconds."""
    from ..notebook import format_table

    full = table.portable().dropna(axis="columns", how="all").astype(object)
    rows = full.where(full.notna(), None).itertuples(index=False, name=None)
    return format_table([full.columns, *([_cell_text(v) for v in row] for row in rows)]) + "\n"


def _cell_text(value: Any) -> str:
    """Return a value as one line: times to seconds, durations and floats to three digits."""
    if isinstance(value, datetime):
        return "" if value != value else value.isoformat(" ", "seconds")  # noqa: PLR0124  (NaT)
    seconds = value.total_seconds() if hasattr(value, "total_seconds") else value
    if isinstance(seconds, float):
        return f"{seconds:.3f}"
    return fit_text("" if value is None else " ".join(show_output(str(value)).split()), WIDEST)


def write_frame(table: EventFrame, form: str, path: Path | None) -> str:
    """Return a frame as text (`form`: csv, json or table), or write it to `path` (parquet).

    Raises UsageError if Parquet has no file to go into or pyarrow is missing.
    """
    if form == "parquet":
        if path is None:
            raise UsageError("Parquet goes into a file: -o FILE.parquet")
        try:
            table.to_parquet(path)
        except ImportError:
            raise UsageError(
                "Parquet needs pyarrow. Install it with: pip install pyarrow"
            ) from None
        return ""
    if form == "csv":
        return str(table.to_csv(index=False))
    if form == "json":
        return (
            str(table.portable().to_json(orient="records", date_format="iso", force_ascii=False))
            + "\n"
        )
    return text_table(table)
