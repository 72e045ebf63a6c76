"""Read tables and arrays of pandas, polars and NumPy from their private storage.

Why: pandas' public attributes `dtypes`, `shape` and `str(dtype)` run code of a foreign extension
array. Why apart from `describe`: that storage changes with releases, so what cannot be read is left
out, not an error. The cost does not depend on the number of rows.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from .known_types import public_name, read_field
from .safe_types import ABSENT, SAFE_ZONES, is_a, is_exactly, module_space, type_name

MOST_COLUMNS = 60  # that are read of a table
_BITS_PER_BYTE = 8
_USER_DTYPES = 256  # NumPy numbers its own dtypes below; users' dtypes have this `num` or more
_NUMPY_TEXTS = {"U": "str", "S": "bytes"}  # kind of a NumPy dtype of texts -> its short name
# the fields in which pandas' arrays and indexes keep the array with their values (`_left`: the
# lower bounds of intervals); tried in this order
_STORAGE_FIELDS = ("_ndarray", "_data", "_pa_array", "_left")
# the modules of the objects that hold a whole table (`_get_storage`)
_STORAGE_MODULES = ("pandas.core.internals.managers.", "polars._plr.", "polars.polars.")
# pandas arrays whose inner array holds only a part of each value: class -> dtype
_UNREADABLE = {"PeriodArray": "period", "IntervalArray": "interval"}
# and all arrays whose inner array has another dtype, such as that of codes: class -> dtype
_ARRAY_NAMES = {
    "Categorical": "category",
    **_UNREADABLE,
    "SparseArray": "sparse",
    "StringArray": "str",
    "ArrowStringArray": "str",
    "BooleanArray": "boolean",
}
# the dtypes, as polars writes them, whose values become plain Python objects; a list, struct or
# object column may hold anything and is not read
_POLARS_SCALAR = re.compile(
    r"[iu]\d+|f\d+|bool|str|date|time|cat|enum|null|(datetime|duration)\[[^\[\]]*\]"
)
# the dtype of a pandas array, and its function `cell(row, column)`
_Column = tuple[str, Callable[[int, int], Any]]


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a table or array.

    `columns`: the (label, dtype) of the first `MOST_COLUMNS` of `width` columns. `row`: a function
    from the number of a row to its cells, with ABSENT for a cell that cannot be read; None if no
    rows can be shown. A label or cell may be any object, so the caller writes only plain ones.
    """

    shape: tuple[int, ...] = ()
    dtype: str = ""
    columns: tuple[tuple[Any, str], ...] = ()
    width: int = 0
    row: Callable[[int], Iterable[Any]] | None = None

    def read_rows(self, count: int) -> list[list[Any]]:
        """Return the first `count` rows, [] if they cannot be read."""
        if self.row is None:
            return []
        try:
            return [list(self.row(n)) for n in range(min(count, self.shape[0]))]
        except Exception:  # another release stores them in another way
            return []


class _Axis(msgspec.Struct, frozen=True):
    """A pandas index: the labels of the rows or columns of a table."""

    shape: tuple[int, ...]  # () for a foreign index
    dtype: str
    label: Callable[[int], Any]  # from a row to its label, ABSENT if it cannot be read


def read_table(value: Any) -> Table | None:
    """Return what is known of a table or array; None if `value` is neither or cannot be read."""
    reader = _READERS.get(public_name(value))
    try:
        return reader(value) if reader is not None else None
    except Exception:  # another release stores it in another way
        return None


def _read_array(array: Any) -> Table:
    # None: an array of no, three or more dimensions has no rows to show
    row = {1: lambda n: [array[n]], 2: lambda n: array[n, :MOST_COLUMNS]}.get(array.ndim)
    return Table(shape=array.shape, dtype=_numpy_dtype(array.dtype), row=row)


def _numpy_dtype(dtype: Any) -> str:
    """Return a short name of a dtype, without its metadata and field names, which `repr` shows."""
    if dtype.num >= _USER_DTYPES:
        return type_name(dtype.type)
    if dtype.kind == "V":  # its type may be a user's subclass
        size = dtype.itemsize * _BITS_PER_BYTE
        return f"structured of {len(dtype.names)}" if dtype.names else f"void{size}"
    return _NUMPY_TEXTS.get(dtype.kind) or str(dtype.name)


def _read_frame(frame: Any) -> Table:
    """Read a DataFrame of pandas, whose columns are stored in blocks."""
    manager = _get_storage(frame, "_mgr")
    labels, rows = map(_read_axis, manager.axes)
    (width,), (height,) = labels.shape, rows.shape
    # a block holds one or several columns of one dtype: `blknos` has the block of each column, and
    # `blklocs` its position in that block
    numbers, positions = (n[:MOST_COLUMNS].tolist() for n in (manager.blknos, manager.blklocs))
    blocks = {n: _read_column(read_field(manager.blocks[n], "values")) for n in {*numbers}}
    shown = [blocks[number] for number in numbers]
    return Table(
        shape=(height, width),
        columns=tuple((labels.label(n), dtype) for n, (dtype, _) in enumerate(shown)),
        width=width,
        row=lambda row: (cell(row, at) for (_, cell), at in zip(shown, positions, strict=True)),
    )


def _read_series(series: Any) -> Table:
    manager = _get_storage(series, "_mgr")
    dtype, cell = _read_column(read_field(manager.blocks[0], "values"))
    rows = _read_axis(manager.axes[0])
    return Table(shape=rows.shape, dtype=dtype, row=lambda row: [cell(row, 0)])


def _read_index(index: Any) -> Table:
    axis = _read_axis(index)
    return Table(shape=axis.shape, dtype=axis.dtype)


def _get_storage(value: Any, field: str) -> Any:
    """Return the object in which a table or series keeps its values.

    pandas has block managers (`_mgr`), polars objects of its Rust engine (`_df`, `_s`). Raises
    TypeError for any other object: it would run its own code.
    """
    storage = read_field(value, field)
    if not public_name(storage).startswith(_STORAGE_MODULES):
        raise TypeError
    return storage


def _read_axis(index: Any) -> _Axis:
    # RangeIndex has `_range`, MultiIndex `_codes` and `_levels`, every other index `_data`
    steps, codes, data = (read_field(index, name) for name in ("_range", "_codes", "_data"))
    if type(steps) is range:
        return _Axis((len(steps),), "int64", steps.__getitem__)
    if is_a(codes, list):
        return _read_levels(read_field(index, "_levels"), codes)
    store, (dtype, cell) = _find_store(data), _read_column(data)
    return _Axis(() if store is None else (len(store),), dtype, lambda row: cell(row, 0))


def _read_levels(levels: Any, codes: Any) -> _Axis:
    """Read a MultiIndex: for each level its values, and the codes of the rows."""
    # `list.__iter__`: the lists are instances of a subclass of pandas
    categories = map(_read_categories, list.__iter__(levels))
    code_arrays = map(_find_store, list.__iter__(codes))
    pairs = list(zip(categories, code_arrays, strict=True))

    def label(row: int) -> tuple[Any, ...]:
        return tuple(category(code_array[row]) for category, code_array in pairs)

    return _Axis((len(pairs[0][1]),), f"{len(pairs)} levels", label)


def _read_column(values: Any) -> _Column:
    """Return the dtype of a pandas array and a function `cell(row, column)` that reads a value.

    The dtype of a foreign array is the name of its class. `column` is the position in a block and
    counts only in arrays of two dimensions. A missing value is None, an unreadable one ABSENT.
    """
    class_name, store = public_name(values).removeprefix("pandas.arrays."), _find_store(values)
    if store is None or class_name in _UNREADABLE:
        return _ARRAY_NAMES.get(class_name) or type_name(type(values)), lambda row, column: ABSENT
    if public_name(store) == "pyarrow.ChunkedArray":
        return _read_arrow(class_name, store)
    own_dtype = read_field(values, "_dtype")
    if class_name == "Categorical":
        category = _read_categories(read_field(own_dtype, "_categories"))
        return "category", lambda row, column: category(store[row])
    dtype, zone = _ARRAY_NAMES.get(class_name) or _numpy_dtype(store.dtype), None
    if class_name in ("IntegerArray", "FloatingArray"):
        dtype = dtype.title().replace("Ui", "UI")  # as pandas writes them: UInt8, Float32
    elif class_name == "DatetimeArray" and type(own_dtype) is not type(store.dtype):
        dtype = f"{dtype[:-1]}, tz]"  # the zone is not named: it may be the user's object
        own_zone = read_field(own_dtype, "_tz")
        zone = own_zone if is_exactly(own_zone, SAFE_ZONES) else datetime.UTC
    mask = _find_store(read_field(values, "_mask"))

    def cell(row: int, column: int) -> Any:
        if mask is not None and public_name(mask[row]) == "numpy.bool_" and mask[row]:
            return None
        # in a block of several columns, each is a row of the array
        value = store[column, row] if store.ndim > 1 else store[row]
        if zone is None:
            return value
        # stored in UTC, which may be another day
        return module_space("pandas")["Timestamp"](value, tz="UTC").tz_convert(zone)

    return dtype, cell


def _read_arrow(class_name: str, store: Any) -> _Column:
    if not public_name(store.type):  # a registered extension type
        dtype = f"{type_name(type(store.type))}[pyarrow]"
        return _ARRAY_NAMES.get(class_name) or dtype, lambda row, column: ABSENT
    dtype = _ARRAY_NAMES.get(class_name) or f"{store.type}[pyarrow]"
    return dtype, lambda row, column: store[row].as_py()


def _read_categories(index: Any) -> Callable[[Any], Any]:
    """Return a function from a code (the position in `index`, -1: missing) to the value there.

    `index` holds the categories of a Categorical, or the labels of one level of a MultiIndex.
    """
    _, label = _read_column(read_field(index, "_data"))

    def category(code: Any) -> Any:
        if not public_name(code).startswith("numpy.int"):
            return ABSENT
        return None if code < 0 else label(int(code), 0)

    return category


def _find_store(values: Any) -> Any:
    """Return the NumPy or Arrow array inside a pandas array, None inside an unknown class."""
    if public_name(values) in ("numpy.ndarray", "pyarrow.ChunkedArray"):
        return values
    arrays = (read_field(values, name) for name in _STORAGE_FIELDS)
    return next((_find_store(array) for array in arrays if array is not ABSENT), None)


def _read_polars_frame(frame: Any) -> Table:
    raw = _get_storage(frame, "_df")
    height, width = raw.shape()
    # `dtype_strings` is written in Rust; `dtypes` would create objects of registered types
    columns = tuple(zip(raw.columns(), raw.dtype_strings(), strict=True))[:MOST_COLUMNS]

    def row(number: int) -> Iterator[Any]:
        for name, dtype in columns:
            plain = _POLARS_SCALAR.fullmatch(dtype)
            yield raw.get_column(name).get_index(number) if plain else ABSENT

    return Table(shape=(height, width), columns=columns, width=width, row=row)


def _read_polars_series(series: Any) -> Table:
    raw = _get_storage(series, "_s")
    # only a frame of the engine names its dtypes as text; the module of the engine may change
    engine = module_space(public_name(raw).rpartition(".")[0])
    dtype = engine["PyDataFrame"]([raw]).dtype_strings()[0]
    row = (lambda number: [raw.get_index(number)]) if _POLARS_SCALAR.fullmatch(dtype) else None
    return Table(shape=(raw.len(),), dtype=dtype, row=row)


_INDEX_KINDS = ("", "Range", "Multi", "Datetime", "Timedelta", "Categorical", "Period", "Interval")
_READERS: dict[str, Callable[[Any], Table]] = {
    "numpy.ndarray": _read_array,
    "pandas.DataFrame": _read_frame,
    "pandas.Series": _read_series,
    "polars.DataFrame": _read_polars_frame,
    "polars.Series": _read_polars_series,
    **dict.fromkeys((f"pandas.{kind}Index" for kind in _INDEX_KINDS), _read_index),
}
