"""The DataFrame of events: its display in a notebook, and how it is written to files.

pandas shows `NaN` in empty cells and wraps times; Parquet, Arrow and Excel refuse or misread nested
values. Only display and writing differ from pandas; the values are the same.

Rule: in a spreadsheet, texts and the names of rows and columns are never formulas, because opening
the file must not run what a model or a tool wrote. CSV has no such guard.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pandas as pd

from .column_type import replace_half_characters
from .columns import PRESETS


def _text_dtype() -> Any:
    """Return this pandas version's dtype of texts with NaN as the missing value."""
    if int(pd.__version__.split(".")[0]) >= 3:
        return "str"
    try:
        return pd.StringDtype("python", na_value=float("nan"))  # type: ignore[call-arg,unused-ignore]  # from pandas 2.3
    except TypeError:
        return object


TEXT = _text_dtype()  # the dtype of text columns


def text_array(values: Any) -> Any:
    """Return an object array of texts and missing values as an array of dtype TEXT.

    `values` may be changed in place.
    """
    if TEXT is object:  # this dtype keeps None, so replace it
        values[pd.isna(values)] = float("nan")
    try:
        return pd.array(values, dtype=TEXT)
    except UnicodeEncodeError:
        whole = [replace_half_characters(v) if isinstance(v, str) else v for v in values]
        return pd.array(whole, dtype=TEXT)


# name of a column -> its kind; a user may have added other columns to a frame
_KIND_OF = {c.name: c.kind for listed in PRESETS.values() for c in listed}
CELL_LENGTH = 32_767  # characters that a spreadsheet cell holds
CUT = "…"  # ends a text that a cell cannot hold
FORMULA_STARTS = ("=", "{=")  # of a text that spreadsheet writers take for a formula
# characters that the XML of a spreadsheet cannot hold
UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
CSS_CLASS = "agent-nb-frame"  # the CSS class of the tables in a notebook
NO_WRAP = f".{CSS_CLASS} td, .{CSS_CLASS} th {{ white-space: nowrap; }}"
# {0}: the class of the table; {1}: the number of a column in the body; {2}: its number in the
# header, where the index counts too
ALIGN_LEFT = ".{0} td:nth-of-type({1}), .{0} thead th:nth-of-type({2}) {{ text-align: left; }}"


class EventFrame(pd.DataFrame):
    """A DataFrame of events that reads well in a notebook and can be written in every format."""

    @property
    def _constructor(self) -> type[EventFrame]:
        return EventFrame

    def portable(self) -> pd.DataFrame:
        """Return a plain DataFrame: nested values as JSON text, integers as nullable integers."""
        plain = pd.DataFrame({name: self[name] for name in self.columns})
        for name in plain.columns:
            if plain[name].dtype == object and not _holds_texts(name, plain[name]):
                texts = list(map(as_json, plain[name]))
                plain[name] = pd.Series(texts, index=plain.index, dtype=TEXT)
            elif _is_whole(name, plain[name]):
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
        """Write a spreadsheet as pandas does, nested values as JSON text and times in UTC.

        Texts are never formulas, and are cut if they exceed a cell.
        """
        plain = self.portable()
        for name in plain.columns:
            values = plain[name]
            if isinstance(values.dtype, pd.DatetimeTZDtype):
                plain[name] = values.dt.tz_convert("UTC").dt.tz_localize(None)
            elif not _is_right_aligned(values.dtype):
                plain[name] = values.astype(object).map(_spreadsheet_text, na_action="ignore")
        plain = plain.rename(index=_spreadsheet_label, columns=_spreadsheet_label)
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
        max_rows, max_columns = option["max_rows"], option["max_columns"]
        leaves_rows_out = bool(max_rows) and len(self) > max_rows
        texts = self._text_positions()
        if max_columns and len(self.columns) > max_columns:
            texts = []  # pandas leaves columns out, so the positions would be wrong
        # a style applies to every table of the page, so the class names the columns
        css_class = "-".join(["agent-nb-left", *map(str, texts)])
        html = self._without_none().to_html(
            na_rep="",
            classes=f"{CSS_CLASS} {css_class}",
            notebook=True,
            show_dimensions=option["show_dimensions"],
            max_cols=max_columns,
            max_rows=(option["min_rows"] or max_rows) if leaves_rows_out else None,
            formatters=self._formatters(),
        )
        # pandas writes this style element because of notebook=True
        rules = [NO_WRAP, *(ALIGN_LEFT.format(css_class, column, column + 1) for column in texts)]
        return html.replace(
            "<style scoped>\n", "<style scoped>\n" + "".join(f"    {rule}\n" for rule in rules), 1
        )

    def _text_positions(self) -> list[int]:
        """Return the positions, from 1, of the columns to align left; [] if a header has levels."""
        if self.columns.nlevels > 1 or self.index.nlevels > 1:
            return []
        return [n for n, dtype in enumerate(self.dtypes, 1) if not _is_right_aligned(dtype)]

    def _without_none(self) -> pd.DataFrame:
        """Return a frame with NaN for None: pandas prints None, but `na_rep` for NaN."""
        frame = self.copy(deep=False)
        for name in self.columns:
            if self[name].dtype == object:
                frame[name] = self[name].where(self[name].notna(), float("nan"))
        return frame

    def _formatters(self) -> dict[Any, Any]:
        """Return functions that shorten how pandas writes times, durations and whole numbers."""
        formatters: dict[Any, Any] = {}
        for name in self.columns:
            if isinstance(self[name].dtype, pd.DatetimeTZDtype):
                formatters[name] = lambda time: (
                    "" if pd.isna(time) else time.isoformat(" ", "seconds")
                )
            elif pd.api.types.is_timedelta64_dtype(self[name].dtype):
                formatters[name] = lambda time: "" if pd.isna(time) else str(time)
            elif _is_whole(name, self[name]):
                formatters[name] = lambda number: "" if pd.isna(number) else f"{number:.0f}"
        return formatters


def as_json(value: Any) -> Any:
    """Return a nested value as JSON text; a missing value stays missing."""
    missing = value is None or (isinstance(value, float) and value != value)  # noqa: PLR0124  (NaN)
    return float("nan") if missing else _encode(value)


def _encode(value: Any) -> str:
    """Return JSON text; `str` writes values that JSON does not have."""
    try:
        return msgspec.json.encode(value, enc_hook=str).decode("utf-8", "replace")
    except UnicodeEncodeError:  # a lone surrogate, which `json` escapes
        return json.dumps(value, default=str)


def _is_right_aligned(dtype: Any) -> bool:
    """Return whether a column has numbers or durations."""
    return pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_timedelta64_dtype(dtype)


def _is_whole(name: Any, values: Any) -> bool:
    """Return whether a column of kind `int` holds only whole numbers that a float holds exactly."""
    # means may have fractions, and counts of a foreign stream may exceed every integer type
    if _KIND_OF.get(name) != "int" or values.dtype != float:
        return False
    numbers = values.dropna()
    return bool(((numbers % 1 == 0) & (numbers.abs() <= 2**53)).all())


def _holds_texts(name: Any, values: Any) -> bool:
    """Return whether an object column holds texts, which are not written as JSON."""
    infer = pd.api.types.infer_dtype
    return _KIND_OF.get(name) != "object" and infer(values, skipna=True) in ("string", "empty")


def _spreadsheet_text(value: Any) -> Any:
    """Return a value as text for a spreadsheet cell; a leading ' keeps it from being a formula."""
    text = UNPRINTABLE.sub("", str(value))
    text = f"'{text}" if text.startswith(FORMULA_STARTS) else text
    return text if len(text) <= CELL_LENGTH else text[: CELL_LENGTH - len(CUT)] + CUT


def _spreadsheet_label(name: Any) -> Any:
    """Return the name of a row or column for a spreadsheet; only texts can be formulas."""
    return _spreadsheet_text(name) if isinstance(name, str) else name
