"""Read a table from a file into frames: CSV and TSV, also gzipped, Parquet and Excel.

Why not `read_csv(path)`: files come from other programs and from strangers. Here the encoding and
the separator are detected, and the size is bounded before a library reads the file.
"""

from __future__ import annotations

import importlib
import io
import types
import zipfile
from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any, Literal

from ...errors import UsageError, WireError
from ...tools import one_line
from ...wire import read_unzipped
from ..file_text import decode_text
from ..notices import print_warning

# it reads the user's data, so the stop button (■) interrupts it (`interrupts.STAND_IN`)
ACTS_FOR_USER = True
# a file above one of these limits is refused; only sheets beyond MOST_SHEETS are left out
LARGEST_FILE = 200_000_000  # bytes, also when unpacked
MOST_COLUMNS = 10_000  # of any table
MOST_CELLS = 5_000_000  # of an Excel file
MOST_VALUES = 200_000_000  # of a Parquet file
MOST_SHEETS = 20  # of an Excel file
_LONGEST_HEADER = 1_000_000  # characters of the first line
_SEPARATORS = ",;\t|"
_TEXT = (".csv", ".tsv", ".tab", ".csv.gz", ".tsv.gz")
_TSV = (".tsv", ".tab", ".tsv.gz")
_PARQUET, _EXCEL = (".parquet", ".pq"), (".xlsx", ".xlsm")
ENDINGS = (*_TEXT, *_PARQUET, *_EXCEL)
Library = Literal["pandas", "polars"]


def choose_library(namespace: Mapping[str, Any]) -> Library:
    """Return the library of the frames: polars if the notebook has imported it and not pandas."""
    values = list(namespace.values())
    modules = {vars(v).get("__name__") for v in values if type(v) is types.ModuleType}
    return "polars" if "polars" in modules and "pandas" not in modules else "pandas"


def read_tables(name: str, data: bytes, library: Library) -> dict[str, Any]:
    """Return the frames in a file: of Excel by sheet, else one with the name "".

    Raises UsageError if the file is not a table or too large, or a package that it needs is
    missing.
    """
    lower = name.lower()
    try:
        if lower.endswith(_EXCEL):
            return _read_excel(name, data, library)
        if lower.endswith(_PARQUET):
            return {"": _read_parquet(name, data, library)}
        return {"": _read_text(name, data, library)}
    except UsageError:
        raise
    except ImportError as fault:
        package = "pyarrow" if lower.endswith(_PARQUET) else "openpyxl"
        raise UsageError(
            f"{name} needs a package: pip install {package} ({_shorten_error(fault)})"
        ) from None
    except Exception as fault:
        raise UsageError(f"{name} cannot be read as a table: {_shorten_error(fault)}") from None


def _shorten_error(fault: Exception) -> str:
    return one_line(str(fault).partition("\n")[0] or type(fault).__name__, 200)


def _import_library(library: Library, name: str) -> Any:
    try:
        return importlib.import_module(library)
    except ImportError:
        raise UsageError(
            f"{name} becomes a frame, which needs a package: pip install pandas"
        ) from None


def _read_text(name: str, data: bytes, library: Library) -> Any:
    """Return the frame of a CSV or TSV file, whose encoding and separator are detected."""
    text = decode_text(_unpack(name, data))
    if text is None:
        raise UsageError(f"{name} is not a table: it is not text.")
    text = text.removeprefix("\ufeff")
    header = text[:_LONGEST_HEADER].lstrip("\r\n").partition("\n")[0]
    if not header.strip():
        raise UsageError(f"{name} is empty.")
    is_tsv = name.lower().endswith(_TSV) and "\t" in header
    # else the most frequent separator outside quotes, of equals the first
    separator = "\t" if is_tsv else max(_SEPARATORS, key=_remove_quoted(header).count)
    first_row = _read_first_row(text, len(header))  # it may be wider than the header
    _check_width(name, header, first_row, separator)
    module = _import_library(library, name)
    if library == "polars":
        # all rows decide the type of a column: by default polars refuses a later `1.5` among `1`s
        options = {"try_parse_dates": True, "infer_schema_length": None}
        return module.read_csv(text.encode(), separator=separator, **options)
    # of rows with one field more than the header, pandas takes the first one for a name of the row:
    # right for a file of R, but not where each row ends with a separator
    is_ended = first_row.rstrip("\r").endswith(separator)
    has_more = first_row.count(separator) > header.count(separator)
    index = False if is_ended and has_more else None
    return module.read_csv(io.StringIO(text), sep=separator, index_col=index)


def _check_width(name: str, header: str, first_row: str, separator: str) -> None:
    """Raise UsageError for a text of more columns than `MOST_COLUMNS`."""
    if len(header) == _LONGEST_HEADER or header.count(separator) >= MOST_COLUMNS:
        raise UsageError(
            f"{name} has too long a first line, or more than {MOST_COLUMNS:,} columns."
        )
    if first_row.count(separator) >= MOST_COLUMNS:
        raise UsageError(f"{name} has more than {MOST_COLUMNS:,} columns in its first row.")


def _unpack(name: str, data: bytes) -> bytes:
    """Return the bytes of a file that may be gzipped. Raises UsageError above `LARGEST_FILE`."""
    if not name.lower().endswith(".gz"):
        return data
    pieces, size = [], 0
    try:
        for piece in read_unzipped([data]):
            pieces.append(piece)
            size += len(piece)
            if size > LARGEST_FILE:
                raise UsageError(_too_large(name))
    except WireError as fault:
        raise UsageError(f"{name} cannot be unpacked: {_shorten_error(fault)}") from None
    return b"".join(pieces)


def _too_large(name: str) -> str:
    return f"{name} is larger than {LARGEST_FILE // 1_000_000} MB: read it in a cell, as far as you need it."


def _read_first_row(text: str, header: int) -> str:
    """Return the row below a header of `header` characters, without its quoted texts."""
    begin = text[: header + _LONGEST_HEADER].lstrip("\r\n")[header:].lstrip("\r\n")
    return _remove_quoted(begin).partition("\n")[0]


def _remove_quoted(text: str) -> str:
    # every second piece between quotes is quoted; a doubled quote inside only adds an empty piece
    return "".join(text.split('"')[::2])


def _read_parquet(name: str, data: bytes, library: Library) -> Any:
    """Return the frame of a Parquet file within limits: few bytes can hold billions of values."""
    module = _import_library(library, name)
    if library == "polars":
        width = len(module.read_parquet_schema(io.BytesIO(data)))
        height = module.scan_parquet(io.BytesIO(data)).select(module.len()).collect().item()
    else:
        from pyarrow import parquet

        metadata = parquet.read_metadata(io.BytesIO(data))
        width, height = metadata.num_columns, metadata.num_rows
    if width > MOST_COLUMNS or width * height > MOST_VALUES:
        raise UsageError(
            f"{name} has more than {MOST_VALUES:,} values or {MOST_COLUMNS:,} columns."
        )
    return module.read_parquet(io.BytesIO(data))


def _read_excel(name: str, data: bytes, library: Library) -> dict[str, Any]:
    from openpyxl import load_workbook

    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > LARGEST_FILE:
            raise UsageError(_too_large(name))
    module = _import_library(library, name)
    book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    cells_left, frames = MOST_CELLS, {}
    try:
        if (count := len(book.worksheets)) > MOST_SHEETS:
            print_warning(f"{name} has {count} sheets; the first {MOST_SHEETS} were read.")
        for sheet in book.worksheets[:MOST_SHEETS]:
            sheet.reset_dimensions()  # the size that the file states may be wrong
            rows, cells_left = _read_rows(name, sheet.iter_rows(values_only=True), cells_left)
            if rows:
                frames[str(sheet.title)] = _make_frame(module, rows)
    finally:
        book.close()
    if not frames:
        raise UsageError(f"{name} is empty.")
    return frames


def _read_rows(
    name: str, rows: Iterable[tuple[Any, ...]], cells_left: int
) -> tuple[list[tuple[Any, ...]], int]:
    """Return the rows of a sheet, and how many cells may still be read.

    Empty cells at the end of a row and empty rows above and below the table are left out.
    """
    table: list[tuple[Any, ...]] = []
    empty = 0
    for row in rows:
        width = next((n for n in range(len(row), 0, -1) if row[n - 1] is not None), 0)
        cells_left -= width + 1  # an empty row counts too, so that endless ones are refused
        if cells_left < 0 or width > MOST_COLUMNS:
            raise UsageError(
                f"{name} has more than {MOST_CELLS:,} cells or {MOST_COLUMNS:,} columns."
            )
        if not width:
            empty += 1
            continue
        table += [() for _ in range(empty if table else 0)]
        table.append(row[:width])
        empty = 0
    width = max(map(len, table), default=0)
    if width * len(table) > MOST_CELLS:
        raise UsageError(f"{name} has more than {MOST_CELLS:,} cells.")
    return table, cells_left


def _make_frame(module: Any, rows: list[tuple[Any, ...]]) -> Any:
    """Return a frame whose first row has the names of the columns."""
    width = max(map(len, rows))
    header = [*rows[0], *[None] * (width - len(rows[0]))]
    labels: list[str] = []
    for number, label in enumerate(header, 1):
        text = str(label) if label is not None else f"column_{number}"
        while text in labels:
            text += f"_{number}"
        labels.append(text)
    columns = list(zip_longest(*rows[1:]))
    columns += [(None,) * (len(rows) - 1)] * (width - len(columns))
    values = {label: list(column) for label, column in zip(labels, columns, strict=True)}
    if module.__name__ == "polars":
        return module.DataFrame([_make_series(module, *column) for column in values.items()])
    return module.DataFrame(values)


def _make_series(polars: Any, label: str, values: list[Any]) -> Any:
    """Return a column of polars; of texts, if its values have no common type (dates and texts)."""
    try:
        return polars.Series(label, values, strict=False)
    except Exception:  # polars has no common class for what it raises
        return polars.Series(label, [None if value is None else str(value) for value in values])
