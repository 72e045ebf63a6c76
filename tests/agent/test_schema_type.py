"""A type of answers made of its schema judges as the type itself does."""

import enum
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Literal, NamedTuple
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field

from agent_nb.agent.typed.output_type import InvalidOutput, OutputType
from agent_nb.agent.typed.schema_type import SchemaType
from agent_nb.wire.redact import Redaction


class Color(enum.Enum):
    RED = "red"
    GREEN = "green"


class Point(NamedTuple):
    x: int
    y: float


class Node(BaseModel):
    value: int
    below: list["Node"] = []


@dataclass
class Part:
    count: int
    share: Annotated[float, Field(ge=0, le=1)] = 0.5


class Whole(BaseModel):
    model_config = ConfigDict(extra="forbid")
    label: Literal["a", "b"]
    color: Color
    parts: list[Part] = Field(min_length=1)
    when: date | None = None
    price: Decimal = Decimal(1)
    notes: dict[str, int] = {}


@dataclass
class Loose:
    word: str
    more: list[str] = field(default_factory=list)


GOOD = {
    "label": "a",
    "color": "red",
    "parts": [{"count": 1}],
    "when": "2026-11-23",
    "price": "1.20",
}
CASES = [
    (int, 3),
    (int, 3.0),
    (int, "3"),
    (int, True),
    (float, 1),
    (str, 1),
    (bool, "yes"),
    (list[int], [1, "a"]),
    (tuple[int, str], [1, "a"]),
    (tuple[int, str], [1]),
    (Point, [1, 0.5]),
    (Point, ["a", 0.5]),
    (dict[str, int], {"a": 1}),
    (dict[str, int], {"a": "b"}),
    (Literal["a", 1], 1),
    (Literal["a", 1], "b"),
    (int | None, None),
    (int | str, []),
    (Color, "red"),
    (Color, "blue"),
    (datetime, "2026-11-23T10:00:00Z"),
    (date, "soon"),
    (UUID, "3f2504e0-4f89-11d3-9a0c-0305e82c3301"),
    (UUID, "x"),
    (Decimal, "1.50"),
    (Decimal, "one"),
    (Annotated[str, Field(pattern="^a+$")], "b"),
    (Annotated[int, Field(gt=0)], 0),
    (set[int], [1, 2]),
    (Node, {"value": 1, "below": [{"value": 2}]}),
    (Node, {"value": 1, "below": [{"value": "x"}]}),
    (Loose, {"word": "a"}),
    (Loose, {"more": []}),
    (Loose, {"word": "a", "else": 1}),
    (Whole, GOOD),
    (Whole, {**GOOD, "label": "c"}),
    (Whole, {**GOOD, "parts": []}),
    (Whole, {**GOOD, "parts": [{"count": 1, "share": 2}]}),
    (Whole, {**GOOD, "notes": {"a": 1.5}}),
    (Whole, {**GOOD, "beside": 1}),
    (list[Whole], [GOOD]),
]


def verdict(kind, document):
    try:
        kind.validate(document)
    except InvalidOutput as fault:
        return str(fault)
    return ""


def both(kind):
    own = OutputType(kind)
    return own, SchemaType(own.name, own.schema)


@pytest.mark.parametrize(("kind", "document"), CASES)
def test_it_takes_and_refuses_what_the_type_does(kind, document):
    own, made = both(kind)
    assert bool(verdict(own, document)) == bool(verdict(made, document))


@pytest.mark.parametrize("kind", {id(kind): kind for kind, _ in CASES}.values())
def test_requests_and_records_are_equal(kind):
    own, made = both(kind)
    assert (made.wire, made.wrapped) == (own.wire, own.wrapped)
    assert made.described(Redaction({})) == own.described(Redaction({}))


def test_a_fault_has_the_words_of_the_type():
    own, made = both(Whole)
    wrong = {**GOOD, "label": "c", "parts": [{"count": "x"}]}
    assert verdict(made, wrong) == verdict(own, wrong)


def test_the_text_of_an_answer_is_the_json_of_the_model():
    _, made = both(Loose)
    assert made.parse('```json\n{"word": "a"}\n```').text == '{"word":"a"}'


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "frog"},
        {"type": "array"},
        {"type": ["string", "null"]},
        {"$ref": "#/$defs/Lost"},
        {"allOf": [{"type": "string"}, {"minLength": 1}]},
        {"enum": [1.5, {}]},
    ],
)
def test_what_it_does_not_know_is_not_checked(schema):
    assert verdict(SchemaType("Any", schema), "text") == "" or schema == {"type": "array"}
