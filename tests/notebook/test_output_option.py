"""`--output TYPE`: which type a name means, and a cell whose answer has it."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from typing import Any, Literal

import pydantic
import pytest
import typing_extensions
from helpers.output_types import Row

from agent_nb import Scripted
from agent_nb.errors import UsageError
from agent_nb.notebook.cell.failure import AgentCellError
from agent_nb.notebook.output_option import output_type

TEA = {"name": "tea", "price": 3.5}


class Box(pydantic.BaseModel, typing.Generic[typing.TypeVar("T")]):
    pass


T = typing.TypeVar("T")
Short = typing.Annotated[str, pydantic.Field(max_length=9)]
Id = typing.NewType("Id", int)
Alias = typing_extensions.TypeAliasType("Alias", list[int])
NAMES = {
    "Row": Row, "Box": Box, "Lit": Literal["a"], "frame": [1, 2], "run1": object(),
    "bag": types.SimpleNamespace(), "T": T, "List": typing.List, "Short": Short, "Id": Id,  # noqa: UP006
    "Alias": Alias, "Final": typing.Final, "Annotated": typing.Annotated,
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Row", Row),
        ("int", int),
        ("list[Row]", list[Row]),
        (" dict[str, list[Row]] ", dict[str, list[Row]]),
        ("Row | None", Row | None),
        ("int|str|Row", int | str | Row),
        ("tuple[int, ...]", tuple[int, ...]),
        ("Optional[Row]", typing.Optional[Row]),  # noqa: UP045
        ('Literal["yes", "no", 1, -1, None]', Literal["yes", "no", 1, -1, None]),
        ("Lit", Literal["a"]),
        ("Box[int]", Box[int]),
        ("Any", Any),
        ("list[Any]", list[Any]),
        ("List[Row]", list[Row]),
        ("Short", Short),
        ("list[Id]", list[Id]),
        ("Alias | None", typing.Optional[Alias]),  # noqa: UP045
    ],
)
def test_a_name_or_an_expression_is_a_type(text, kind):
    found = output_type(text, NAMES)
    assert found == kind or (typing.get_origin(found), typing.get_args(found)) == (list, (Row,))


def test_a_name_of_the_notebook_comes_first():
    assert output_type("int", {"int": Row}) is Row


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("run1", "run1 is a object. For the variable that gets the run, write -o run1"),
        (
            "nothing",
            "run the cell that defines or imports it. For the variable that gets the run, write -o nothing",
        ),
        ("frame", "frame is a list"),
        ("frame[0]", "frame is a list"),
        ("list[frame]", "frame is a list"),
        ("Row | frame", "frame is a list"),
        ("__import__('os').system('true')", "names, "),
        ("Row()", "names, "),
        ("models.Row", "names, "),
        ("list['Row']", "names, "),
        ("[Row]", "names, "),
        ("lambda: 1", "names, "),
        ("list[", "takes the type"),
        ("", "takes the type"),
        ("int[str]", "not a type"),
        ("Literal | int", "not a type"),
        ("(" * 400, "takes the type"),
        (f"int{' ' * 500}| str", "takes the type"),
        ("print", "print is not defined"),
        ("bag", "bag is a SimpleNamespace"),
        ("list[bag]", "bag is a SimpleNamespace"),
        ("list[T]", "T is a TypeVar"),
        ("Final", "Final is a "),
        ("Union", "Union is not a type without [ ]"),
        ("list[Literal]", "Literal is not a type without [ ]"),
        ("Optional[Annotated]", "Annotated is not a type without [ ]"),
        ("TypedDict", "TypedDict is not defined"),
        ("3", "names, "),
    ],
)
def test_anything_else_is_refused_in_words_and_nothing_is_called(text, words):
    with pytest.raises(UsageError, match="--output") as caught:
        output_type(text, NAMES)
    assert words in str(caught.value)


def test_no_object_of_the_notebook_is_asked_for_anything():
    class Trap:
        def __getitem__(self, key):
            raise AssertionError

        def __or__(self, other):
            raise AssertionError

        def __getattr__(self, name):
            raise AssertionError(name)

        __class__ = property(lambda self: 1 / 0)

    for text in ("trap", "trap[0]", "trap | int", "list[trap]"):
        with pytest.raises(UsageError, match="Trap"):
            output_type(text, {"trap": Trap()})


def scripted(*turns):
    return Scripted([json.dumps(turn) for turn in turns])


def test_a_cell_leaves_a_typed_answer(nb):
    run = nb.cell("hi", "-m model --output list[Row] -o found", model=scripted([TEA]), Row=Row)
    assert run.output == [Row(**TEA)]
    assert nb.shell.user_ns["found"] is run
    assert "list[Row]" in nb.last[0]["text/plain"]
    assert "name  price" in nb.last[0]["text/plain"]


def test_the_same_cell_is_replayed_with_its_type_and_a_changed_type_is_not(nb):
    line = "-m model --output list[Row]"
    first = nb.cell("hi", line, model=scripted([TEA]), Row=Row)
    again = nb.cell("hi", line)
    assert (again.id, again.output) == (first.id, [Row(**TEA)])
    assert "replayed" in nb.last[0]["text/plain"]

    @dataclasses.dataclass
    class Other:
        name: str

    live = nb.cell("hi", line, model=scripted([{"name": "oil"}]), Row=Other)
    assert live.output == [Other("oil")]
    assert live.id != first.id


def test_a_record_of_another_type_is_stale_and_named_in_strict_replay(nb):
    nb.cell("hi", "-m model --output Row", model=scripted(TEA), Row=Row)
    with pytest.raises(AgentCellError, match="output"):
        nb.cell("hi", "-m model --output int --rerun replay")


def test_the_old_meaning_of_output_is_an_error_that_names_the_new_one(nb):
    with pytest.raises(AgentCellError, match="-o run1"):
        nb.cell("hi", "-m model --output run1", model=scripted(TEA))


def test_a_class_that_is_no_type_of_answers_is_one_clear_line(nb):
    class Plain:
        pass

    with pytest.raises(AgentCellError, match="Plain has no JSON schema"):
        nb.cell("hi", "-m model --output Plain", model=scripted(TEA), Plain=Plain)


def test_three_bad_answers_fail_the_cell(nb):
    with pytest.raises(AgentCellError, match="not a valid int"):
        nb.cell("hi", "-m model --output int", model=scripted("a", "b", "c"))
    assert nb.shell.user_ns["_agent"].output is None
