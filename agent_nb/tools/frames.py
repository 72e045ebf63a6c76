"""What tables and arrays of pandas, polars and NumPy hold, read from their own storage.

Why apart from `describe`: how a library stores its columns is its own matter, and changes with it.

Rules
- Only objects whose type is `looks.offered` are read, and of these only fields (`looks.field`): a
  method or property of pandas may reach code of a column's foreign array.
- The cost does not depend on the number of rows. A lazy frame is never collected.
- What is not known (a foreign array, a storage of another release) is left out: a fact less, never
  an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import msgspec

from .looks import ABSENT, field, is_a, library, offered, type_name

COLUMNS = 60
_NUMPY_KINDS = {"i": "int", "u": "uint", "f": "float", "c": "complex"}
_NUMPY_NAMES = {"b": "bool", "O": "object", "U": "str", "S": "bytes", "T": "str"}
_BITS = 8
_USER_DTYPES = 256  # from this number on a dtype is somebody's own
_STORES = ("_ndarray", "_data", "_pa_array", "_left")
_ARRAY_NAMES = {
    "pandas.arrays.Categorical": "category",
    "pandas.arrays.PeriodArray": "period",
    "pandas.arrays.IntervalArray": "interval",
    "pandas.arrays.SparseArray": "sparse",
    "pandas.arrays.StringArray": "str",
    "pandas.arrays.ArrowStringArray": "str",
    "pandas.arrays.BooleanArray": "boolean",
}
# What polars turns into plain Python values; a list or an object may hold anything.
_POLARS_SCALAR = re.compile(
    r"[iu]\d+|f\d+|bool|str|date|time|cat|enum|null|(datetime|duration)\[[^\[\]]*\]"
)


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a table or array: `columns` are (label, dtype), the first `COLUMNS` of
    `width`; a label may be any object.
    """

    shape: tuple[int, ...] = ()
    dtype: str = ""
    columns: tuple[tuple[Any, str], ...] = ()
    width: int = 0


def facts(value: Any) -> Facts | None:
    """Return what is known of `value`, None if it is no table or array that can be read."""
    reader = _READERS.get(offered(value))
    try:
        return reader(value) if reader is not None else None
    except Exception:  # another release stores it in another way
        return None


def cells(value: Any, rows: int) -> list[list[Any]]:
    """Return the first rows of a table, array or column; a cell that cannot be read is ABSENT, and
    any object may be in one.
    """
    reader = _CELLS.get(offered(value))
    try:
        return [list(row) for row in reader(value, rows)] if reader is not None else []
    except Exception:  # as above
        return []


def _array(value: Any) -> Facts:
    return Facts(shape=value.shape, dtype=_numpy_name(value.dtype))


def _numpy_name(dtype: Any) -> str:
    """Return the name of a dtype from its fields; its `repr` would show what users put into it."""
    kind, size = dtype.kind, dtype.itemsize
    if dtype.num >= _USER_DTYPES:
        return type_name(dtype.type)
    if kind in _NUMPY_KINDS:
        return f"{_NUMPY_KINDS[kind]}{size * _BITS}"
    if kind in ("M", "m"):
        unit = dtype.str.partition("[")[1:]
        return f"{'datetime64' if kind == 'M' else 'timedelta64'}{''.join(unit)}"
    if kind == "V":
        return f"structured of {len(dtype.names)}" if dtype.names else f"void{size * _BITS}"
    return _NUMPY_NAMES.get(kind, type_name(type(dtype)))


def _pandas_name(values: Any) -> str:
    """Return the name of the dtype of a column's array."""
    kind = offered(values)
    if kind == "numpy.ndarray":
        return _numpy_name(values.dtype)
    if kind in _ARRAY_NAMES:
        return _ARRAY_NAMES[kind]
    stored = _stored(values)
    if stored is None:
        return type_name(type(values))
    if offered(stored) == "pyarrow.ChunkedArray":
        known = offered(stored.type).startswith("pyarrow.")
        return f"{stored.type if known else type_name(type(stored.type))}[pyarrow]"
    name = _numpy_name(stored.dtype)
    if kind == "pandas.arrays.DatetimeArray":
        return name if type(field(values, "_dtype")) is type(stored.dtype) else f"{name[:-1]}, tz]"
    # pandas' nullable numbers begin with a capital: Int64, UInt8, Float64
    nullable = name.replace("u", "U").replace("int", "Int") if "int" in name else name.title()
    return nullable if kind.endswith(("IntegerArray", "FloatingArray")) else name


def _stored(values: Any, depth: int = 3) -> Any:
    """Return the NumPy or Arrow array in which pandas keeps `values`, None if it is not found."""
    kind = offered(values)
    if kind in ("numpy.ndarray", "pyarrow.ChunkedArray"):
        return values
    inner = next((f for n in _STORES if (f := field(values, n)) is not ABSENT), ABSENT)
    if not kind.startswith("pandas.") or not depth or inner is ABSENT:
        return None
    return _stored(inner, depth - 1)


def _length(index: Any) -> int | None:
    """Return the length of a pandas index."""
    if not offered(index).startswith("pandas."):
        return None
    if type(steps := field(index, "_range")) is range:
        return len(steps)
    codes = field(index, "_codes")
    stored = _stored(list.__getitem__(codes, 0) if is_a(codes, list) else index)
    return None if stored is None else len(stored)


def _labels(index: Any, count: int) -> Iterator[Any]:
    """Yield the first labels of a pandas index; ABSENT for those that cannot be read."""
    steps, codes = field(index, "_range"), field(index, "_codes")
    if type(steps) is range:
        yield from islice(steps, count)
    elif is_a(codes, list):
        levels = list.__iter__(field(index, "_levels"))
        parts = [
            [_label_of(level, code[i]) for i in range(min(count, len(code)))]
            for code, level in zip(list.__iter__(codes), levels, strict=True)
        ]
        yield from zip(*parts, strict=True)
    else:
        data = field(index, "_data")
        yield from (_item(data, i) for i in range(min(count, _length(index) or 0)))


def _label_of(level: Any, code: Any) -> Any:
    """Return what a number of a level or category stands for, None for a missing value."""
    if not offered(code).startswith("numpy.int"):
        return ABSENT
    return None if code < 0 else _item(field(level, "_data"), int(code))


def _pandas_frame(frame: Any) -> Facts:
    manager = _manager(frame)
    columns, rows = field(manager, "axes")
    width, height = _length(columns), _length(rows)
    if width is None or height is None:
        return Facts()
    labels = islice(_labels(columns, COLUMNS), COLUMNS)
    names = (_pandas_name(values) for values, _ in _placed(manager, min(width, COLUMNS)))
    return Facts(
        shape=(height, width), columns=tuple(zip(labels, names, strict=False)), width=width
    )


def _manager(value: Any) -> Any:
    """Return the block manager of a pandas object. Raises TypeError if it is not pandas' own."""
    manager = field(value, "_mgr")
    if not offered(manager).startswith("pandas.core.internals.managers."):
        raise TypeError
    return manager


def _placed(manager: Any, width: int) -> list[tuple[Any, int]]:
    """Return, for each of the first columns, the array that holds it and its row in there."""
    found: dict[int, tuple[Any, int]] = {}
    for block in field(manager, "blocks"):
        placement, values = field(block, "_mgr_locs"), _values(block)
        columns: Any = field(placement, "as_array") if offered(placement) else None
        near = () if columns is None else (columns < width).nonzero()[0]
        found |= {int(columns[row]): (values, int(row)) for row in near}
    return [found.get(column, (ABSENT, 0)) for column in range(width)]


def _values(block: Any) -> Any:
    return field(block, "values") if offered(block) else ABSENT


def _pandas_series(series: Any) -> Facts:
    manager = _manager(series)
    length = _length(field(manager, "axes")[0])
    values = _values(field(manager, "blocks")[0])
    return Facts(shape=() if length is None else (length,), dtype=_pandas_name(values))


def _pandas_index(index: Any) -> Facts:
    length = _length(index)
    if type(field(index, "_range")) is range:
        dtype = "int64"
    elif is_a(codes := field(index, "_codes"), list):
        dtype = f"{list.__len__(codes)} levels"
    else:
        dtype = _pandas_name(field(index, "_data"))
    return Facts(shape=() if length is None else (length,), dtype=dtype)


def _polars_frame(frame: Any) -> Facts:
    raw = _raw(frame, "_df")
    height, width = raw.shape()
    # written by polars itself; `dtypes` would make objects of registered types
    columns = zip(raw.columns()[:COLUMNS], raw.dtype_strings()[:COLUMNS], strict=True)
    return Facts(shape=(height, width), columns=tuple(columns), width=width)


def _polars_series(series: Any) -> Facts:
    raw = _raw(series, "_s")
    return Facts(shape=(raw.len(),), dtype=_polars_name(raw))


def _polars_name(raw: Any) -> str:
    frame: Any = next(
        made
        for module in ("polars._plr", "polars.polars")
        if (made := library(module).get("PyDataFrame"))
    )
    return str(frame([raw]).dtype_strings()[0])


def _raw(value: Any, name: str) -> Any:
    raw = field(value, name)
    if not offered(raw).startswith(("polars._plr.", "polars.polars.")):
        raise TypeError
    return raw


def _pandas_rows(frame: Any, rows: int) -> Iterator[Iterator[Any]]:
    manager = _manager(frame)
    columns, index = field(manager, "axes")
    placed = _placed(manager, min(_length(columns) or 0, COLUMNS))
    for row in range(min(rows, _length(index) or 0)):
        yield (_item(values, row, place) for values, place in placed)


def _series_rows(series: Any, rows: int) -> Iterator[list[Any]]:
    manager = _manager(series)
    values = _values(field(manager, "blocks")[0])
    for row in range(min(rows, _length(field(manager, "axes")[0]) or 0)):
        yield [_item(values, row)]


def _array_rows(array: Any, rows: int) -> Iterator[list[Any]]:
    for row in range(min(rows, array.shape[0])) if array.ndim in (1, 2) else ():
        yield [array[row]] if array.ndim == 1 else list(array[row, :COLUMNS])


def _polars_rows(frame: Any, rows: int) -> Iterator[list[Any]]:
    raw = _raw(frame, "_df")
    columns = [_polars_column(raw, name) for name in raw.columns()[:COLUMNS]]
    for row in range(min(rows, raw.shape()[0])):
        yield [ABSENT if column is None else column.get_index(row) for column in columns]


def _polars_column(raw: Any, name: str) -> Any:
    column = raw.get_column(name)
    return column if _POLARS_SCALAR.fullmatch(_polars_name(column)) else None


def _polars_items(series: Any, rows: int) -> Iterator[list[Any]]:
    raw = _raw(series, "_s")
    for row in range(min(rows, raw.len())) if _POLARS_SCALAR.fullmatch(_polars_name(raw)) else ():
        yield [raw.get_index(row)]


def _item(values: Any, row: int, place: int = 0) -> Any:
    """Return one value of a pandas column, None where it is missing, ABSENT where its array is not
    plain.
    """
    kind, stored = offered(values), _stored(values)
    if kind == "pandas.arrays.Categorical":
        dtype = field(values, "_dtype")
        categories = field(dtype, "_categories") if offered(dtype) else ABSENT
        return _label_of(categories, stored[row]) if offered(categories) else ABSENT
    if stored is None or kind in ("pandas.arrays.PeriodArray", "pandas.arrays.IntervalArray"):
        return ABSENT
    if offered(stored) == "pyarrow.ChunkedArray":
        return stored[row].as_py() if offered(stored.type) else ABSENT
    mask = field(values, "_mask") if kind.startswith("pandas.arrays.") else ABSENT
    if offered(mask) == "numpy.ndarray" and offered(mask[row]) == "numpy.bool_" and mask[row]:
        return None
    return stored[place, row] if stored.ndim > 1 else stored[row]


_READERS: dict[str, Callable[[Any], Facts]] = {
    "numpy.ndarray": _array,
    "pandas.DataFrame": _pandas_frame,
    "pandas.Series": _pandas_series,
    "polars.DataFrame": _polars_frame,
    "polars.Series": _polars_series,
    **{
        f"pandas.{name}Index": _pandas_index
        for name in ("", "Range", "Multi", "Datetime", "Timedelta", "Categorical", "Period")
    },
}
_CELLS: dict[str, Callable[[Any, int], Iterator[Any]]] = {
    "numpy.ndarray": _array_rows,
    "pandas.DataFrame": _pandas_rows,
    "pandas.Series": _series_rows,
    "polars.DataFrame": _polars_rows,
    "polars.Series": _polars_items,
}
