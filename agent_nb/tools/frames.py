"""What tables and arrays of pandas, polars and NumPy hold, read from their own storage.

Why apart from `describe`: how a library stores its columns is its own matter, and changes with it.

Rules
- Only objects of known classes are read (`safe_types`), and of pandas only what lies behind a block
  manager, index or array of a known class. Their public methods reach code of a column's foreign
  array: `dtypes`, `shape` and `str(dtype)` do.
- The cost does not depend on the number of rows. A lazy frame is never collected.
- What is not known (a foreign array, a storage of another release) is left out: a fact less, never
  an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from .safe_types import ABSENT, is_a, module_space, public_name, read_field, type_name

COLUMNS = 60
_BITS = 8
_USER_DTYPES = 256  # from this `num` on a dtype of NumPy belongs to a user
_NUMPY_TEXTS = {"U": "str", "S": "bytes"}
# fields in which arrays and indexes of pandas keep what holds their values
_STORES = ("_ndarray", "_data", "_pa_array", "_left")
# the dtypes of arrays whose storage does not show it
_ARRAY_NAMES = {
    "Categorical": "category",
    "PeriodArray": "period",
    "IntervalArray": "interval",
    "SparseArray": "sparse",
    "StringArray": "str",
    "ArrowStringArray": "str",
    "BooleanArray": "boolean",
}
# what polars turns into plain Python values; a list or an object may hold anything.
_POLARS_SCALAR = re.compile(
    r"[iu]\d+|f\d+|bool|str|date|time|cat|enum|null|(datetime|duration)\[[^\[\]]*\]"
)


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a table or array.

    `columns` are (label, dtype), the first `COLUMNS` of `width`; a label may be any object. `row`
    returns the cells of one row, ABSENT for those that cannot be read; any object may be in one.
    """

    shape: tuple[int, ...] = ()
    dtype: str = ""
    columns: tuple[tuple[Any, str], ...] = ()
    width: int = 0
    row: Callable[[int], Iterable[Any]] | None = None

    def rows(self, count: int) -> list[list[Any]]:
        """Return the first rows, none if they cannot be read."""
        if self.row is None:
            return []
        try:
            return [list(self.row(n)) for n in range(min(count, self.shape[0]))]
        except Exception:  # another release stores them in another way
            return []


def read_table(value: Any) -> Table | None:
    """Return what is known of a table or array; None of other values, or if it cannot be read."""
    reader = _READERS.get(public_name(value))
    try:
        return reader(value) if reader is not None else None
    except Exception:  # another release stores it in another way
        return None


def _read_array(array: Any) -> Table:
    # None: an array of no, three or more dimensions has no rows to show
    row = {1: lambda n: [array[n]], 2: lambda n: array[n, :COLUMNS]}.get(array.ndim)
    return Table(shape=array.shape, dtype=_numpy_dtype(array.dtype), row=row)


def _numpy_dtype(dtype: Any) -> str:
    """Return the name of a dtype; its `repr` would show what users put into it."""
    if dtype.num >= _USER_DTYPES:
        return type_name(dtype.type)
    if dtype.kind == "V":  # its type may be a user's subclass
        size = dtype.itemsize * _BITS
        return f"structured of {len(dtype.names)}" if dtype.names else f"void{size}"
    return _NUMPY_TEXTS.get(dtype.kind) or str(dtype.name)


def _read_frame(frame: Any) -> Table:
    manager = _manager(frame)
    (width,), _, label = _read_axis(manager.axes[0])
    (height,), _, _ = _read_axis(manager.axes[1])
    # a block holds one or several columns of one dtype: of each column, its block and place there
    numbers, places = (n[:COLUMNS].tolist() for n in (manager.blknos, manager.blklocs))
    blocks = {n: _read_column(read_field(manager.blocks[n], "values")) for n in {*numbers}}
    shown = [blocks[number] for number in numbers]
    return Table(
        shape=(height, width),
        columns=tuple((label(n), dtype) for n, (dtype, _) in enumerate(shown)),
        width=width,
        row=lambda row: (cell(row, at) for (_, cell), at in zip(shown, places, strict=True)),
    )


def _read_series(series: Any) -> Table:
    manager = _manager(series)
    shape, _, _ = _read_axis(manager.axes[0])
    dtype, cell = _read_column(read_field(manager.blocks[0], "values"))
    return Table(shape=shape, dtype=dtype, row=lambda row: [cell(row, 0)])


def _read_index(index: Any) -> Table:
    shape, dtype, _ = _read_axis(index)
    return Table(shape=shape, dtype=dtype)


def _manager(value: Any) -> Any:
    """Return the block manager of a pandas object. Raises TypeError if it is not pandas' own."""
    manager = read_field(value, "_mgr")
    if not public_name(manager).startswith("pandas.core.internals.managers."):
        raise TypeError
    return manager


def _read_axis(index: Any) -> tuple[tuple[int, ...], str, Callable[[int], Any]]:
    """Return the shape of a pandas index, () if it is foreign; its dtype; and how to read a label,
    which is ABSENT if it cannot be read.
    """
    steps, codes, data = (read_field(index, name) for name in ("_range", "_codes", "_data"))
    if type(steps) is range:
        return (len(steps),), "int64", steps.__getitem__
    if not is_a(codes, list):
        store, (dtype, cell) = _find_store(data), _read_column(data)
        return () if store is None else (len(store),), dtype, lambda row: cell(row, 0)
    levels = map(_read_categories, list.__iter__(read_field(index, "_levels")))
    parts = list(zip(levels, map(_find_store, list.__iter__(codes)), strict=True))

    def label(row: int) -> tuple[Any, ...]:
        return tuple(category(code[row]) for category, code in parts)

    return (len(parts[0][1]),), f"{len(parts)} levels", label


def _read_column(values: Any) -> tuple[str, Callable[[int, int], Any]]:
    """Return the dtype of a pandas array, its class if that is foreign; and how to read a value:
    from its row, and its column in a block. It is None if missing, ABSENT if it cannot be read.
    """
    array, store = public_name(values).removeprefix("pandas.arrays."), _find_store(values)
    name = _ARRAY_NAMES.get(array)
    if store is None or array in ("PeriodArray", "IntervalArray"):
        return name or type_name(type(values)), lambda row, column: ABSENT
    if public_name(store) == "pyarrow.ChunkedArray":
        known = public_name(store.type)
        kind = store.type if known else type_name(type(store.type))
        return name or f"{kind}[pyarrow]", lambda row, _: store[row].as_py() if known else ABSENT
    own, mask = read_field(values, "_dtype"), _find_store(read_field(values, "_mask"))
    if array == "Categorical":
        category = _read_categories(read_field(own, "_categories"))
        return "category", lambda row, column: category(store[row])
    name = name or _numpy_dtype(store.dtype)
    if array in ("IntegerArray", "FloatingArray"):
        name = name.title().replace("Ui", "UI")  # as pandas writes them: UInt8, Float32
    elif array == "DatetimeArray" and type(own) is not type(store.dtype):
        name = f"{name[:-1]}, tz]"  # the zone may be an object of the user's

    def cell(row: int, column: int) -> Any:
        if mask is not None and public_name(mask[row]) == "numpy.bool_" and mask[row]:
            return None
        return store[column, row] if store.ndim > 1 else store[row]

    return name, cell


def _read_categories(index: Any) -> Callable[[Any], Any]:
    """Return how to read what a number stands for: a category, or a label of one level."""
    _, label = _read_column(read_field(index, "_data"))

    def category(code: Any) -> Any:
        if not public_name(code).startswith("numpy.int"):
            return ABSENT
        return None if code < 0 else label(int(code), 0)

    return category


def _find_store(values: Any) -> Any:
    """Return the NumPy or Arrow array in which pandas keeps `values`, None if a class on the way
    there is not known.
    """
    if public_name(values) in ("numpy.ndarray", "pyarrow.ChunkedArray"):
        return values
    inner = (read_field(values, name) for name in _STORES)
    return next((_find_store(held) for held in inner if held is not ABSENT), None)


def _read_polars_frame(frame: Any) -> Table:
    raw = _engine(frame, "_df")
    height, width = raw.shape()
    # written by polars itself; `dtypes` would make objects of registered types
    columns = tuple(zip(raw.columns()[:COLUMNS], raw.dtype_strings()[:COLUMNS], strict=True))

    def row(number: int) -> Iterator[Any]:
        for name, dtype in columns:
            plain = _POLARS_SCALAR.fullmatch(dtype)
            yield raw.get_column(name).get_index(number) if plain else ABSENT

    return Table(shape=(height, width), columns=columns, width=width, row=row)


def _read_polars_series(series: Any) -> Table:
    raw = _engine(series, "_s")
    modules = map(module_space, ("polars._plr", "polars.polars"))
    frame = next(space["PyDataFrame"] for space in modules if space)
    dtype = frame([raw]).dtype_strings()[0]
    plain = _POLARS_SCALAR.fullmatch(dtype)
    row = (lambda number: [raw.get_index(number)]) if plain else None
    return Table(shape=(raw.len(),), dtype=dtype, row=row)


def _engine(value: Any, name: str) -> Any:
    """Return what polars keeps behind an object. Raises TypeError if it is not polars' own."""
    raw = read_field(value, name)
    if not public_name(raw).startswith(("polars._plr.", "polars.polars.")):
        raise TypeError
    return raw


_INDEXES = ("", "Range", "Multi", "Datetime", "Timedelta", "Categorical", "Period")
_READERS: dict[str, Callable[[Any], Table]] = {
    "numpy.ndarray": _read_array,
    "pandas.DataFrame": _read_frame,
    "pandas.Series": _read_series,
    "polars.DataFrame": _read_polars_frame,
    "polars.Series": _read_polars_series,
    **dict.fromkeys((f"pandas.{kind}Index" for kind in _INDEXES), _read_index),
}
