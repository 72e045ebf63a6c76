"""Variables in a line each: nothing of theirs runs, and nothing grows without bound."""

from __future__ import annotations

import datetime
import subprocess
import sys
import types
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
    MOST_TOKENS,
    MOST_VARIABLES,
    describe_variable,
    list_variables,
    preview_value,
    user_variables,
)
from agent_nb.tools.variable_facts import count_tokens

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
    return describe_variable("v", value).as_text().removeprefix("v: ")


def test_no_hook_of_a_hostile_object_runs(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    objects = hostile(tmp_path)
    assert len(objects) >= 30
    for name, value in objects.items():
        assert describe_variable(name, value).as_text().startswith(f"{name}: ")
        preview_value(value, 20)
        assert not HITS, name
    list_variables(user_variables(objects, modules=True))
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
    found = list_variables(user_variables(hostile(tmp_path), modules=True))
    assert count_tokens(found) < MOST_TOKENS
    assert len(found.splitlines()) >= 30


def test_subclasses_inside_containers_are_named_only(tmp_path: Path) -> None:
    objects = hostile(tmp_path)
    inside = [Text("x"), objects["of_meta"], objects["class_of_meta"], objects["my_dict"]]
    assert text(inside).startswith("list 4 items (")
    assert len(preview_value(inside, 4).splitlines()) == 4
    assert preview_value(dict.fromkeys("ab", objects["mock"])).count("MagicMock") == 2
    assert HITS == []


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


def test_signatures_of_functions_that_python_would_not_write() -> None:
    free = 1

    def closure(a, /, *, b=2):
        return free

    assert text(closure) == "function closure(a, /, *, b=…)"
    assert text(types.FunctionType(parameters.__code__, {}, "f", (1,) * 9)).startswith(
        "function f("
    )
    renamed = parameters.__code__.replace(co_varnames=("a b", "class", "c", "k", "m", "r", "s"))
    assert text(types.FunctionType(renamed, {}, "f")) == (
        "function f(a b, class, /, c, *r, k, m, **s)"
    )


def test_a_wrapper_shows_its_own_signature_and_asks_nothing_behind_it() -> None:
    def wrapper(*args, **kwargs): ...

    wrapper.__wrapped__ = hostile_objects.trap("wrapped")  # type: ignore[attr-defined]
    wrapper.__signature__ = hostile_objects.trap("signature")  # type: ignore[attr-defined]
    HITS.clear()
    assert text(wrapper) == "function wrapper(*args, **kwargs)"
    assert HITS == []


def test_a_zone_of_a_time_that_is_not_of_the_standard_library_is_not_asked() -> None:
    zone = type("Zone", (datetime.tzinfo,), {"utcoffset": hostile_objects.hook("utcoffset")})()
    HITS.clear()
    assert preview_value([DAY.replace(tzinfo=zone), DAY]).splitlines() == [
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
        (np.array(["a", "b"]), "a\nb"),
    ],
)
def test_previews(value: Any, shown: str) -> None:
    assert preview_value(value).replace("\n'", "\n'") == shown


def test_a_set_is_described_alike_in_every_process() -> None:
    code = (
        "from agent_nb.tools.describe import describe_variable, preview_value;"
        "v = {'a', 'b', 'c', 1, 2.5, (1,)}; w = set('abcdefg');"
        "print(describe_variable('v', v).as_text(), preview_value(v), preview_value(w))"
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


def test_a_list_of_variables_is_bounded_and_counts_what_it_leaves_out() -> None:
    many = {f"v{n:05}": n for n in range(10_000)}
    lines = list_variables(many).splitlines()
    assert len(lines) == MOST_VARIABLES + 1
    assert (lines[0], lines[-1]) == ("v00000: int", "… and 9,940 more variables")
    few = {f"f{n}": pd.DataFrame(np.zeros((1, 60))) for n in range(30)}
    assert count_tokens(list_variables(few)) <= MOST_TOKENS
    assert "f0: pandas.DataFrame 1×60 (0: float64" in list_variables(few)
    wide = pd.DataFrame({"長" * 99 + str(n): [n] for n in range(60)})
    lines = list_variables({"v": wide, "w": wide, "x": 1}).splitlines()
    assert lines[0].startswith("v: pandas.DataFrame 1×60 (長")
    assert lines[1:] == ["w: pandas.DataFrame 1×60", "x: int"]


def test_variables_stand_by_name_after_those_that_were_used_last() -> None:
    names = {"b": 1, "A": 1, "c": 1}
    assert list_variables(names).split(": int") == ["A", "\nb", "\nc", ""]
    assert list_variables(names, ["c", "gone", "c"]).split(": int") == ["c", "\nA", "\nb", ""]
    assert list_variables(names, ["gone"], rows=True) == list_variables(names)
    assert list_variables({}) == ""


def test_which_variables_are_the_users() -> None:
    shell = {"In": [], "Out": {}, "get_ipython": len, "exit": 1, "quit": 1, "_": 1}
    ours = {"Agent": Agent, "tool": tool, "run": describe_variable("x", 1)}
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
    assert "\n" not in found + preview_value(frame)[:40]
    assert found.isprintable()
    assert f"{'b' * 39}…: int64" in found


def test_a_key_is_filtered_before_it_is_cut() -> None:
    key = "k3y-" + "abcdefgh" * 8

    def clean(shown: str) -> str:
        return shown.replace(key, "[redacted]")

    frame = pd.DataFrame({"x" * 10 + key: ["y" * 20 + key]})
    shown = preview_value(frame, clean=clean) + describe_variable("f", frame, clean).as_text()
    shown += preview_value(key, clean=clean) + preview_value({key: [key]}, clean=clean)
    assert "k3y" not in shown
    assert shown.count("[redacted]") == 5


def test_a_key_in_a_name_is_filtered_before_the_name_is_cut() -> None:
    key = "k3y-" + "abcdefgh" * 8

    def clean(shown: str) -> str:
        return shown.replace(key, "[redacted]")

    for before in range(0, 220, 7):
        name = "N" * before + key
        named = type(name, (), {"__module__": "__main__"})
        function: Any = types.FunctionType(parameters.__code__, {}, name)
        method = types.MethodType(function, named())
        module = types.ModuleType(name)
        column = np.zeros(1, dtype=object)
        values = (named, named(), [named()], {named()}, {1: named()}, function, method, module)
        for value in (*values, column):
            assert "k3y" not in describe_variable("v", value, clean).as_text()
            assert "k3y" not in preview_value([value], clean=clean)


def test_callables_of_modules_can_be_left_out_and_the_users_own_stay() -> None:
    code = (
        "import functools, dataclasses\n"
        "from dataclasses import dataclass, make_dataclass\n"
        "from typing import Any, Literal, Optional\n"
        "from math import sqrt\n"
        "from math import pi\n"
        "from random import randint\n"
        "from pydantic import BaseModel as Base\n"
        "from numpy import sin, mean\n"
        "class Mine(Base): ...\n"
        "Made = make_dataclass('Made', ['x'])\n"
        "@dataclass\nclass Point: x: int\n"
        "def load(): ...\n"
        "@functools.wraps(dataclass)\ndef wrapped(): ...\n"
        "short = lambda: 1\n"
        "Kind = Optional[int]\n"
        "class Calls:\n def __call__(self): raise SystemExit\n"
        "calls, point, bound, append = Calls(), Point(1), Calls().__call__, [].append\n"
    )
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, "<cell>", "exec", dont_inherit=True), space)
    mine = ["pi", "Mine", "Made", "Point", "load", "wrapped", "short", "Kind", "Calls", "calls"]
    mine += ["point", "bound", "append"]
    assert list(user_variables(space, imports=False)) == mine
    assert {"dataclass", "Literal", "Base", "sin"} < set(user_variables(space))


def test_whether_a_value_was_imported_runs_no_code_of_it(tmp_path: Path) -> None:
    user_variables(hostile(tmp_path), imports=False)
    assert HITS == []


def test_nothing_is_imported_for_it() -> None:
    code = (
        "import sys, agent_nb.tools.describe as d; d.describe_variable('x', 1); d.preview_value([1]);"
        "print([m for m in ('pandas', 'polars', 'numpy', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"
