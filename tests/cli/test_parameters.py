"""Parameters of `run -p NAME=VALUE` and the cell that sets them."""

import inspect
import math
import sys

import nbformat
import pytest

from agent_nb.cli.parameters import inject_parameters, parse_parameters
from agent_nb.errors import UsageError


def injected(*texts):
    """Return the variables that the cell of these parameters sets."""
    notebook, names = {"cells": []}, {}
    inject_parameters(notebook, parse_parameters(texts))
    exec(notebook["cells"][0]["source"], names)
    return {name: value for name, value in names.items() if not name.startswith("__")}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n=41", 41),
        ("on=true", True),
        ("word=a: b: c", "a: b: c"),
        ("rows=[1, {a: null}]", [1, {"a": None}]),
        ("day=2024-01-01", "2024-01-01"),
        ("at=2024-01-01T10:00:00Z", "2024-01-01T10:00:00Z"),
        ("days=[2024-01-01]", ["2024-01-01"]),
        ("most={a: .inf}", {"a": math.inf}),
        ("mask=0x_", "0x_"),
        ("flag=!!bool maybe", "!!bool maybe"),
        ("count=!!int", "!!int"),
        ("digits=" + "9" * 5000, "9" * 5000),
    ],
)
def test_the_cell_sets_the_value_without_an_import(text, value):
    assert injected(text) == {text.partition("=")[0]: value}


def test_a_value_that_is_not_a_number_is_set_without_an_import():
    assert math.isnan(injected("x=.nan")["x"])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("rate=1e-3", 0.001),
        ("many=2E6", 2e6),
        ("rates=[-2.5e4, a]", [-25000.0, "a"]),
        ('settings={"rate": 1e-3}', {"rate": 0.001}),
        ("code=01e3", "01e3"),
        ("word='1e3'", "1e3"),
        ("text=1e3x", "1e3x"),
    ],
)
def test_a_number_with_an_exponent_is_a_number_as_in_json(text, value):
    assert injected(text) == {text.partition("=")[0]: value}


@pytest.mark.parametrize("text", ["1x", "a b=1", "=1", "class=1"])
def test_a_text_that_is_no_parameter_is_refused(text):
    with pytest.raises(UsageError, match="A parameter is NAME=VALUE"):
        parse_parameters([text])


@pytest.mark.parametrize("text", ["x=&a [*a]", "x=&a {k: [*a]}", f"x={'[' * 90}{']' * 90}"])
def test_a_value_nested_too_deeply_is_refused(text):
    values = parse_parameters([text])
    frames = len(inspect.stack(0))
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(frames + 100)
        with pytest.raises(
            UsageError, match="parameter x is nested too deeply, or contains itself"
        ):
            inject_parameters({"cells": []}, values)
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize("tags", [None, "no parameters"])
def test_tags_that_are_no_list_are_no_tags(tags):
    notebook = {"cells": [{"source": "a", "metadata": {"tags": tags}}]}
    inject_parameters(notebook, {"n": 2})
    assert [cell["source"] for cell in notebook["cells"]] == ["n = 2", "a"]


def test_the_cell_follows_the_one_that_is_tagged_and_replaces_an_older_one():
    def cell(source, *tags):
        return {"source": source, "metadata": {"tags": list(tags)}}

    cells = [cell("a"), cell("b", "parameters"), cell("n = 1", "injected-parameters"), cell("c")]
    notebook = {"cells": cells}
    inject_parameters(notebook, {"n": 2})
    assert [each["source"] for each in notebook["cells"]] == ["a", "b", "n = 2", "c"]


def test_the_inserted_cell_takes_no_id_of_another_cell():
    tags = {"tags": ["parameters"]}
    nb = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("x = 1", id="parameters", metadata=tags)]
    )
    for value in (2, 3):
        inject_parameters(nb, {"x": value})
    assert [(c.id, c.source) for c in nb.cells] == [
        ("parameters", "x = 1"),
        ("parameters-", "x = 3"),
    ]
    nbformat.validate(nb)
