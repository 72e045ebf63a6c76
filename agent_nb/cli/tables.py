"""Formats runs as a table, for the command `events`: text, CSV, JSON, Parquet or a spreadsheet.

The text table shortens values to fit a terminal, and a spreadsheet takes only what its cells can
hold (`EventFrame`); the other formats hold every value in full.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..rows import Runs
from ..view import show_output
from ..wire import fit_text
from .terminal import write_checked

if TYPE_CHECKING:
    from ..events import EventFrame

WIDEST = 60  # characters of a cell in a text table; a longer text is cut
# binary form -> its name in messages, the library that it needs, the function that writes it
_FILES: dict[str, tuple[str, str, Callable[[EventFrame, Path], Any]]] = {
    "parquet": ("Parquet", "pyarrow", lambda table, path: table.to_parquet(path)),
    "xlsx": ("A spreadsheet", "openpyxl", lambda table, path: table.to_excel(path, index=False)),
}


def runs_frame(runs: Runs, columns: str = "") -> EventFrame:
    """Return the runs as a frame; `columns`: a preset's name, or names of columns with commas.

    With "" the frame has the columns of events (`EVENTS`). Raises UsageError for unknown names.
    """
    from ..events import PRESETS

    names = [c.strip() for c in columns.split(",") if c.strip()]
    if len(names) == 1 and names[0] in PRESETS:
        return runs.to_frame(names[0])
    return runs.to_frame(names or None)


def text_table(table: EventFrame) -> str:
    """Return a frame as text, one line per row, without empty columns; durations in seconds."""
    from ..notebook import format_table

    full = table.portable().dropna(axis="columns", how="all").astype(object)
    rows = full.where(full.notna(), None).itertuples(index=False, name=None)
    return format_table([full.columns, *([_cell_text(v) for v in row] for row in rows)]) + "\n"


def _cell_text(value: Any) -> str:
    """Return a value as one line: times to seconds, durations and floats to three digits."""
    if isinstance(value, datetime):
        # NaT, pandas' missing time, is the one datetime that differs from itself
        return "" if value != value else value.isoformat(" ", "seconds")  # noqa: PLR0124  (NaT)
    seconds = value.total_seconds() if hasattr(value, "total_seconds") else value
    if isinstance(seconds, float):
        return f"{seconds:.3f}"
    return fit_text("" if value is None else " ".join(show_output(str(value)).split()), WIDEST)


def write_frame(table: EventFrame, form: str, path: Path | None) -> str:
    """Return a frame as text (`form`: csv, json or table), or write it to `path` (parquet, xlsx).

    Raises UsageError if a file in that form has no path or cannot be written, or its library is
    missing.
    """
    if form in _FILES:
        what, library, write = _FILES[form]
        if path is None:
            raise UsageError(f"{what} goes into a file: -o FILE.{form}")
        try:
            write_checked(lambda: write(table, path), path)
        except ImportError:
            raise UsageError(
                f"{what} needs {library}. Install it with: pip install {library}"
            ) from None
        return ""
    if form == "csv":
        return str(table.to_csv(index=False))
    if form == "json":
        text = table.portable().to_json(orient="records", date_format="iso", force_ascii=False)
        return f"{text}\n"
    return text_table(table)
