"""Tables and arrays of pandas, polars and NumPy: what is read of them, and at what cost."""

from __future__ import annotations

import datetime
import gc
import sys
import tracemalloc
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers import hostile_objects
from helpers.hostile_objects import HITS, hostile

from agent_nb.tools.describe import describe_variable, preview_value

DAY = datetime.datetime.fromisoformat("2024-01-02")


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (1 / 3, "0.333333"),
        (-2 / 3 * 1e-9, "-6.66667e-10"),
        (12.0, "12.0"),
        (0.1 + 0.2, "0.3"),
        (123456.789, "123457.0"),
        (1234567.89, "1234568.0"),
        (-9876543210.123, "-9876543210.0"),
        (1.23456789e20, "1.23457e+20"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        (0.0, "0.0"),
    ],
)
def test_a_brief_preview_rounds_the_numbers_of_a_table(number: float, shown: str) -> None:
    for frame in (pd.DataFrame({"x": [number], "n": [1234567]}), np.array([[number, 1234567]])):
        rows = preview_value(frame, brief=True).splitlines()
        assert rows[-1].split(" | ")[0] == shown
    assert preview_value(pd.Series([number]), brief=True) == shown
    own = type("Own", (float,), {"__format__": hostile_objects.hook("__format__")})(number)
    assert preview_value(pd.DataFrame({"x": [own]}, dtype=object), brief=True) == "x\n…"
    assert HITS == []
    assert preview_value(pd.DataFrame({"x": [number]})).endswith(str(number))


def text(value: Any) -> str:
    return describe_variable("v", value).as_text().removeprefix("v: ")


def work(function: Callable[[], Any]) -> int:
    """Return how many functions, of Python and C, a call calls."""
    count = 0

    def profile(_: Any, event: str, __: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    gc.disable()  # its callbacks, such as those of hypothesis, are calls too
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def test_what_users_patch_into_a_library_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"a": [1]})
    for name in ("_mgr", "shape", "dtypes", "columns", "__len__"):
        patched = property(hostile_objects.hook(name))
        monkeypatch.setattr(pd.DataFrame, name, patched, raising=False)
    HITS.clear()
    assert text(frame) == "pandas.DataFrame 1×1 (a: int64)"
    assert preview_value(frame) == "a\n1"
    assert HITS == []


def test_a_broken_library_is_a_fact_less(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"a": [1]})
    object.__setattr__(frame, "_mgr", None)
    assert text(frame) == "pandas.DataFrame"
    managers = "pandas.core.internals.managers"
    monkeypatch.setitem(sys.modules, managers, types.ModuleType(managers))
    assert text(pd.DataFrame({"a": [1]})) == "pandas.DataFrame"


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (np.zeros((3, 4), "f4"), "numpy.ndarray 3×4 float32"),
        (np.zeros(2, "M8[ns]"), "numpy.ndarray 2 datetime64[ns]"),
        (np.array([1, "a"]), "numpy.ndarray 2 str"),
        (np.zeros(2, [("a", "i4"), ("b", "O")]), "numpy.ndarray 2 structured of 2"),
        (np.float64(1), "numpy.float64"),
        (np.ma.zeros(2), "numpy.ma.MaskedArray"),
        (pd.Series([1, 2], name="x"), "pandas.Series 2 int64"),
        (pd.Series(["a"], dtype="category"), "pandas.Series 1 category"),
        (pd.Index([1.5]), "pandas.Index 1 float64"),
        (pd.RangeIndex(7), "pandas.RangeIndex 7 int64"),
        (pd.interval_range(0, 3), "pandas.IntervalIndex 3 interval"),
        (pd.MultiIndex.from_tuples([(1, "a")] * 3), "pandas.MultiIndex 3 2 levels"),
        (pd.DataFrame(), "pandas.DataFrame 0×0"),
        (pd.Timestamp("2024"), "pandas.Timestamp"),
    ],
)
def test_arrays_and_tables(value: Any, line: str) -> None:
    assert text(value) == line


def every_dtype() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "city": pd.Series(["Rome", None], dtype=object),
            "temp": [21.5, float("nan")],
            "day": pd.to_datetime(["2024-01-02", "2024-01-03"]).as_unit("ns"),
            "zone": pd.to_datetime(["2024-01-02"] * 2).as_unit("us").tz_localize("UTC"),
            "count": pd.array([1, None], dtype="UInt8"),
            "share": pd.array([None, 0.5], dtype="Float32"),
            "yes": pd.array([True, None]),
            "text": pd.Series(["a", None], dtype="string"),
            "arrow": pd.array([1, 2], dtype="int64[pyarrow]"),
            "kind": pd.Categorical(["x", None]),
            "month": pd.period_range("2024-01", periods=2, freq="M"),
            "bin": pd.arrays.IntervalArray.from_tuples([(0, 1), (1, 2)]),
            "took": pd.to_timedelta(["1s", "2s"]).as_unit("s"),
        }
    )


def test_the_columns_of_a_frame() -> None:
    assert text(every_dtype()) == (
        "pandas.DataFrame 2×13 (city: object, temp: float64, day: datetime64[ns], "
        "zone: datetime64[us, tz], count: UInt8, share: Float32, yes: boolean, text: str, "
        "arrow: int64[pyarrow], kind: category, month: period, bin: interval, took: timedelta64[s])"
    )


def test_the_rows_of_a_frame_show_plain_cells_only() -> None:
    first, second = preview_value(every_dtype()).splitlines()[1:]
    assert first == (
        "Rome | 21.5 | 2024-01-02 00:00:00 | 2024-01-02 00:00:00+00:00 | 1 | None | True | a | 1 | x"
        " | … | … | 0:00:01"
    )
    assert second.startswith("None | nan | 2024-01-03 00:00:00")


def test_several_levels_of_columns_and_rows() -> None:
    frame = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", 1), ("b", None)]))
    assert text(frame) == "pandas.DataFrame 1×2 (a/1: int64, b/None: int64)"
    assert preview_value(frame) == "a/1 | b/None\n1 | 2"


def test_columns_that_were_added_and_moved_stand_in_their_order() -> None:
    frame = pd.DataFrame({"a": [1], "b": [1.5], "c": [2]})
    frame.insert(1, "d", "x")
    frame = frame[["c", "d", "a", "b"]]
    assert preview_value(frame) == "c | d | a | b\n2 | x | 1 | 1.5"


def foreign() -> Any:
    """Return an array of a user's class; nothing may be asked of it once it is in a frame."""
    kind = type("Foreign", (pd.arrays.IntegerArray,), {"__module__": "theirs"})
    return kind(np.array([1, 2]), np.array([False, False]))


def forbid(kind: type) -> None:
    """From now on every use of an array of this class counts."""
    for name in ("__len__", "__getitem__", "__iter__", "dtype", "shape", "_data", "_mask", "isna"):
        setattr(kind, name, property(hostile_objects.hook(name)))
    HITS.clear()


def test_the_columns_beside_a_foreign_one_are_described() -> None:
    array = foreign()
    frame = pd.DataFrame({"a": [1, 2], "b": array, "c": ["x", "y"]})
    forbid(type(array))
    assert text(frame) == "pandas.DataFrame 2×3 (a: int64, b: theirs.Foreign, c: str)"
    assert preview_value(frame) == "a | b | c\n1 | … | x\n2 | … | y"
    assert HITS == []


def test_of_a_foreign_index_no_length_is_asked() -> None:
    array = foreign()
    index = pd.Index(array)
    frame, series = pd.DataFrame({"a": [1, 2]}, index=index), pd.Series([1, 2], index=index)
    forbid(type(array))
    assert (text(frame), preview_value(frame)) == ("pandas.DataFrame", "")
    assert (text(series), preview_value(series)) == ("pandas.Series int64", "")
    assert text(index) == "pandas.Index theirs.Foreign"
    assert HITS == []


@pytest.mark.parametrize("name", ["_data", "_mask"])
def test_a_known_array_with_foreign_storage_is_not_read(name: str) -> None:
    array = pd.array([1, 2])
    series = pd.Series(array, copy=False)
    setattr(series.array, name, hostile_objects.trap("storage"))
    HITS.clear()
    assert text(series).startswith("pandas.Series 2 ")
    preview_value(series)
    assert HITS == []


def test_foreign_categories_are_not_asked() -> None:
    array = foreign()
    series = pd.Series(pd.Categorical.from_codes([0, -1, 1], categories=pd.Index(array)))
    forbid(type(array))
    assert text(series) == "pandas.Series 3 category"
    assert preview_value(series) == "…\nNone\n…"
    assert HITS == []


@pytest.mark.parametrize(
    ("dtype", "value", "shown"),
    [
        ("int64", 1, "int64[pyarrow]"),
        ("string", "a", "string[pyarrow]"),
        ("timestamp[us, tz=UTC]", DAY, "timestamp[us, tz=UTC][pyarrow]"),
        ("list<item: int64>", [1], "pyarrow.lib.ListType[pyarrow]"),
    ],
)
def test_columns_of_arrow(dtype: str, value: Any, shown: str) -> None:
    pa = pytest.importorskip("pyarrow")
    kinds = {
        "list<item: int64>": pa.list_(pa.int64()),
        "timestamp[us, tz=UTC]": pa.timestamp("us", "UTC"),
    }
    kind = kinds.get(dtype) or pa.type_for_alias(dtype)
    series = pd.Series([value, None], dtype=pd.ArrowDtype(kind))
    assert text(series) == f"pandas.Series 2 {shown}"
    assert preview_value(series).splitlines()[1] == ("…" if isinstance(value, list) else "None")


def test_labels_of_every_kind_of_index() -> None:
    day = pd.Timestamp("2024-01-02", tz="UTC")
    periods = pd.PeriodIndex(["2024-01"], freq="M")
    columns = [pd.RangeIndex(1), [0.5], [day], pd.Categorical(["x"]), [None], periods]
    labels = [text(pd.DataFrame([[1]], columns=index)).split("(")[1] for index in columns]
    shown = ["0", "0.5", "2024-01-02 00:00:00+00:00", "x", "None", "…"]
    assert labels == [f"{label}: int64)" for label in shown]


def test_a_time_without_a_unit_is_no_plain_cell() -> None:
    frame = np.zeros((1, 2), "M8")
    assert text(frame) == "numpy.ndarray 1×2 datetime64"
    assert preview_value(frame) == "… | …"


def test_a_time_with_a_zone_is_shown_in_its_zone() -> None:
    times = pd.to_datetime(["2020-01-01 00:30:00.123456789", None]).tz_localize("Europe/Berlin")
    stamp = "2020-01-01 00:30:00.123456789+01:00"
    assert str(times[0]) == stamp
    for column in (times, pd.Categorical(times)):
        assert preview_value(pd.Series(column)).splitlines()[0] == stamp
    assert preview_value(pd.Series(times)).splitlines()[1] == "NaT"
    assert preview_value(pd.DataFrame([[1]], columns=times[:1])).splitlines()[0] == stamp


@pytest.mark.parametrize("time", ["9999-12-31 23:00:00", "0001-01-01 00:00:00"])
def test_a_time_whose_local_year_python_lacks_is_shown_in_utc(time):
    zone = "Asia/Tokyo" if time > "2" else "America/New_York"
    index = pd.DatetimeIndex(np.array([time], "M8[us]")).tz_localize("UTC").tz_convert(zone)
    assert preview_value(pd.Series(index)) == f"{time}+00:00"


def test_a_time_whose_zone_is_the_users_object_is_shown_in_utc() -> None:
    class Zone(datetime.tzinfo):
        def utcoffset(self, moment: Any) -> datetime.timedelta:
            HITS.append("utcoffset")
            return datetime.timedelta(hours=1)

    times = pd.Series(pd.to_datetime(["2020-01-01 00:30"]).tz_localize("UTC").tz_convert(Zone()))
    HITS.clear()
    assert preview_value(times) == "2020-01-01 00:30:00+00:00"
    assert HITS == []


def test_a_missing_time_is_named() -> None:
    times = pd.to_datetime(pd.Series(["2024-01-02 03:04", None]))
    assert preview_value(times) == "2024-01-02 03:04:00\nNaT"
    assert preview_value(times - times[0]) == "0:00:00\nNaT"


@pytest.fixture
def pl() -> Any:
    return pytest.importorskip("polars")


def test_frames_of_polars(pl: Any) -> None:
    assert text(pl.Series("x", ["a"])) == "polars.Series 1 str"
    assert text(pl.LazyFrame({"a": [1]})) == "polars.LazyFrame"
    frame = pl.DataFrame({"a": [1], "b": [[1]]})
    assert text(frame) == "polars.DataFrame 1×2 (a: i64, b: list[i64])"


def test_the_rows_of_polars_frames(pl: Any) -> None:
    frame = pl.DataFrame(
        {"n": [1, 2], "s": ["x" * 99, None], "l": [[1], [2]], "t": [DAY, None], "c": ["é", "b"]}
    )
    assert preview_value(frame).splitlines() == [
        "n | s | l | t | c",
        f"1 | {'x' * 39}… | … | 2024-01-02 00:00:00 | é",
        "2 | None | … | None | b",
    ]
    assert preview_value(frame["n"], 1) == "1"


def test_wide_and_nested_frames_of_polars(pl: Any) -> None:
    wide = pl.DataFrame({f"c{n}": [n] for n in range(70)})
    assert text(wide).endswith("c59: i64, … 10 more)")
    assert preview_value(wide).splitlines()[1].endswith(" | 59")
    assert preview_value(pl.Series([[1], [2]])) == ""
    assert text(pl.DataFrame()) == "polars.DataFrame 0×0"


def test_a_registered_type_of_polars_is_not_made(pl: Any) -> None:
    class Registered(pl.BaseExtension):
        def __init__(self) -> None:
            super().__init__("test.registered", pl.Int64, None)

        @classmethod
        def ext_from_params(cls, *_: Any) -> Any:
            HITS.append("polars extension")
            return cls()

    pl.register_extension_type("test.registered", Registered)
    try:
        frame = pl.DataFrame({"e": pl.Series([1]).ext.to(Registered())})
        HITS.clear()
        assert text(frame).startswith("polars.DataFrame 1×1 (e: ext[")
        assert preview_value(frame) == "e\n…"
        assert HITS == []
    finally:
        pl.unregister_extension_type("test.registered")


def test_the_work_does_not_grow_with_the_rows() -> None:
    def both(rows: int) -> list[int]:
        pandas = pd.DataFrame({"a": np.arange(rows), "b": ["x"] * rows, "c": 1.5})
        values = [pandas, pandas["a"], np.arange(rows)]
        values += [list(range(rows)), dict.fromkeys(range(rows)), "x" * rows]
        return [work(lambda v=v: (describe_variable("v", v), preview_value(v))) for v in values]

    both(10)
    assert both(100_000) == both(10_000)


def test_the_work_does_not_grow_with_the_columns_beyond_those_shown() -> None:
    wide, wider = (pd.DataFrame(np.zeros((1, n))) for n in (100, 10_000))
    assert work(lambda: describe_variable("w", wide)) == work(lambda: describe_variable("w", wider))
    found = describe_variable("w", wider)
    assert (len(found.columns), found.columns_left_out) == (60, 9_940)
    assert found.as_text().endswith("59: float64, … 9,940 more)")


def test_an_array_of_ten_gigabytes_costs_no_memory(tmp_path: Path) -> None:
    zeros = hostile(tmp_path)["zeros"]
    assert zeros.nbytes == 10_000_000_000
    tracemalloc.start()
    try:
        assert text(zeros) == "numpy.ndarray 1250000000 float64"
        assert preview_value(zeros) == "0.0\n0.0\n0.0"
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_figure_says_how_many_axes_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("matplotlib.figure")
    module.Figure = type("Figure", (), {"axes": property(hostile_objects.hook("axes"))})  # type: ignore[attr-defined]
    figure = module.Figure()
    figure._localaxes = [1, 2]
    monkeypatch.setitem(sys.modules, "matplotlib.figure", module)
    HITS.clear()
    assert text(figure) == "matplotlib.figure.Figure 2 axes"
    assert HITS == []
