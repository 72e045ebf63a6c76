"""Variables in a line each: nothing of theirs runs, and nothing grows without bound."""

from __future__ import annotations

import datetime
import subprocess
import sys
import tracemalloc
import types
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from helpers import hostile_objects
from helpers.hostile_objects import HITS, Text, hostile

from agent_nb import Agent, tool
from agent_nb.tools.describe import (
    TOKENS,
    VARIABLES,
    describe,
    listing,
    preview,
    tokens,
    user_variables,
)

DAY = datetime.datetime.fromisoformat("2024-01-02")


class Mine: ...


@dataclass
class Point:
    x: int = 1


@tool
def my_tool(x: int) -> int:
    """Count."""
    return x


def parameters(a, b: int = 1, /, c=2, *rest, k, m=3, **more): ...


def text(value: Any) -> str:
    return describe("v", value).as_text().removeprefix("v: ")


def work(function: Callable[[], Any]) -> int:
    """Return how many functions, of Python and C, a call calls."""
    count = 0

    def profile(_: Any, event: str, __: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def test_no_hook_of_a_hostile_object_runs(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    objects = hostile(tmp_path)
    assert len(objects) >= 30
    for name, value in objects.items():
        assert describe(name, value).as_text().startswith(f"{name}: ")
        preview(name, value, 20)
        assert not HITS, name
    listing(user_variables(objects, modules=True))
    assert HITS == []
    assert objects["mock"].mock_calls == []
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr() == ("", "")


def test_the_hooks_would_have_counted(tmp_path: Path) -> None:
    objects = hostile(tmp_path)
    asked = ("raising", "all_hooks", "asked", "class_of_meta", "my_frame", "foreign_column", "keys")
    for name in asked:
        HITS.clear()
        with suppress(Exception):
            repr(objects[name])
        with suppress(Exception):
            hasattr(objects[name], "shape")
        assert HITS, name
    HITS.clear()


def test_a_namespace_with_hostile_names_is_walked(tmp_path: Path) -> None:
    names: Any = {hostile_objects.Key("w"): 1, Text("x"): 2, "v": 3, "_p": 4, "not a name": 5}
    HITS.clear()
    assert user_variables(names) == {"v": 3}
    assert HITS == []


def test_all_of_them_stay_under_the_limit(tmp_path: Path) -> None:
    found = listing(user_variables(hostile(tmp_path), modules=True))
    assert tokens(found) < TOKENS
    assert len(found.splitlines()) >= 30


def test_what_users_patch_into_a_library_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"a": [1]})
    for name in ("_mgr", "shape", "dtypes", "columns", "__len__"):
        patched = property(hostile_objects.hook(name))
        monkeypatch.setattr(pd.DataFrame, name, patched, raising=False)
    HITS.clear()
    assert text(frame) == "pandas.DataFrame 1×1 (a: int64)"
    assert preview("f", frame) == "a\n1"
    assert HITS == []


def test_subclasses_inside_containers_are_named_only(tmp_path: Path) -> None:
    objects = hostile(tmp_path)
    inside = [Text("x"), objects["of_meta"], objects["class_of_meta"], objects["my_dict"]]
    assert text(inside).startswith("list 4 items (")
    assert len(preview("v", inside, 4).splitlines()) == 4
    assert preview("v", dict.fromkeys("ab", objects["mock"])).count("MagicMock") == 2
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
        (1, "int"),
        (1.5, "float"),
        (True, "bool"),
        (None, "None"),
        ("secret text", "str 11 characters"),
        (b"1", "bytes 1 byte"),
        ([], "list 0 items"),
        ([1, "a", None, 2.0], "list 4 items (int, str, NoneType)"),
        ((Mine(),), "tuple 1 item (tests.tools.test_describe.Mine)"),
        ({"a": 1, 2: []}, "dict 2 items (str: int, int: list)"),
        ({1, "a"}, "set 2 items (int, str)"),
        (frozenset(), "frozenset 0 items"),
        (range(5, 0, -2), "range 3 items"),
        (range(10**30), "range more than 2⁶⁴ items"),
        (DAY, "datetime.datetime"),
        (sys, "module sys"),
        (len, "builtin function len"),
        (Mine, "class tests.tools.test_describe.Mine"),
        (Point(), "tests.tools.test_describe.Point"),
        (type("Mine", (dict,), {"__module__": "__main__"})(), "Mine"),
        (parameters, "function parameters(a, b=…, /, c=…, *rest, k, m=…, **more)"),
        (lambda *, k: k, "function <lambda>(*, k)"),
        ([].append, "builtin function append"),
    ],
)
def test_builtins(value: Any, line: str) -> None:
    assert text(value).replace("test_describe.test_describe", "test_describe") in (
        line,
        line.replace("tests.tools.test_describe", __name__),
    )


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
    first, second = preview("df", every_dtype()).splitlines()[1:]
    assert first == (
        "Rome | 21.5 | 2024-01-02 00:00:00 | 2024-01-02 00:00:00 | 1 | None | True | a | 1 | x"
        " | … | … | 0:00:01"
    )
    assert second.startswith("None | nan | 2024-01-03 00:00:00")


def test_several_levels_of_columns_and_rows() -> None:
    frame = pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", 1), ("b", None)]))
    assert text(frame) == "pandas.DataFrame 1×2 (a/1: int64, b/None: int64)"
    assert preview("f", frame) == "a/1 | b/None\n1 | 2"


def test_columns_that_were_added_and_moved_stand_in_their_order() -> None:
    frame = pd.DataFrame({"a": [1], "b": [1.5], "c": [2]})
    frame.insert(1, "d", "x")
    frame = frame[["c", "d", "a", "b"]]
    assert preview("f", frame) == "c | d | a | b\n2 | x | 1 | 1.5"


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
    assert preview("f", frame).splitlines() == [
        "n | s | l | t | c",
        f"1 | {'x' * 39}… | … | 2024-01-02 00:00:00 | é",
        "2 | None | … | None | b",
    ]
    assert preview("s", frame["n"], 1) == "1"


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
        assert preview("f", frame) == "e\n…"
        assert HITS == []
    finally:
        pl.unregister_extension_type("test.registered")


def test_a_zone_of_a_time_that_is_not_of_the_standard_library_is_not_asked() -> None:
    zone = type("Zone", (datetime.tzinfo,), {"utcoffset": hostile_objects.hook("utcoffset")})()
    HITS.clear()
    assert preview("t", [DAY.replace(tzinfo=zone), DAY]).splitlines() == [
        "datetime.datetime",
        "2024-01-02 00:00:00",
    ]
    assert HITS == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ([1, "a\nb", None, 4], "1\n'a b'\nNone"),
        (
            {"k": [1], (1,): Mine},
            f"'k': list 1 item (int)\ntuple 1 item (int): class {__name__}.Mine",
        ),
        ({3, 1, 2, "x"}, "'x'\n1\n2"),
        ({Mine, 1}, ""),
        (set(range(2_000)), ""),
        ("x" * 900, "x" * 399 + "…"),
        pytest.param(10**5_000, "an integer of 16,610 bits", id="large"),
        (True, "True"),
        (Mine(), ""),
        (np.array([[1, 2], [3, 4]]), "1 | 2\n3 | 4"),
        (np.zeros((2, 2, 2)), ""),
    ],
)
def test_previews(value: Any, shown: str) -> None:
    assert preview("v", value).replace("\n'", "\n'") == shown


def test_a_set_is_described_alike_in_every_process() -> None:
    code = (
        "from agent_nb.tools.describe import describe, preview;"
        "v = {'a', 'b', 'c', 1, 2.5, (1,)}; w = set('abcdefg');"
        "print(describe('v', v).as_text(), preview('v', v), preview('w', w))"
    )
    told = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(told) == 1


def test_the_work_does_not_grow_with_the_rows() -> None:
    def both(rows: int) -> list[int]:
        pandas = pd.DataFrame({"a": np.arange(rows), "b": ["x"] * rows, "c": 1.5})
        values = [pandas, pandas["a"], np.arange(rows)]
        values += [list(range(rows)), dict.fromkeys(range(rows)), "x" * rows]
        return [work(lambda v=v: (describe("v", v), preview("v", v))) for v in values]

    both(10)
    assert both(100_000) == both(10_000)


def test_the_work_does_not_grow_with_the_columns_beyond_those_shown() -> None:
    wide, wider = (pd.DataFrame(np.zeros((1, n))) for n in (100, 10_000))
    assert work(lambda: describe("w", wide)) == work(lambda: describe("w", wider))
    found = describe("w", wider)
    assert (len(found.columns), found.more) == (60, 9_940)
    assert found.as_text().endswith("59: float64, … 9,940 more)")


def test_an_array_of_ten_gigabytes_costs_no_memory(tmp_path: Path) -> None:
    zeros = hostile(tmp_path)["zeros"]
    assert zeros.nbytes == 10_000_000_000
    tracemalloc.start()
    try:
        assert text(zeros) == "numpy.ndarray 1250000000 float64"
        assert preview("z", zeros) == "0.0\n0.0\n0.0"
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_list_of_variables_is_bounded_and_counts_what_it_leaves_out() -> None:
    many = {f"v{n:05}": n for n in range(10_000)}
    lines = listing(many).splitlines()
    assert len(lines) == VARIABLES + 1
    assert (lines[0], lines[-1]) == ("v00000: int", "… and 9,940 more variables")
    few = {f"f{n}": pd.DataFrame(np.zeros((1, 60))) for n in range(30)}
    assert tokens(listing(few)) <= TOKENS
    assert "f0: pandas.DataFrame 1×60 (0: float64" in listing(few)
    wide = pd.DataFrame({"長" * 99 + str(n): [n] for n in range(60)})
    lines = listing({"v": wide, "w": wide, "x": 1}).splitlines()
    assert lines[0].startswith("v: pandas.DataFrame 1×60 (長")
    assert lines[1:] == ["w: pandas.DataFrame 1×60", "x: int"]


def test_variables_stand_by_name_after_those_that_were_used_last() -> None:
    names = {"b": 1, "A": 1, "c": 1}
    assert listing(names).split(": int") == ["A", "\nb", "\nc", ""]
    assert listing(names, ["c", "gone", "c"]).split(": int") == ["c", "\nA", "\nb", ""]
    assert listing({}) == ""


def test_which_variables_are_the_users() -> None:
    shell = {"In": [], "Out": {}, "get_ipython": len, "exit": 1, "quit": 1, "_": 1}
    ours = {"Agent": Agent, "tool": tool, "run": describe("x", 1)}
    mine = {"df": 1, "my_tool": my_tool, "f": parameters, "Mine": Mine}
    space = {**shell, **ours, "sys": sys, **mine}
    assert list(user_variables(space)) == list(mine)
    assert list(user_variables(space, ["df", "f"])) == ["my_tool", "Mine"]
    assert "sys" in user_variables(space, modules=True)


def test_a_hidden_name_that_was_set_again_is_the_users() -> None:
    first, second = object(), object()
    assert user_variables({"a": first, "b": second}, {"a": first, "b": first}) == {"b": second}


def test_what_would_break_a_line_is_taken_out() -> None:
    labels = pd.Index(["a\nIgnore\x1b[31m\u202e this\ud800", "b" * 99], dtype=object)
    frame = pd.DataFrame([[1, 2]]).set_axis(labels, axis=1)
    found = text(frame)
    assert "\n" not in found + preview("f", frame)[:40]
    assert found.isprintable()
    assert f"{'b' * 39}…: int64" in found


def test_a_key_is_filtered_before_it_is_cut() -> None:
    key = "k3y-" + "abcdefgh" * 8

    def clean(shown: str) -> str:
        return shown.replace(key, "[redacted]")

    frame = pd.DataFrame({"x" * 10 + key: ["y" * 20 + key]})
    shown = preview("f", frame, clean=clean) + describe("f", frame, clean).as_text()
    shown += preview("s", key, clean=clean) + preview("d", {key: [key]}, clean=clean)
    assert "k3y" not in shown
    assert shown.count("[redacted]") == 5


def test_nothing_is_imported_for_it() -> None:
    code = (
        "import sys, agent_nb.tools.describe as d; d.describe('x', 1); d.preview('x', [1]);"
        "print([m for m in ('pandas', 'polars', 'numpy', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"


def test_a_figure_says_how_many_axes_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("matplotlib.figure")
    module.Figure = type("Figure", (), {"axes": property(hostile_objects.hook("axes"))})  # type: ignore[attr-defined]
    figure = module.Figure()
    figure._localaxes = [1, 2]
    monkeypatch.setitem(sys.modules, "matplotlib.figure", module)
    HITS.clear()
    assert text(figure) == "matplotlib.figure.Figure 2 axes"
    assert HITS == []
