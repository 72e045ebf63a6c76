"""The frame of a map's results: the data by position, answers beside it, types that do not vary."""

from __future__ import annotations

import collections
import enum
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from helpers.output_types import TYPES, Entry
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agent_nb.agent.typed.output_type import OutputType
from agent_nb.events import text_array
from agent_nb.rows.map.row import RowResult
from agent_nb.rows.map.table.answer_fields import answer_columns
from agent_nb.rows.map.table.frame_out import frame_out
from agent_nb.rows.map.table.pandas_out import _to_array as text_column
from agent_nb.rows.map.table.rows import rows_of


class Level(enum.StrEnum):
    LOW = "low"


META = ["_run", "_status", "_error", "_tokens", "_cost", "_seconds"]
NAMES = st.sampled_from(
    [
        "__class__",
        "a b",
        "{{",
        "__dict__",
        "len",
        "answer",
        "out_answer",
        "_run",
        "_status",
        "",
        "é",
    ]
) | st.text(max_size=3)
VALUES = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3)


class Label(BaseModel):
    mood: str
    stars: int
    sure: float | None
    new: bool = False
    tags: list[str] = []


def ok(place, output=None, answer="", **more):
    given = {"input": 10, "written": 2, "cost": 0.5, "seconds": 1.5, "run": f"r{place}", **more}
    return RowResult(
        position=place, key=f"k{place}", status="ok", answer=answer, output=output, **given
    )


def bad(place, status="error"):
    return RowResult(
        position=place, key="k", status=status, kind="rate", error="429", run=f"r{place}"
    )


def answered(rows):
    return [ok(place, answer=f"a{place}") for place in range(len(rows))]


@given(
    st.integers(0, 5).flatmap(
        lambda n: st.lists(
            st.tuples(NAMES, st.lists(VALUES, min_size=n, max_size=n)),
            max_size=4,
            unique_by=lambda c: c[0],
        )
    ),
    st.randoms(),
)
def test_a_pandas_frame_comes_back_with_its_values_index_and_types(columns, random):
    frame = pd.DataFrame(dict(columns))
    frame.index = pd.Index(
        [random.choice([1, 1, "x", None]) for _ in range(len(frame))], dtype=object
    )
    before = frame.copy()
    out = frame_out(rows_of(frame), answered(frame))
    pd.testing.assert_frame_equal(out.iloc[:, : frame.shape[1]], before, check_column_type=False)
    pd.testing.assert_frame_equal(frame, before)
    assert len(out.columns) == len(set(out.columns)) == frame.shape[1] + 7
    assert out.iloc[:, frame.shape[1]].tolist() == [f"a{n}" for n in range(len(frame))]


@given(st.lists(st.dictionaries(NAMES, VALUES, max_size=3), max_size=4))
def test_dicts_come_back_as_dicts_with_all_keys_and_are_not_changed(data):
    before = json.dumps(data)
    out = frame_out(rows_of(data), answered(data))
    names = list(dict.fromkeys(key for row in data for key in row))
    assert json.dumps(data) == before
    assert [{name: row[name] for name in names} for row in out] == [
        {name: row.get(name) for name in names} for row in data
    ]
    assert [list(row.values())[len(names)] for row in out] == [f"a{n}" for n in range(len(data))]
    assert all(len(row) == len(names) + 7 for row in out)


def test_texts_come_back_as_dicts():
    assert frame_out(rows_of(["x"]), [ok(0, answer="y")]) == [
        {
            "text": "x",
            "answer": "y",
            "_run": "r0",
            "_status": "ok",
            "_error": None,
            "_tokens": 12,
            "_cost": 0.5,
            "_seconds": 1.5,
        }
    ]


@pytest.mark.parametrize(
    "index",
    [
        pd.MultiIndex.from_tuples([("a", 1), ("a", 1)], names=["x", "y"]),
        pd.Index([7, 7], name="id"),
        pd.to_datetime(["2024-01-01", "2024-01-01"]),
    ],
)
def test_the_index_stays_with_its_duplicates_levels_and_names(index):
    out = frame_out(rows_of(pd.DataFrame({"a": [1, 2]}, index=index)), [ok(0), ok(1)])
    pd.testing.assert_index_equal(out.index, index)
    assert out["_run"].tolist() == ["r0", "r1"]


@pytest.mark.parametrize(
    "column",
    [
        pd.Categorical(["a", "b"]),
        pd.array([1, None], dtype="Int64"),
        np.array([1, 2], np.int8),
        pd.to_datetime(["2024-01-01", None]).tz_localize("UTC"),
        np.array([[1], {"a": 2}], dtype=object),
        pd.arrays.SparseArray([0, 1]),
    ],
)
def test_columns_of_the_data_keep_their_types(column):
    frame = pd.DataFrame({"c": column})
    out = frame_out(rows_of(frame), answered(frame))
    pd.testing.assert_series_equal(out["c"], frame["c"])


def test_duplicate_columns_levels_of_columns_attrs_and_other_labels_stay():
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    twice.attrs["source"] = "here"
    out = frame_out(rows_of(twice), [ok(0)])
    assert [*out.columns] == ["a", "a", "answer", *META]
    assert out.attrs == {"source": "here"}
    levels = pd.DataFrame(
        [[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "x"), ("answer", "y")])
    )
    out = frame_out(rows_of(levels), [ok(0, answer="said")])
    assert out["out_answer"].tolist() == ["said"]
    assert out["a", "x"].tolist() == [1]
    numbers = frame_out(rows_of(pd.DataFrame([[1, 2]])), [ok(0)])
    assert [*numbers.columns] == [0, 1, "answer", *META]
    kinds = pd.DataFrame([[1]], columns=pd.CategoricalIndex(["a"]))
    assert [*frame_out(rows_of(kinds), [ok(0)]).columns] == ["a", "answer", *META]


def test_what_is_written_into_the_result_does_not_change_the_data():
    frame = pd.DataFrame({"a": [1, 2]})
    out = frame_out(rows_of(frame), answered(frame))
    out.loc[0, "a"] = 9
    assert frame["a"].tolist() == [1, 2]


def test_a_name_that_is_taken_gets_the_prefix_and_again_while_it_is_taken():
    frame = pd.DataFrame([[1, 2, 3]], columns=["answer", "out_answer", "_run"])
    out = frame_out(rows_of(frame), [ok(0, answer="x")])
    assert [*out.columns] == [
        *("answer", "out_answer", "_run", "out_out_answer", "out__run"),
        *META[1:],
    ]
    again = frame_out(rows_of(out), [ok(0, answer="x")])
    assert len(set(again.columns)) == len(out.columns) + 7


def test_typed_fields_are_columns_in_the_order_of_the_type():
    said = {"mood": "good", "new": True, "stars": 5, "sure": 0.5, "tags": ["a"]}
    rows = rows_of(pd.DataFrame({"mood": ["?", "?"]}))
    out = frame_out(rows, [ok(0, said), bad(1)], OutputType(Label))
    assert [*out.columns] == ["mood", "out_mood", "stars", "sure", "new", "tags", *META]
    assert out.iloc[0, 1:6].tolist() == ["good", 5, 0.5, True, ["a"]]
    assert out.iloc[1, 1:6].isna().all()
    assert [str(kind) for kind in out.dtypes[2:6]] == ["Int64", "float64", "boolean", "object"]
    assert out["_status"].tolist() == ["ok", "error"]
    assert out["_error"].tolist()[1] == "429"
    assert out["_error"].isna().tolist() == [True, False]


def results_of(name):
    """Return a type, its columns, and a result that has a value of it."""
    kind, document, *_ = TYPES[name]
    output = OutputType(kind)
    text = output.validate(document).text
    return output, answer_columns(output), ok(0, json.loads(text))


def expected_of(columns, result):
    if columns.positional:
        return dict(zip(columns.shapes, result.output or (), strict=False))
    return {"answer": result.output} if columns.whole else result.output or {}


@pytest.mark.few(23)
@pytest.mark.parametrize("name", TYPES)
def test_the_columns_of_a_type_are_the_same_whatever_the_rows_answered(name):
    output, columns, result = results_of(name)
    frame = pd.DataFrame({"row": [1]})
    filled = frame_out(rows_of(frame), [result], output)
    failed = frame_out(rows_of(frame), [bad(0)], output)
    empty = frame_out(rows_of(frame.iloc[:0]), [], output)
    assert filled.dtypes.to_dict() == failed.dtypes.to_dict() == empty.dtypes.to_dict()
    assert [*filled.columns] == ["row", *columns.shapes, *META]
    values = {n: filled[n].astype(object)[0] for n in columns.shapes}
    expected = expected_of(columns, result)
    for column, value in values.items():
        wanted = expected.get(column)
        assert value == wanted or (wanted is None and pd.isna(value))
    assert failed[[*columns.shapes]].isna().all(axis=None)
    dicts = frame_out(rows_of([{"row": 1}]), [result], output)
    assert {n: dicts[0][n] for n in columns.shapes} == {n: expected.get(n) for n in columns.shapes}


@pytest.mark.extra
@pytest.mark.parametrize("name", TYPES)
def test_polars_has_the_same_columns_whatever_the_rows_answered(name):
    pl = pytest.importorskip("polars")
    output, columns, result = results_of(name)
    frame = pl.DataFrame({"row": [1]})
    filled = frame_out(rows_of(frame), [result], output)
    failed = frame_out(rows_of(frame), [bad(0)], output)
    assert filled.schema == failed.schema == frame_out(rows_of(frame.clear()), [], output).schema
    assert filled.columns == ["row", *columns.shapes, *META]
    assert pl.Object not in filled.dtypes
    expected = expected_of(columns, result)
    for column, shape in columns.shapes.items():
        value, wanted = filled[column].to_list()[0], expected.get(column)
        if shape.kind == "any" and wanted is not None:
            value = json.loads(value)
        assert value == wanted
        assert failed[column].to_list() == [None]


@pytest.mark.extra
def test_a_polars_frame_keeps_its_columns_and_gets_the_prefix():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"answer": ["x", None], "day": [[1], []]})
    out = frame_out(rows_of(frame), [ok(0, answer="\ud800a"), ok(1, answer="b")])
    assert out.select(frame.columns).equals(frame)
    assert out["out_answer"].to_list() == ["?a", "b"]
    assert out["_tokens"].dtype == pl.Int64


def test_no_row_has_the_same_columns_as_rows_that_are_pending():
    frame = pd.DataFrame({"a": [1, 2]})
    out = frame_out(rows_of(frame), [RowResult(position=n, key="k") for n in range(2)])
    assert out["_status"].tolist() == ["pending", "pending"]
    assert out[["answer", "_run", "_error", "_cost", "_seconds"]].isna().all(axis=None)
    none = frame_out(rows_of(frame.iloc[:0]), [])
    assert none.dtypes.to_dict() == out.dtypes.to_dict()
    assert frame_out(rows_of([]), []) == []


def test_a_stopped_map_has_what_is_done_and_what_is_not():
    rows = rows_of([{"a": n} for n in range(3)])
    results = [ok(0, answer="x"), bad(1, "interrupted"), RowResult(position=2, key="k")]
    out = frame_out(rows, results)
    assert [(row["a"], row["answer"], row["_status"]) for row in out] == [
        (0, "x", "ok"),
        (1, None, "interrupted"),
        (2, None, "pending"),
    ]


def test_with_a_limit_the_frame_has_the_rows_that_were_tried():
    frame = pd.DataFrame({"a": range(9)}, index=range(9, 0, -1))
    out = frame_out(rows_of(frame, limit=2), [ok(0), ok(1)])
    assert out.index.tolist() == [9, 8]


@pytest.mark.parametrize("data", [pd.DataFrame({"a": [1, 2]}, index=["x", "x"]), ["a", "b"]])
def test_repeats_are_rows_one_after_the_other(data):
    results = [ok(place, answer=f"{place}{n}") for place in range(2) for n in range(3)]
    out = pd.DataFrame(frame_out(rows_of(data), results))
    assert out["answer"].tolist() == ["00", "01", "02", "10", "11", "12"]
    assert out["_repeat"].tolist() == [0, 1, 2, 0, 1, 2]
    assert len(out) == 6


MISFITS = [
    ({"mood": "a", "stars": 10**30, "sure": None}, "stars"),
    ({"mood": "a", "stars": "five", "sure": None}, "stars"),
    ({"mood": 5, "stars": 1, "sure": None}, "mood"),
    ({"mood": "a", "stars": 1, "sure": "x"}, "sure"),
    ({"mood": "a", "stars": 1, "sure": None, "new": "no"}, "new"),
    ({"mood": "a", "stars": [1], "sure": None}, "stars"),
    ({"mood": "a", "stars": 1, "sure": [1.5]}, "sure"),
    ({"mood": "a", "stars": 1, "sure": 10**400}, "sure"),
    ({"mood": "a", "stars": 1, "sure": "1.5"}, "sure"),
    ({"mood": "a", "stars": 1, "sure": None, "tags": "abc"}, "tags"),
]


@pytest.mark.parametrize(("document", "name"), MISFITS)
def test_a_value_that_does_not_fit_its_column_is_kept(document, name):
    out = frame_out(rows_of(pd.DataFrame({"a": [1]})), [ok(0, document)], OutputType(Label))
    assert out[name].tolist() == [document[name]]
    assert out["mood"].tolist() == [document["mood"]]


@pytest.mark.extra
@pytest.mark.parametrize(("document", "name"), MISFITS)
def test_in_polars_a_column_with_a_value_that_does_not_fit_is_json(document, name):
    pl = pytest.importorskip("polars")
    out = frame_out(rows_of(pl.DataFrame({"a": [1]})), [ok(0, document)], OutputType(Label))
    assert [json.loads(held) for held in out[name]] == [document[name]]


@pytest.mark.parametrize("document", [None, 5, [1], "text"])
def test_a_result_of_another_type_has_no_fields_and_breaks_nothing(document):
    out = frame_out(rows_of(pd.DataFrame({"a": [1]})), [ok(0, document)], OutputType(Label))
    assert out[["mood", "stars"]].isna().all(axis=None)


def test_lists_of_one_length_are_one_value_each():
    said = [ok(n, [[n], [n + 1]]) for n in range(2)]
    for count in (1, 2):
        rows = rows_of(pd.DataFrame({"a": range(count)}))
        out = frame_out(rows, said[:count], OutputType(list[list[int]]))
        assert out["answer"].tolist() == [[[0], [1]], [[1], [2]]][:count]


def test_half_a_character_in_an_answer_breaks_no_column():
    out = frame_out(rows_of(pd.DataFrame({"a": [1]})), [ok(0, answer="x\ud800")])
    assert out["answer"].tolist() in (["x?"], ["x\ud800"])  # pandas 2 can hold it


def test_dicts_need_no_pandas():
    code = (
        "import sys\nfrom agent_nb.rows.map.table.rows import rows_of\n"
        "from agent_nb.rows.map.row import RowResult\n"
        "from agent_nb.rows.map.table.frame_out import frame_out\n"
        "frame_out(rows_of([{'a': 1}]), [RowResult(position=0, key='')])\nprint({'pandas', 'polars', 'numpy'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_members_of_an_enumeration_of_texts_are_a_column_of_texts():
    plain = text_array(np.array(["low", None], object))
    members = text_column("text", [Level.LOW, None])
    assert members.dtype == plain.dtype


class Inner(BaseModel):
    note: None = None
    size: int = 0


class WithNulls(BaseModel):
    gaps: list[None]
    inner: Inner


def test_in_polars_a_field_that_is_always_null_has_a_column():
    pl = pytest.importorskip("polars")
    output, document = OutputType(WithNulls), {"gaps": [None], "inner": {"note": None, "size": 2}}
    result = RowResult(position=0, key="k", status="ok", answer="x", output=document)
    frame = frame_out(rows_of(pl.DataFrame({"a": [1]})), [result], output)
    assert (frame["gaps"].to_list(), frame["inner"].to_list()) == ([[None]], [document["inner"]])
    failed = frame_out(rows_of(pl.DataFrame({"a": [1]})), [bad(0)], output)
    assert failed.schema == frame.schema
    misfit = RowResult(position=0, key="k", status="ok", answer="x", output={"gaps": [1]})
    frame = frame_out(rows_of(pl.DataFrame({"a": [1]})), [misfit], output)
    assert frame["gaps"].to_list() == ["[1]"]


def test_a_named_tuple_has_a_column_for_each_field():
    rows = rows_of(pd.DataFrame({"n": [1, 2, 3]}))
    results = [ok(0, ["a", 2]), ok(1, ["b"]), bad(2)]
    frame = frame_out(rows, results, OutputType(Entry))
    assert list(frame.columns) == ["n", "key", "count", *META]
    assert frame["key"].tolist()[:2] == ["a", "b"]
    assert frame["count"].dtype == "Int64"
    assert frame["count"].tolist() == [2, pd.NA, pd.NA]


def test_a_named_tuple_without_fields_and_a_plain_tuple_are_the_answer():
    for kind in (collections.namedtuple("Nothing", []), tuple[str, int]):
        assert list(answer_columns(OutputType(kind)).shapes) == ["answer"]
