"""Whatever a tool returns or raises becomes a bounded text or JSON value, and a bundle
for people.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import os
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd
import pytest

from agent_nb.errors import Cancelled, ToolError
from agent_nb.tools import failures, results
from agent_nb.tools.base import Outcome, Update
from agent_nb.tools.running_call import convert_update
from agent_nb.tools.values import Collector, byte_size, clip_text, convert_to_json


class Kind(enum.Enum):
    A = "a"


class Pair(NamedTuple):
    left: int
    right: int


@dataclasses.dataclass
class Data:
    n: int


class Struct(msgspec.Struct):
    n: int


class Nasty:
    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "content"),
    [
        (None, "(no value)"),
        ("text", "text"),
        ({"a": [1, True, None]}, {"a": [1, True, None]}),
        (3, 3),
        (float("nan"), "NaN"),
        ([float("inf"), -float("inf")], ["Infinity", "-Infinity"]),
        (2**70, str(2**70)),
        ([10**5000], ["(an integer of 16,610 bits)"]),
        ("a\ud800b", "a\ufffdb"),
        ({"\ud800": 1, 2: 3}, {"\ufffd": 1, "2": 3}),
        (b"abc", "abc"),
        (b"\x00\xff", "(2 bytes: 00 ff)"),
        ({3, 1, 2}, [1, 2, 3]),
        ((1, 2), [1, 2]),
        (range(3), [0, 1, 2]),
        (Kind.A, "a"),
        (Pair(1, 2), {"left": 1, "right": 2}),
        (Data(1), {"n": 1}),
        (Struct(1), {"n": 1}),
        (Decimal("1.50"), "1.50"),
        (datetime.date(2020, 1, 2), "2020-01-02"),
        (Path("a/b"), "a/b"),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (object(), "<object object>"),
        (Nasty(), "<Nasty whose repr raised RuntimeError>"),
        (ValueError("x"), "ValueError: x"),
    ],
)
def test_values_become_text_or_json(value: Any, content: Any) -> None:
    outcome = results.convert_result(value)
    assert outcome == Outcome("ok", content)
    msgspec.json.encode(outcome)


def test_a_cycle_and_endless_depth_end() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]
    assert results.convert_result(cycle).content == ["(a cycle)"]
    assert json.dumps(results.convert_result(deep).content).count("[") < 300


def test_a_value_that_fits_stays_json_and_a_larger_one_is_cut_with_a_mark() -> None:
    assert results.convert_result(["x"] * 10, limit=100).content == ["x"] * 10
    cut = results.convert_result({"a": "x" * 1000}, limit=100).content
    assert isinstance(cut, str)
    assert len(cut) < 200
    assert "characters left out" in cut


def test_a_size_has_at_most_three_digits_before_the_point() -> None:
    sizes = [byte_size(count) for count in (999, 1_000, 999_949, 999_950, 999_999_999)]
    assert sizes == ["999 B", "1.0 kB", "999.9 kB", "1.0 MB", "1.0 GB"]


def test_members_of_an_enum_count_with_the_items_of_their_values() -> None:
    class Wide(enum.Enum):
        A = tuple(range(1_000))

    converted = convert_to_json([Wide.A] * 100, 1_000)
    assert sum(len(part) for part in converted) <= 1_000


def test_an_object_of_a_known_kind_whose_methods_raise_is_its_repr() -> None:
    class Text(str):
        def __str__(self) -> str:
            raise RuntimeError

    class Place(os.PathLike):
        __fspath__ = __str__ = Nasty.__repr__

    class Sized:
        shape = _repr_html_ = _repr_mimebundle_ = property(Nasty.__repr__)

        def __repr__(self) -> str:
            return "<Sized>"

    assert results.convert_result(Text("a")).content == "'a'"
    assert results.convert_result(Sized()).content == "<Sized>"
    assert "Place" in results.convert_result(Place()).content


@pytest.mark.parametrize("notes", [5, None, [Nasty(), "look"], "look"])
def test_odd_notes_of_an_error_do_not_cost_its_message(notes: Any) -> None:
    error = ValueError("x")
    error.__notes__ = notes
    assert failures.convert_error(error).content.startswith("ValueError: x")


def test_a_million_items_cost_only_what_is_shown() -> None:
    made = convert_to_json(range(10**9), 50)
    assert made == list(range(50))


def test_clipped_text_keeps_beginning_and_end() -> None:
    made = clip_text("a" * 1000 + "z" * 1000, 90)
    assert made.startswith("a" * 60 + "\n[… 1,910 characters left out …]\n")
    assert made.endswith("z" * 30)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_collector_keeps_beginning_and_end_in_any_chunking(size: int) -> None:
    text = "".join(f"{i:05}" for i in range(1000))
    collector = Collector(90)
    for at in range(0, len(text), size):
        collector.add(text[at : at + size])
    assert collector.text == clip_text(text, 90)
    short = Collector(90)
    short.add("abc")
    assert short.text == "abc"


def test_a_frame_gives_the_model_a_compact_text_and_people_a_table() -> None:
    outcome = results.convert_result(pd.DataFrame({"number": range(1000)}))
    assert outcome.content.startswith("DataFrame of shape 1000 × 1\n")
    assert len(outcome.content) < 600
    assert outcome.display is not None
    assert "<table" in outcome.display["text/html"]
    assert outcome.display["text/plain"] == outcome.content


def test_an_array_says_its_shape_and_type() -> None:
    outcome = results.convert_result(np.zeros((3, 2)))
    assert outcome.content.startswith("ndarray of shape 3 × 2, float64\n")
    assert outcome.display == {"text/plain": outcome.content}


def test_rich_objects_are_asked_as_ipython_does() -> None:
    class Rich:
        def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
            return {"text/html": "<b>", "application/javascript": "alert(1)"}, {"text/html": {}}

        def _repr_markdown_(self) -> str:
            raise RuntimeError

        def __repr__(self) -> str:
            return "Rich"

    assert results.convert_result(Rich()) == Outcome(
        "ok", "Rich", {"text/plain": "Rich", "text/html": "<b>"}
    )


def test_a_rendering_that_is_too_large_is_dropped() -> None:
    class Rich:
        def _repr_html_(self) -> str:
            return "x" * 5_000_000

    outcome = results.convert_result(Rich())
    assert outcome.display is None or "text/html" not in outcome.display


def test_an_object_that_answers_to_any_name_is_not_asked() -> None:
    class Yes:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError(name)

        def __repr__(self) -> str:
            return "Yes"

    assert results.convert_result(Yes()) == Outcome("ok", "Yes")


def test_a_tools_own_render_is_the_display_and_its_fault_is_told() -> None:
    shown = results.convert_result(
        {"n": 1}, render=lambda value: {"text/html": f"<b>{value['n']}</b>", "x/y": "no"}
    )
    assert shown == Outcome("ok", {"n": 1}, {"text/plain": '{"n":1}', "text/html": "<b>1</b>"})
    failed = results.convert_result("v", render=lambda value: value.missing)
    assert failed.content == "v"
    assert failed.display is not None
    assert "the tool's render failed: AttributeError" in failed.display["text/plain"]


def test_an_outcome_is_kept_but_bounded() -> None:
    outcome = results.convert_result(
        Outcome("denied", "x" * 1000, {"text/plain": float("nan")}), limit=90
    )
    assert outcome.status == "denied"
    assert len(outcome.content) < 200
    assert outcome.display == {"text/plain": "NaN"}


def failing() -> None:
    raise ValueError("bad value")


def test_an_error_is_short_for_the_model_and_has_a_traceback_for_people() -> None:
    try:
        failing()
    except ValueError as error:
        outcome = failures.convert_error(error)
    assert (outcome.status, outcome.content) == ("error", "ValueError: bad value")
    assert outcome.display is not None
    assert 'raise ValueError("bad value")' in outcome.display["text/plain"]


def test_the_home_folder_is_not_in_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(Path(__file__).parent))
    try:
        failing()
    except ValueError as error:
        shown = failures.format_trace(error)
    assert str(Path(__file__).parent) not in shown
    assert "~/test_results.py" in shown


def test_a_tool_error_is_its_message_alone() -> None:
    assert failures.convert_error(ToolError("Do this.")) == Outcome("error", "Do this.")


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (KeyboardInterrupt(), "cancelled", "Stopped before it was done."),
        (Cancelled("user"), "cancelled", "Stopped before it was done."),
        (Cancelled("user", "the cell has ended"), "cancelled", "Stopped: the cell has ended."),
        (SystemExit(3), "error", "SystemExit: 3"),
        (
            ExceptionGroup("two", [ValueError("a"), KeyError("b")]),
            "error",
            "ValueError: a; KeyError: 'b'",
        ),
        (MemoryError(), "error", "MemoryError"),
        (ValueError("x" * 100_000), "error", "characters left out"),
    ],
)
def test_every_kind_of_error_has_a_status_and_a_message(
    error: BaseException, status: str, said: str
) -> None:
    outcome = failures.convert_error(error)
    assert outcome.status == status
    assert said in outcome.content
    assert len(outcome.content) < 3000


def test_an_error_whose_text_cannot_be_made_is_still_told() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert failures.convert_error(Odd()).content == "Odd"


def test_notes_of_an_error_are_told() -> None:
    error = ValueError("x")
    error.add_note("look here")
    assert failures.convert_error(error).content == "ValueError: x\nlook here"


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("text", Update(text="text")),
        (0.5, Update(fraction=0.5)),
        (1, Update(fraction=1.0)),
        (5, Update(data=5)),
        (float("nan"), Update(data="NaN")),
        ({"a": float("nan")}, Update(data={"a": "NaN"})),
        (np.float32(0.5), Update(fraction=0.5)),
        ({"x": object()}, Update(data={"x": "<object object>"})),
        ("\ud800", Update(text="\ufffd")),
        (Update(fraction=float("inf"), message="m"), Update(message="m")),
    ],
)
def test_anything_that_is_reported_becomes_a_clean_update(value: Any, told: Update) -> None:
    assert convert_update(value) == told


def test_a_traceback_names_no_file_of_the_kernel():
    source = compile("def f():\n    return 1 / 0", "/tmp/ipykernel_4711/123456.py", "exec")
    space = {}
    exec(source, space)
    try:
        space["f"]()
    except ZeroDivisionError as error:
        text = failures.format_trace(error)
    assert 'File "<notebook cell>", line 2' in text
    assert "ipykernel" not in text


class Raising(type):
    """A class of which no attribute can be looked up."""

    def __getattr__(cls, name: str) -> Any:
        raise RuntimeError(name)


class Odd(metaclass=Raising):
    """An object of such a class."""


def test_a_value_that_cannot_be_looked_at_becomes_its_repr() -> None:
    released = memoryview(b"x")
    released.release()
    assert results.convert_result(released).content == "<released memory>"
    assert "Odd object" in results.convert_result([Odd()]).content
    assert "Odd object" in results.convert_result(Odd()).content


def test_groups_of_errors_inside_one_another_are_shown_to_a_depth() -> None:
    error: Exception = ValueError("inside")
    shallow = ExceptionGroup("around", [error])
    assert failures.convert_error(shallow).content.endswith("; ValueError: inside")
    for _ in range(3_000):
        error = ExceptionGroup("around", [error])
    assert failures.convert_error(error).content.count("around") == 4
