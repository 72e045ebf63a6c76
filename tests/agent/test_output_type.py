"""Types of answers: their schema, how they travel, which JSON is valid, and what is recorded."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Annotated, Any, Literal, Optional, TypedDict

import jsonschema
import pandas as pd
import pydantic
import pytest
from helpers.output_types import TYPES, Colour, Entry, Order, Row, Tree, wrap
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.agent.typed.output_type import InvalidOutput, NotJson, OutputType
from agent_nb.agent.typed.type_adapter import type_name
from agent_nb.errors import UsageError
from agent_nb.wire.json_text import encode_canonical

CASES = pytest.mark.parametrize("name", TYPES)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)


def typed(name: str) -> tuple[OutputType, Any, Any, Any]:
    kind, good, value, bad = TYPES[name]
    return OutputType(kind), good, value, bad


def test_there_are_at_least_sixty_types() -> None:
    assert len(TYPES) >= 60


@CASES
def test_a_valid_answer_has_the_value_of_the_type(name: str) -> None:
    output, good, value, _ = typed(name)
    answer = output.parse(json.dumps(wrap(output, good)))
    assert answer.value == value
    assert type(answer.value) is type(value)


@pytest.mark.few(23)
@CASES
def test_the_recorded_text_is_canonical_and_validates_to_an_equal_value(name: str) -> None:
    output, good, value, _ = typed(name)
    text = output.validate(good).text
    assert encode_canonical(json.loads(text)) == text
    again = output.validate(json.loads(text))
    assert (again.text, again.value) == (text, value)


@CASES
def test_an_invalid_answer_is_an_error_in_words(name: str) -> None:
    output, _, _, bad = typed(name)
    if bad is ...:
        pytest.skip("every JSON value is valid")
    with pytest.raises(InvalidOutput) as caught:
        output.parse(json.dumps(wrap(output, bad)))
    assert output.name in str(caught.value)
    assert "pydantic" not in str(caught.value)


@pytest.mark.few(23)
@CASES
def test_the_wire_schema_is_an_object_that_accepts_the_wrapped_value(name: str) -> None:
    output, good, _, _ = typed(name)
    schema = output.wire.schema
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert "$ref" not in schema
    jsonschema.validate(wrap(output, good), schema)


@given(JSON)
def test_unwrapping_a_wrapped_value_returns_it(document: Any) -> None:
    for kind in (list, Any, dict, int | dict[str, int]):
        output = OutputType(kind)
        assert output.unwrap(wrap(output, document)) == document


def test_an_object_travels_as_it_is_and_any_other_root_in_a_member() -> None:
    assert not OutputType(Row).wrapped
    assert OutputType(list[Row]).wire.schema["required"] == ["value"]
    assert "$defs" in OutputType(list[Row]).wire.schema
    assert not OutputType(Tree).wrapped
    assert not OutputType(dict[str, int]).wrapped


def test_a_bare_value_counts_where_a_wrapped_one_was_asked_for() -> None:
    assert OutputType(list[int]).parse("[1, 2]").value == [1, 2]
    assert OutputType(int).parse("7").value == 7


@pytest.mark.parametrize(
    "text",
    [
        '{"value": 7}',
        '```json\n{"value": 7}\n```',
        '```\n{"value": 7}\n```',
        'Here it is:\n\n```json\n{"value": 7}\n```\nDone.',
        '  {"value":\n7}\n',
    ],
)
def test_json_is_found_in_a_code_fence(text: str) -> None:
    assert OutputType(int).parse(text).value == 7


@pytest.mark.parametrize(
    "text", ["", "  \n", "seven", '{"value": 7', "```json\n1\n```\n```\n2\n```"]
)
def test_what_is_not_json_is_reported_as_such(text: str) -> None:
    with pytest.raises(NotJson, match="JSON"):
        OutputType(int).parse(text)


@pytest.mark.parametrize("text", ["NaN", "Infinity", '{"value": NaN}', "1e999"])
def test_a_number_that_json_lacks_is_invalid(text: str) -> None:
    with pytest.raises(InvalidOutput):
        OutputType(float).parse(text)


def test_an_integer_too_large_for_json_is_invalid_rather_than_rounded() -> None:
    with pytest.raises(InvalidOutput):
        OutputType(int).parse("12345678901234567891")
    assert OutputType(int).parse(str(2**53 - 1)).value == 2**53 - 1


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (int, "3.0", 3),
        (float, "3", 3.0),
        (set[int], "[1, 1]", {1}),
        (Colour, '"red"', Colour.RED),
        (Literal[1], "true", 1),
    ],
)
def test_these_coercions_are_allowed(kind: Any, text: str, value: Any) -> None:
    found = OutputType(kind).parse(text).value
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (int, '"3"'),
        (int, "true"),
        (int, "3.5"),
        (bool, "1"),
        (bool, '"true"'),
        (str, "3"),
        (float, "true"),
        (list[int], "{}"),
    ],
)
def test_these_coercions_are_not(kind: Any, text: str) -> None:
    with pytest.raises(InvalidOutput):
        OutputType(kind).parse(text)


def test_the_message_names_the_place_and_the_value_of_each_fault() -> None:
    with pytest.raises(InvalidOutput) as caught:
        OutputType(Order).parse('{"number": "x", "rows": [{"name": "tea", "price": "dear"}]}')
    assert str(caught.value).splitlines() == [
        "The answer is not a valid Order:",
        '- number: expected a valid integer; got "x" (string)',
        '- rows[0].price: expected a valid number; got "dear" (string)',
    ]


def test_the_message_about_a_root_speaks_of_the_answer() -> None:
    with pytest.raises(InvalidOutput, match=r"- the answer: expected a valid integer; got \"x\""):
        OutputType(int).parse('{"value": "x"}')


def test_a_message_about_many_faults_is_short() -> None:
    with pytest.raises(InvalidOutput, match="and 492 more"):
        OutputType(list[int]).validate([f"x{n}" for n in range(500)])


def test_what_a_validator_raises_is_part_of_the_message() -> None:
    class Picky(pydantic.BaseModel):
        n: int

        @pydantic.field_validator("n")
        @classmethod
        def check(cls, value: int) -> int:
            raise KeyError("no such n")

    with pytest.raises(InvalidOutput, match="no such n"):
        OutputType(Picky).parse('{"n": 1}')


def test_defaults_are_part_of_the_recorded_text() -> None:
    assert OutputType(Order).parse('{"number": 1, "rows": []}').text == (
        '{"note":null,"number":1,"rows":[]}'
    )


def test_a_type_that_loses_something_when_written_keeps_the_answer() -> None:
    class Secretive(pydantic.BaseModel):
        a: int
        b: int = pydantic.Field(exclude=True)

    assert OutputType(Secretive).parse('{"b": 2, "a": 1}').text == '{"a":1,"b":2}'


def test_a_decimal_travels_as_text_and_keeps_its_digits() -> None:
    output = OutputType(list[pydantic.condecimal()])
    assert output.schema["items"]["type"] == "string"
    assert (
        str(output.parse('["0.10000000000000000000001"]').value[0]) == "0.10000000000000000000001"
    )


def test_the_fields_of_a_named_tuple_are_described() -> None:
    assert [i["description"] for i in OutputType(Entry).schema["prefixItems"]] == ["Key", "Count"]


def test_titles_of_pydantic_are_not_sent_and_docstrings_are() -> None:
    schema = OutputType(Row).wire.schema
    assert "title" not in json.dumps(schema)
    assert schema["description"] == "A product in the list."


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (list[Row], "list[Row]"),
        (dict[str, list[int]], "dict[str, list[int]]"),
        (Row | None, "Row | None"),
        (Literal["a", 1], "Literal['a', 1]"),
        (tuple[int, ...], "tuple[int, ...]"),
        (Any, "Any"),
    ],
)
def test_a_type_is_named_as_its_user_writes_it(kind: Any, name: str) -> None:
    assert type_name(kind) == name


def test_the_name_for_the_provider_has_only_plain_characters() -> None:
    assert OutputType(list[Row]).wire.name == "list_Row"
    assert OutputType(Literal["ä"]).wire.name == "Literal"


class Plain:
    pass


class Looped(TypedDict):
    next: Looped


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (len, "len is a builtin_function_or_method, not a type"),
        (lambda: 1, "not a type"),
        (json, "json is a module, not a type"),
        ("Row", "'Row' is a text, not a type"),
        (3, "an object of the class int, not a type"),
        (Row(name="tea", price=1), "an object of the class Row, not a type"),
        ({"type": "object"}, "A dict of a JSON schema is not a type"),
        (None, "None is not a type"),
        (Plain, "The type Plain has no JSON schema"),
        (list[Plain], r"The type list\[Plain\] has no JSON schema"),
        (pd.DataFrame, r"give list\[Row\] and read run.output_frame"),
        (Looped, "contains itself"),
        (type[int], "has no JSON schema"),
        (Callable[[int], int], "has no JSON schema"),
    ],
)
def test_what_is_not_a_type_of_answers_is_an_error_that_says_what_to_give(
    kind: Any, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        OutputType(kind)


@pytest.mark.parametrize(
    "kind",
    [
        list["int"],
        list["__import__('sys').exit('evaluated')"],
        Optional["int"],
        dict[str, list["int"]],
        Annotated[list["int"], "a remark"],
        Row | list["int"],
    ],
)
def test_a_text_inside_a_type_is_refused_and_not_evaluated(kind: Any) -> None:
    with pytest.raises(UsageError, match=r"is a text inside .*, not a type"):
        OutputType(kind)


def test_texts_of_literals_metadata_and_fields_are_no_types() -> None:
    class Node(pydantic.BaseModel):
        below: "list[Row]"  # noqa: UP037

    for kind in (list[Literal["int"]], Annotated[int, "a remark"], list[Node]):
        assert OutputType(kind).schema


def test_a_name_that_is_not_defined_is_an_error() -> None:
    class Later(pydantic.BaseModel):
        other: "Missing"  # noqa: F821, UP037

    with pytest.raises(UsageError, match="Missing"):
        OutputType(Later)


def test_a_schema_of_many_thousand_characters_is_an_error() -> None:
    huge = pydantic.create_model("Huge", **{f"field_{n}": (int, ...) for n in range(4000)})
    with pytest.raises(UsageError, match="Ask for a smaller type"):
        OutputType(huge)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_comes_back(number: float) -> None:
    found = OutputType(float).parse(json.dumps(number)).value
    assert math.isclose(found, number, rel_tol=0, abs_tol=0)
    assert type(found) is float


def test_a_fence_of_endless_white_space_is_no_json() -> None:
    with pytest.raises(InvalidOutput, match="not JSON"):
        OutputType(int).parse("```json\n" + " " * 2_000_000 + "x")
