"""`{{ expression }}` becomes its value; everything else in a prompt stays as it was typed."""

import os
import subprocess
import sys

import pytest
from helpers.pictures import attached, png
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.agent.interpolate import (
    LONGEST_VALUE,
    MOST_COLUMNS,
    MOST_ROWS,
    PromptTemplate,
    describe_value,
)
from agent_nb.errors import UsageError


class Wrong:
    def __repr__(self):
        raise RuntimeError("no repr")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ x }}", "7"),
        ("a {{x}} b {{ x + 1 }} c", "a 7 b 8 c"),
        ("{{ name }}", "Ada {{ x }}"),  # a text goes in as it is and is not read again
        ("{{ {'a': {'b': 1}} }}", "{'a': {'b': 1}}"),
        ("{{ {'a': {'b': 1}}['a'] }}", "{'b': 1}"),
        ("{{ f'{x}}}' }}", "7}"),
        ("{{ '}}' }}", "}}"),
        ("{{ [i for i in range(3)] }}", "[0, 1, 2]"),
        ("{{ (y := 3) + y }}", "6"),
        ("{{\n  x\n}}", "7"),
        (r"\{{ x }}", "{{ x }}"),
        (r"\{{ x }} {{ x }}", "{{ x }} 7"),
        ("{x} {} }} $x %x {{", "{x} {} }} $x %x {{"),
        ('{"json": {"a": 1}}', '{"json": {"a": 1}}'),
        ("no braces", "no braces"),
        ("", ""),
    ],
)
def test_expressions_are_replaced_and_other_braces_stay(text, expected):
    assert PromptTemplate(text).fill({"x": 7, "name": "Ada {{ x }}"}) == expected


@given(st.text().filter(lambda t: "{{" not in t))
def test_a_text_without_double_braces_is_unchanged(text):
    assert PromptTemplate(text).fill({}) == text


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{{ missing }}", "missing"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{{ }}", "empty"),
        ("{{ not python! }}", "not python!"),
        ("{{ import os }}", "import os"),
        ("fine {{ x }} then {{ x.y }}", "x.y"),
        (f"{{{{ {'-' * 5_000}1 }}}}", "RecursionError"),
    ],
)
def test_a_failing_expression_is_an_error_that_names_it(text, named):
    with pytest.raises(UsageError, match=named.replace(".", r"\.")):
        PromptTemplate(text).fill({"x": 7})


def test_an_expression_that_is_never_valid_takes_linear_time():
    """In quadratic time it would exceed the test's time limit."""
    with pytest.raises(UsageError, match="SyntaxError"):
        PromptTemplate("{{ ' " + "}} " * 100_000)


class Untold(Exception):
    def __str__(self):
        raise ValueError("no text")


def fail_untold():
    raise Untold


def test_a_value_that_cannot_be_shown_is_an_error():
    with pytest.raises(UsageError, match="no repr"):
        PromptTemplate("{{ wrong }}").fill({"wrong": Wrong()})


def test_an_error_whose_text_raises_is_named_by_its_type():
    with pytest.raises(UsageError, match=r"\{\{ fail\(\) \}\} failed: Untold\. Nothing was sent"):
        PromptTemplate("{{ fail() }}").fill({"fail": fail_untold})


def test_the_namespace_is_not_changed():
    names = {"x": 1}
    PromptTemplate("{{ (x := 2) }}").fill(names)
    assert names["x"] == 1


def test_a_frame_is_summarised():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"year": range(1000), "sales": [1.5] * 1000})
    text = describe_value(frame)
    assert "1000 rows × 2 columns" in text
    assert "year int64, sales float64" in text
    assert "995 more rows" in text
    assert len(text) < 400


def test_a_frame_of_polars_says_what_is_left_out_too():
    pl = pytest.importorskip("polars")
    text = describe_value(pl.DataFrame({f"c{n}": range(30) for n in range(70)}))
    assert text.startswith("DataFrame, 30 rows × 70 columns\nColumns: c0 Int64, c1 Int64, ")
    assert f", … {70 - MOST_COLUMNS} more\n" in text
    assert text.endswith(f"… {30 - MOST_ROWS} more rows")


def test_a_wide_frame_is_bounded():
    pd = pytest.importorskip("pandas")
    text = describe_value(pd.DataFrame([["x" * 500] * 500]))
    assert len(text) < LONGEST_VALUE + 100
    assert "470 more" in text


def test_a_series_and_an_array_are_summarised():
    pd, np = pytest.importorskip("pandas"), pytest.importorskip("numpy")
    assert "Series 'a', 10 × int64" in describe_value(pd.Series(range(10), name="a"))
    text = describe_value(np.arange(10_000).reshape(100, 100))
    assert "shape (100, 100)" in text
    assert "max 9999" in text
    assert describe_value(np.array([1, 2])).endswith("[1 2]")


@pytest.mark.parametrize(
    "value",
    [list(range(10_000)), tuple(range(10_000)), set(range(10_000)), {i: i for i in range(10_000)}],
)
def test_long_collections_are_bounded_and_say_so(value):
    text = describe_value(value)
    assert "9980 more" in text
    assert len(text) < 300


@pytest.mark.parametrize(
    "value",
    [
        [],
        (),
        (1,),
        set(),
        {1},
        frozenset(),
        frozenset({1}),
        {"a": [1, (2,)]},
        [{1: {2}}, None],
        {(2, 1), (10, 1)},
    ],
)
def test_a_short_collection_is_written_as_its_repr(value):
    assert describe_value(value) == repr(value)


def test_a_set_of_texts_is_written_alike_in_every_process():
    words = [f"w{n:02}" for n in range(12)]
    nested = {"a": [set(words)], "b": (frozenset(words),)}
    code = f"from agent_nb.agent.interpolate import describe_value\nprint(describe_value({nested}))"
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in "12"
    }
    assert len(texts) == 1


@pytest.mark.parametrize("length", [1, 30])
def test_a_list_that_contains_itself_is_written(length):
    value = [None] * length
    value[0] = value
    assert describe_value(value).startswith("[[...]")


def test_a_long_text_of_the_user_is_kept_whole_and_a_long_repr_is_cut():
    assert describe_value("x" * 100_000) == "x" * 100_000
    assert len(describe_value(b"x" * 100_000)) < LONGEST_VALUE + 100


def test_no_library_is_imported_for_it():
    code = (
        "import sys\nfrom agent_nb.agent.interpolate import describe_value\n"
        "describe_value([1])\nprint({'pandas', 'polars', 'numpy'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


class Plot:
    def savefig(self, target, **_):
        target.write(png(7, 3))


@pytest.mark.parametrize("value", [Plot(), png(7, 3)])
def test_a_picture_goes_with_the_prompt_and_leaves_its_name(value):
    pictures = []
    said = PromptTemplate("See {{ plots['a'] }}, why?").fill({"plots": {"a": value}}, pictures)
    assert said == "See [plots['a']: 7×3 pixels], why?"
    assert pictures == [{**attached(png(7, 3)), "name": "plots['a']"}]
