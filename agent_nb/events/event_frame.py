"""The DataFrame of events: how it shows itself in a notebook, and how it travels into files.

Why a class of its own: pandas writes `NaN` and `NaT` into every empty cell, notebooks wrap times
and set texts flush right, and Parquet, Arrow and Excel refuse nested values, or take them for what
they are not.

Rules
- Only showing and writing differ from pandas; the values stay what they are.
- Nested values become JSON text where a format cannot hold them; what is whole numbers is written
  as such.
- A text is never a formula in a spreadsheet: what a model or a tool wrote is not run by who opens
  the file.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pandas as pd

from .columns import PRESETS


def _text() -> Any:
    """Return the type of texts whose missing value is NaN in this pandas."""
    if int(pd.__version__.split(".")[0]) >= 3:
        return "str"
    try:
        return pd.StringDtype("python", na_value=float("nan"))  # type: ignore[call-arg,unused-ignore]  # from pandas 2.3
    except TypeError:
        return object


TEXT = _text()
KINDS = {c.name: c.kind for listed in PRESETS.values() for c in listed}
CELL = 32_767  # characters that a cell of a spreadsheet holds
CUT = "…"
FORMULA = ("=", "{=")  # how a text begins that the writers of spreadsheets take for a formula
# XML cannot hold them
UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
SHOWN = "agent-nb-frame"
NOWRAP = f".{SHOWN} td, .{SHOWN} th {{ white-space: nowrap; }}"
LEFT = ".{0} td:nth-of-type({1}), .{0} thead th:nth-of-type({2}) {{ text-align: left; }}"


class EventFrame(pd.DataFrame):
    """A DataFrame of events: it reads well in a notebook and goes into every format as it is."""

    @property
    def _constructor(self) -> type[EventFrame]:
        return EventFrame

    def portable(self) -> pd.DataFrame:
        """Return a plain DataFrame in which nested values are JSON text and whole numbers nullable
        integers.
        """
        plain = pd.DataFrame({name: self[name] for name in self.columns})
        for name in plain.columns:
            if plain[name].dtype == object and not _texts(name, plain[name]):
                plain[name] = pd.Series(
                    [as_json(v) for v in plain[name]], index=plain.index, dtype=TEXT
                )
            elif _whole(name, plain[name]):
                plain[name] = plain[name].astype("Int64")
        return plain

    def to_parquet(self, path: Any = None, **options: Any) -> Any:
        """Write Parquet as pandas does, nested values as JSON text."""
        return self.portable().to_parquet(path, **options)

    def to_feather(self, path: Any, **options: Any) -> None:
        """Write Feather as pandas does, nested values as JSON text."""
        self.portable().to_feather(path, **options)

    def to_csv(self, path_or_buf: Any = None, **options: Any) -> Any:
        """Write CSV as pandas does, nested values as JSON text."""
        return self.portable().to_csv(path_or_buf, **options)

    def to_excel(self, excel_writer: Any, **options: Any) -> None:  # type: ignore[misc,unused-ignore]  # final in some stubs only
        """Write a spreadsheet as pandas does: nested values as JSON text, times in UTC, texts as
        texts, cut where a cell is full.
        """
        plain = self.portable()
        for name in plain.columns:
            values = plain[name]
            if isinstance(values.dtype, pd.DatetimeTZDtype):
                plain[name] = values.dt.tz_convert("UTC").dt.tz_localize(None)
            elif not pd.api.types.is_numeric_dtype(
                values.dtype
            ) and not pd.api.types.is_timedelta64_dtype(values.dtype):
                plain[name] = values.astype(object).map(_cell, na_action="ignore")
        plain.to_excel(excel_writer, **options)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.portable().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str | None:
        if not pd.get_option("display.notebook_repr_html") or not self.columns.is_unique:
            return super()._repr_html_()  # type: ignore[misc,no-any-return]  # the stubs leave it out
        option = {
            name: pd.get_option(f"display.{name}")
            for name in ("max_rows", "min_rows", "max_columns", "show_dimensions")
        }
        whole = not option["max_rows"] or len(self) <= option["max_rows"]
        texts = (
            self._texts()
            if len(self.columns) <= (option["max_columns"] or len(self.columns))
            else []
        )
        # styles are not bounded to their table, so the class says which they are
        name = "-".join(["agent-nb-left", *map(str, texts)])
        drawn = self._without_none().to_html(
            na_rep="",
            classes=f"{SHOWN} {name}",
            notebook=True,
            show_dimensions=option["show_dimensions"],
            max_cols=option["max_columns"],
            max_rows=None if whole else option["min_rows"] or option["max_rows"],
            formatters=self._formatters(),
        )
        rules = [NOWRAP, *(LEFT.format(name, column, column + 1) for column in texts)]
        return drawn.replace(
            "<style scoped>\n", "<style scoped>\n" + "".join(f"    {rule}\n" for rule in rules), 1
        )

    def _texts(self) -> list[int]:
        """Return the places of the columns that hold words, from 1; none where headers take more
        than one line.
        """
        if self.columns.nlevels > 1 or self.index.nlevels > 1:
            return []
        numeric, time = pd.api.types.is_numeric_dtype, pd.api.types.is_timedelta64_dtype
        return [
            place
            for place, dtype in enumerate(self.dtypes, 1)
            if not numeric(dtype) and not time(dtype)
        ]

    def _without_none(self) -> pd.DataFrame:
        """Return a frame in which None, which pandas would spell out, is missing as everything else
        is.
        """
        shown = self.copy(deep=False)
        for name in self.columns:
            if self[name].dtype == object:
                shown[name] = self[name].where(self[name].notna(), float("nan"))
        return shown

    def _formatters(self) -> dict[Any, Any]:
        """Return how columns are written that pandas writes at length: whole numbers and times."""
        found: dict[Any, Any] = {}
        for name in self.columns:
            if isinstance(self[name].dtype, pd.DatetimeTZDtype):
                found[name] = lambda time: "" if pd.isna(time) else time.isoformat(" ", "seconds")
            elif pd.api.types.is_timedelta64_dtype(self[name].dtype):
                found[name] = lambda time: "" if pd.isna(time) else str(time)
            elif _whole(name, self[name]):
                found[name] = lambda number: "" if pd.isna(number) else f"{number:.0f}"
        return found


def as_json(value: Any) -> Any:
    """Return a nested value as JSON text; what is missing stays missing."""
    missing = value is None or (isinstance(value, float) and value != value)  # noqa: PLR0124  (NaN)
    return (
        float("nan")
        if missing
        else msgspec.json.encode(value, enc_hook=str).decode("utf-8", "replace")
    )


def _whole(name: Any, values: Any) -> bool:
    """Return whether these are the floats of a column of integers, and still whole: a
    mean is not.
    """
    return bool(
        KINDS.get(name) == "int" and values.dtype == float and (values.dropna() % 1 == 0).all()
    )


def _texts(name: Any, values: Any) -> bool:
    """Return whether an object column holds texts, which need no JSON."""
    return KINDS.get(name) != "object" and pd.api.types.infer_dtype(values, skipna=True) in (
        "string",
        "empty",
    )


def _cell(value: Any) -> Any:
    """Return a value as a spreadsheet may hold it."""
    text = UNPRINTABLE.sub("", str(value))
    text = f"'{text}" if text.startswith(FORMULA) else text
    return text if len(text) <= CELL else text[: CELL - len(CUT)] + CUT
