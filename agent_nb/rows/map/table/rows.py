"""The data of a map as rows: a pandas or polars frame, dicts, or texts.

    rows = rows_of(frame)
    rows.names, len(rows), rows.values(0)["text"]

Prompts, attachments and the table of answers then need no case for each library: a missing value
(None, NaN, NaT, NA) is None, one of NumPy or of a subclass a built-in one. pandas and polars are
recognised by the names of their classes, never imported.

Rule: the data is never changed. What the user adds to the frame during the map does not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal

from ....agent import class_names
from ....errors import UsageError, did_you_mean
from ....wire import plain_scalar

# the user's data is read here, so ■ may interrupt this module (notebook/cell/interrupts.py)
ACTS_FOR_USER = True
Kind = Literal["pandas", "polars", "dicts", "texts"]
TEXT = "text"  # the column of texts
NAMED_COLUMNS = 30  # the most columns that a message names
_MISSING = frozenset({"NAType", "NaTType"})  # classes of pandas.NA and pandas.NaT
_ACCEPTED = "Give a pandas or polars frame, a list of dicts or a list of strings."


class Rows:
    """The rows of one map.

    `data` is the frame or the list of items. `labels` are its columns, `names` the labels as text.
    A column is found by its name as text, then by the label itself (`row[0]`).
    """

    def __init__(
        self, kind: Kind, data: Any, labels: Sequence[Any], column: Callable[[int], Any]
    ) -> None:
        """`column` returns the values of a column, indexed by the position of a row."""
        self.kind = kind
        self.data = data
        self.labels = tuple(labels)
        self.names = tuple(map(str, self.labels))
        self._read_column = column
        self._columns_read: dict[int, Any] = {}
        # a name as text wins over a label (1 and "1"); of equal labels the first one wins
        self._column_of = {label: n for n, label in reversed(list(enumerate(self.labels)))}
        self._column_of |= {name: n for n, name in enumerate(self.names)}
        self._ambiguous = {name: count for name, count in Counter(self.names).items() if count > 1}

    def __len__(self) -> int:
        return len(self.data)

    def __contains__(self, name: object) -> bool:
        return name in self._column_of

    def values(self, position: int) -> RowValues:
        """Return the row at a position, counted from 0. Raises IndexError."""
        if not 0 <= position < len(self):
            raise IndexError(f"row {position} is out of range: the data has {len(self)} rows")
        return RowValues(self, position)

    def value(self, name: Any, position: int) -> Any:
        """Return the value of a column in one row.

        Raises KeyError for an unknown name, LookupError for one that several columns have.
        """
        if problem := self.ambiguity(name):
            raise LookupError(problem)
        index = self._column_of[name]
        if index not in self._columns_read:
            self._columns_read[index] = self._read_column(index)
        return cell_value(self._columns_read[index][position])

    def ambiguity(self, name: Any) -> str:
        """Return why a name cannot be read because several columns have it, "" if it can."""
        count = self._ambiguous.get(name, 1)
        return f"{count} columns are named {name!r}; rename one" if count > 1 else ""

    @property
    def unique(self) -> Iterator[str]:
        """The names that exactly one column has."""
        return (name for name in self.names if name not in self._ambiguous)

    def hint(self, name: str = "") -> str:
        """Return advice for a message: the columns, and which of them `name` may be a typo of."""
        names = ", ".join(self.names[:NAMED_COLUMNS]) or "none"
        others = len(self.names) - NAMED_COLUMNS
        more = f" and {others} more" if others > 0 else ""
        return f"Columns: {names}{more}.{did_you_mean(name, self.names) if name else ''}"


class RowValues(Mapping[Any, Any]):
    """One row by the names of its columns; `position` counts from 0.

    A name that several columns have is left out of a loop, and raises LookupError if it is read.
    """

    __slots__ = ("_rows", "position")

    def __init__(self, rows: Rows, position: int) -> None:
        self._rows = rows
        self.position = position

    def __getitem__(self, name: Any) -> Any:
        return self._rows.value(name, self.position)

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    def __iter__(self) -> Iterator[str]:
        return self._rows.unique

    def __len__(self) -> int:
        return sum(1 for _ in self._rows.unique)

    def __repr__(self) -> str:
        return repr(dict(self))

    def hint(self, name: str = "") -> str:
        """Return the advice of `Rows.hint`."""
        return self._rows.hint(name)


def rows_of(data: Any, limit: int | None = None) -> Rows:
    """Return the rows of `data`, at most the first `limit`.

    Texts are the column `text`; a Series is a frame of one column, under its name or `text`. Dicts
    have the columns of all of them; a key that a row lacks is None. A generator is read up to the
    limit. Raises UsageError for data without rows, and for mixed or other items.
    """
    classes = class_names(data)
    make = next((make for name, make in _FRAMES.items() if name in classes), _read_items)
    return make(data, limit)


def cell_value(value: Any) -> Any:
    """Return a value as str, int, float, bool if possible (see `plain_scalar`); missing: None.

    A list in a polars frame, which polars gives as a Series, is returned as a list.
    """
    kind = type(value)
    if kind is str:
        return value
    if kind.__name__ in _MISSING and kind.__module__.startswith("pandas."):
        return None
    if kind.__name__ == "Series" and kind.__module__.startswith("polars."):
        return value.to_list()
    value = plain_scalar(value)
    return None if type(value) is float and value != value else value  # noqa: PLR0124  (NaN)


def _read_pandas(frame: Any, limit: int | None) -> Rows:
    if "pandas.Series" in class_names(frame):
        frame = frame.to_frame(TEXT if frame.name is None else frame.name)
    selected = frame.iloc[:limit].copy(deep=False)
    return Rows("pandas", selected, list(selected.columns), lambda at: selected.iloc[:, at].array)


def _read_polars(frame: Any, limit: int | None) -> Rows:
    if "polars.Series" in class_names(frame):
        frame = frame.to_frame(frame.name or TEXT)
    selected = frame.clone() if limit is None else frame.head(limit)
    return Rows("polars", selected, selected.columns, selected.to_series)


def _refuse_lazy(frame: Any, limit: int | None) -> Rows:
    raise UsageError("A LazyFrame has no rows yet. Give frame.collect().")


def _read_items(data: Any, limit: int | None) -> Rows:
    """Return the rows of any iterable of dicts or texts. Raises UsageError for other items."""
    if problem := _why_no_rows(data):
        raise UsageError(f"{problem} {_ACCEPTED}")
    # copies: what yields or holds the dicts may change them later
    items = [dict(each) if isinstance(each, Mapping) else each for each in islice(data, limit)]
    item_type: type = str if items and isinstance(items[0], str) else Mapping
    for position, item in enumerate(items):
        if not isinstance(item, item_type):
            raise UsageError(_describe_mixed(position, item, item_type))
    if item_type is str:
        return Rows("texts", items, (TEXT,), lambda at: items)
    labels = list(dict.fromkeys(key for item in items for key in item))
    return Rows("dicts", items, labels, lambda at: [item.get(labels[at]) for item in items])


def _why_no_rows(data: Any) -> str:
    """Return why `data` has no rows, or ""."""
    name = type(data).__name__
    if isinstance(data, str | bytes | bytearray | memoryview):
        return f"A {name} is one item, not rows: write [data]."
    if isinstance(data, Mapping):
        return f"A {name} is one row, or columns: write [data], or pandas.DataFrame(data)."
    columns = getattr(type(data), "columns", None)
    # the frame of another library: iterating it would yield the names of its columns
    if columns is not None and not callable(columns):
        return f"A {name} of {type(data).__module__.partition('.')[0]} is not read here: convert it to pandas or polars."
    if not isinstance(data, Iterable):
        return f"A {name} has no rows."
    return ""


def _describe_mixed(position: int, item: Any, item_type: type) -> str:
    first = f", item 0 is {'a string' if item_type is str else 'a dict'}" if position else ""
    return f"Item {position} of the data is a {type(item).__name__}{first}. {_ACCEPTED}"


#: Name of a class or base class of the data -> its reader; other data is read as a list of items.
_FRAMES: dict[str, Callable[[Any, int | None], Rows]] = {
    "pandas.DataFrame": _read_pandas,
    "pandas.Series": _read_pandas,
    "polars.DataFrame": _read_polars,
    "polars.Series": _read_polars,
    "polars.LazyFrame": _refuse_lazy,
}
