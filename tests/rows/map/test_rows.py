"""The data of a map as rows: frames, dicts and texts read alike, and stay as they are."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.errors import UsageError
from agent_nb.rows.map.table.rows import rows_of

HOSTILE = ["__class__", "a b", "{{", "}}", "__builtins__", "len", "print", "row", "class", "", "é"]
VALUES = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=5)
NAMES = st.sampled_from(HOSTILE) | st.text(max_size=3)


def all_values(rows):
    return [dict(rows.values(place)) for place in range(len(rows))]


@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=4), max_size=5))
def test_rows_of_dicts_have_all_keys_in_order_and_none_for_those_they_lack(data):
    rows = rows_of(iter(data))
    names = list(dict.fromkeys(key for item in data for key in item))
    assert rows.names == tuple(names)
    assert all_values(rows) == [{name: item.get(name) for name in names} for item in data]


@given(
    st.lists(NAMES, unique=True, max_size=4).flatmap(
        lambda names: st.lists(st.fixed_dictionaries(dict.fromkeys(names, VALUES)), max_size=5)
    )
)
def test_a_frame_reads_like_the_dicts_that_it_was_made_of(data):
    frame = pd.DataFrame(data, dtype=object)
    assert all_values(rows_of(frame)) == all_values(rows_of(data))


def test_a_frame_reads_values_by_position_whatever_its_index():
    frame = pd.DataFrame({"a": [1, 2, 3]}, index=["x", "x", None])
    assert [row["a"] for row in map(rows_of(frame).values, range(3))] == [1, 2, 3]


@pytest.mark.parametrize(
    "column",
    [
        [1.5, float("nan")],
        ["text", None],
        pd.array([1, None], dtype="Int64"),
        pd.array([True, None], dtype="boolean"),
        pd.Categorical(["a", None]),
        pd.to_datetime(["2024-01-02", None]),
        np.array([{"deep": 1}, None], dtype=object),
    ],
)
def test_a_missing_value_of_a_frame_is_none_and_the_others_are_there(column):
    rows = rows_of(pd.DataFrame({"c": column}))
    assert rows.values(1)["c"] is None
    assert rows.values(0)["c"] == column[0]


@pytest.mark.parametrize(
    ("column", "kind"), [([1], int), ([1.5], float), ([True], bool), (["a"], str)]
)
def test_a_scalar_of_numpy_is_pythons(column, kind):
    assert type(rows_of(pd.DataFrame({"c": column})).values(0)["c"]) is kind
    assert type(rows_of([{"c": np.array(column)[0]}]).values(0)["c"]) is kind


def test_a_nested_value_stays_the_object_that_it_is():
    deep = {"a": [1, float("nan")]}
    assert rows_of([{"c": deep}]).values(0)["c"] is deep
    assert rows_of(pd.DataFrame({"c": [deep]})).values(0)["c"] is deep


def test_two_columns_of_one_name_are_read_by_neither_others_still_are():
    rows = rows_of(pd.DataFrame([[1, 2, 3]], columns=["a", "a", "b"]))
    assert rows.names == ("a", "a", "b")
    assert dict(rows.values(0)) == {"b": 3}
    with pytest.raises(LookupError, match="2 columns are named 'a'; rename one"):
        rows.values(0)["a"]


def test_labels_that_are_no_texts_are_found_as_text_and_by_themselves():
    rows = rows_of(pd.DataFrame([[1, 2]], columns=[0, ("a", "b")]))
    row = rows.values(0)
    assert (row[0], row["0"], row["a", "b"], row["('a', 'b')"]) == (1, 1, 2, 2)


def test_texts_are_the_column_text():
    rows = rows_of(np.array(["a", "b"]))
    assert (rows.kind, rows.names) == ("texts", ("text",))
    assert [row["text"] for row in map(rows.values, range(2))] == ["a", "b"]


@pytest.mark.parametrize(("name", "column"), [("said", "said"), (None, "text"), (0, "0")])
def test_a_series_is_a_frame_of_one_column(name, column):
    rows = rows_of(pd.Series(["a", "b"], index=[5, 5], name=name))
    assert (rows.kind, rows.names, rows.values(1)[column]) == ("pandas", (column,), "b")


@pytest.mark.parametrize("data", [[], (), iter(()), pd.DataFrame(), pd.DataFrame({"a": []})])
def test_no_data_is_no_rows_and_no_error(data):
    assert len(rows_of(data)) == 0


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("one text", r"write \[data\]"),
        (b"bytes", r"write \[data\]"),
        ({"a": 1}, r"write \[data\]"),
        (MappingProxyType({"a": [1]}), r"pandas.DataFrame\(data\)"),
        (7, "A int has no rows"),
        (None, "has no rows"),
        ([1, 2], "Item 0 of the data is a int"),
        (["a", {"b": 1}], "Item 1 of the data is a dict, item 0 is a string"),
        ([{"b": 1}, None], "Item 1 of the data is a NoneType, item 0 is a dict"),
        ([["a"]], "Item 0 of the data is a list"),
    ],
)
def test_what_has_no_rows_is_an_error_that_says_what_to_give(data, said):
    with pytest.raises(UsageError, match=said):
        rows_of(data)


class OtherFrame:
    columns = ("a", "b")

    def __iter__(self):
        return iter(self.columns)


def test_a_frame_of_another_library_is_not_taken_for_its_column_names():
    with pytest.raises(UsageError, match="convert it to pandas or polars"):
        rows_of(OtherFrame())


class Result:
    """Rows of a database: iterable, with a method of this name."""

    def columns(self):
        raise AssertionError

    def __iter__(self):
        return iter([MappingProxyType({"a": 1})])


def test_rows_of_a_database_are_dicts():
    assert all_values(rows_of(Result())) == [{"a": 1}]


def test_a_limit_takes_the_first_rows_and_reads_no_more_of_a_generator():
    read = []
    data = (read.append(n) or {"n": n} for n in range(100))
    assert len(rows_of(data, limit=3)) == 3
    assert read == [0, 1, 2]
    assert len(rows_of(pd.DataFrame({"a": range(9)}), limit=3)) == 3
    assert len(rows_of(["a"], limit=3)) == 1


def test_what_the_user_adds_later_changes_no_row():
    frame, dicts = pd.DataFrame({"a": [1]}), [{"a": 1}]
    rows, others = rows_of(frame), rows_of(dicts)
    frame["b"] = 2
    frame.loc[1] = [5, 5]
    dicts.append({"a": 2, "b": 3})
    dicts[0]["a"] = 7
    assert all_values(rows) == all_values(others) == [{"a": 1}]


def test_a_generator_may_yield_one_dict_again_and_again():
    row: dict[str, int] = {}
    rows = rows_of(row for row["a"] in range(3))
    assert all_values(rows) == [{"a": 0}, {"a": 1}, {"a": 2}]


@pytest.mark.parametrize("place", [-1, 1])
def test_there_is_no_row_before_the_first_and_after_the_last(place):
    with pytest.raises(IndexError):
        rows_of(["a"]).values(place)


def test_no_library_is_imported_for_it():
    code = (
        "import sys\nfrom agent_nb.rows.map.table.rows import rows_of\n"
        "rows_of([{'a': 1}]).values(0)['a']\nprint({'pandas', 'polars', 'numpy'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


@pytest.mark.extra
def test_a_polars_frame_reads_like_pandas():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"a": ["x", None], "b": [[1, 2], []], "c": [{"d": 1}, None]})
    rows = rows_of(frame)
    assert rows.kind == "polars"
    assert all_values(rows) == [
        {"a": "x", "b": [1, 2], "c": {"d": 1}},
        {"a": None, "b": [], "c": None},
    ]
    deep = pl.DataFrame({"s": [{"l": [1], "m": {"n": None}}]}).with_columns(
        a=pl.Series([[1, 2]], dtype=pl.Array(pl.Int8, 2)),
        c=pl.Series(["k"], dtype=pl.Categorical),
        d=pl.date(2024, 1, 2),
        o=pl.Series([{1, 2}], dtype=pl.Object),
    )
    assert all_values(rows_of(deep)) == [
        {
            "s": {"l": [1], "m": {"n": None}},
            "a": [1, 2],
            "c": "k",
            "d": dt.date(2024, 1, 2),
            "o": {1, 2},
        }
    ]
    assert rows_of(pl.Series(["x", "y"])).values(1)["text"] == "y"
    assert len(rows_of(frame, limit=1)) == 1
    with pytest.raises(UsageError, match="collect"):
        rows_of(frame.lazy())
