"""Sixty types of answers, each with a valid JSON value, its Python value, and an invalid one."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import ipaddress
import pathlib
import typing
import uuid
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypeVar, Union

import pydantic
import typing_extensions

T = TypeVar("T")


class Row(pydantic.BaseModel):
    """A product in the list."""

    name: str
    price: float


class Order(pydantic.BaseModel):
    number: int
    rows: list[Row]
    note: str | None = None


class Tree(pydantic.BaseModel):
    label: str
    children: list[Tree] = []


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    a: int = pydantic.Field(ge=0, le=10)
    b: str = pydantic.Field(min_length=1, max_length=5, pattern="^[a-z]+$")


class Named(pydantic.BaseModel):
    first: str = pydantic.Field(alias="firstName")


class Even(pydantic.BaseModel):
    n: int

    @pydantic.field_validator("n")
    @classmethod
    def even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("the number must be even")
        return value


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    bark: str


class Zoo(pydantic.BaseModel):
    animals: list[Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]]


class Box(pydantic.BaseModel, Generic[T]):
    content: T


class Names(pydantic.RootModel[list[str]]):
    pass


class Empty(pydantic.BaseModel):
    pass


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


@dataclasses.dataclass
class Chain:
    value: int
    next: Optional[Chain] = None  # noqa: UP045  (old notebooks are full of it)


@dataclasses.dataclass(frozen=True, slots=True)
class Segment:
    start: Point
    end: Point


class City(typing.TypedDict):
    name: str
    people: int


class Country(typing.TypedDict, total=False):
    name: typing.Required[str]
    cities: list[City]


class Modern(typing_extensions.TypedDict):
    a: int
    b: typing_extensions.NotRequired[str]


class Pair(NamedTuple):
    low: float
    high: float


class Entry(NamedTuple):
    key: str
    count: int = 1


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mood(enum.StrEnum):
    GOOD = "good"
    BAD = "bad"


UserId = NewType("UserId", int)

Case = tuple[Any, Any, Any, Any]  # type, JSON, Python value, wrong JSON
ROW = {"name": "tea", "price": 3.5}
TYPES: dict[str, Case] = {
    "str": (str, "tea", "tea", 1),
    "int": (int, 3, 3, "3"),
    "float": (float, 2.5, 2.5, "2.5"),
    "bool": (bool, True, True, 1),
    "none": (type(None), None, None, 0),
    "any": (Any, [1, {"a": None}], [1, {"a": None}], ...),
    "bytes": (bytes, "tea", b"tea", 1),
    "decimal": (Decimal, "1.10", Decimal("1.10"), "many"),
    "fraction": (Fraction, "1/3", Fraction(1, 3), "third"),
    "complex": (complex, "1+2j", 1 + 2j, "i"),
    "date": (dt.date, "2024-02-29", dt.date(2024, 2, 29), "2023-02-29"),
    "time": (dt.time, "08:30:00", dt.time(8, 30), "8 o'clock"),
    "datetime": (
        dt.datetime,
        "2024-02-29T08:30:00Z",
        dt.datetime(2024, 2, 29, 8, 30, tzinfo=dt.UTC),
        1709195400,
    ),
    "timedelta": (dt.timedelta, "PT1H30M", dt.timedelta(minutes=90), 5400),
    "uuid": (
        uuid.UUID,
        "12345678-1234-5678-1234-567812345678",
        uuid.UUID("12345678123456781234567812345678"),
        "1234",
    ),
    "path": (pathlib.Path, "data/x.csv", pathlib.Path("data/x.csv"), 7),
    "ip": (ipaddress.IPv4Address, "10.0.0.1", ipaddress.IPv4Address("10.0.0.1"), "10.0.0"),
    "email-like": (Annotated[str, pydantic.Field(pattern="^.+@.+$")], "a@b", "a@b", "ab"),
    "bounded-int": (Annotated[int, pydantic.Field(ge=1, le=5)], 5, 5, 6),
    "positive-float": (pydantic.PositiveFloat, 0.5, 0.5, 0),
    "newtype": (UserId, 7, 7, "7"),
    "enum": (Colour, "red", Colour.RED, "green"),
    "int-enum": (Level, 2, Level.HIGH, 3),
    "str-enum": (Mood, "good", Mood.GOOD, "so so"),
    "literal": (Literal["yes", "no"], "yes", "yes", "maybe"),
    "literal-mixed": (Literal["a", 1, None], 1, 1, 2),
    "optional": (Optional[int], None, None, "none"),  # noqa: UP045
    "union": (int | str, "x", "x", 1.5),
    "old-union": (Union[int, list[int]], [1, 2], [1, 2], ["a"]),  # noqa: UP007
    "union-models": (Cat | Dog, {"kind": "dog", "bark": "wow"}, Dog(kind="dog", bark="wow"), {}),
    "discriminated": (
        Annotated[Cat | Dog, pydantic.Field(discriminator="kind")],
        {"kind": "cat", "lives": 9},
        Cat(kind="cat", lives=9),
        {"kind": "cow"},
    ),
    "list": (list, [1, "a"], [1, "a"], {"a": 1}),
    "list-int": (list[int], [1, 2], [1, 2], [1, "2"]),
    "list-model": (list[Row], [ROW], [Row(**ROW)], [{"name": "tea"}]),
    "list-optional": (list[int | None], [1, None], [1, None], [1, "x"]),
    "nested-list": (list[list[float]], [[1.5, 2], []], [[1.5, 2.0], []], [1.5]),
    "bounded-list": (
        Annotated[list[int], pydantic.Field(min_length=1, max_length=3)],
        [1],
        [1],
        [],
    ),
    "set": (set[int], [1, 2], {1, 2}, [1, "2"]),
    "frozenset": (frozenset[str], ["a"], frozenset({"a"}), "a"),
    "tuple": (tuple[int, str], [1, "a"], (1, "a"), [1]),
    "tuple-any": (tuple[float, ...], [1.5, 2], (1.5, 2.0), [None]),
    "dict": (dict, {"a": [1]}, {"a": [1]}, [1]),
    "dict-int": (dict[str, int], {"a": 1}, {"a": 1}, {"a": "1"}),
    "dict-models": (dict[str, Row], {"x": ROW}, {"x": Row(**ROW)}, {"x": 1}),
    "dict-int-keys": (dict[int, str], {"1": "a"}, {1: "a"}, {"one": "a"}),
    "model": (Row, ROW, Row(**ROW), {"name": 1, "price": 1}),
    "nested-model": (
        Order,
        {"number": 1, "rows": [ROW], "note": None},
        Order(number=1, rows=[Row(**ROW)]),
        {"number": 1, "rows": [{}]},
    ),
    "recursive-model": (
        Tree,
        {"label": "a", "children": [{"label": "b", "children": []}]},
        Tree(label="a", children=[Tree(label="b")]),
        {"label": "a", "children": [{}]},
    ),
    "list-recursive": (list[Tree], [{"label": "a", "children": []}], [Tree(label="a")], ["a"]),
    "constrained-model": (Strict, {"a": 1, "b": "x"}, Strict(a=1, b="x"), {"a": 11, "b": "x"}),
    "alias-model": (Named, {"firstName": "Ada"}, Named(firstName="Ada"), {"first": "Ada"}),
    "validated-model": (Even, {"n": 2}, Even(n=2), {"n": 3}),
    "model-of-unions": (
        Zoo,
        {"animals": [{"kind": "cat", "lives": 9}]},
        Zoo(animals=[Cat(kind="cat", lives=9)]),
        {"animals": [{"kind": "cat"}]},
    ),
    "generic-model": (Box[int], {"content": 1}, Box[int](content=1), {"content": "1"}),
    "root-model": (Names, ["a"], Names(["a"]), [1]),
    "empty-model": (Empty, {}, Empty(), []),
    "dataclass": (Point, {"x": 1, "y": 0}, Point(1), {"x": "1"}),
    "recursive-dataclass": (
        Chain,
        {"value": 1, "next": {"value": 2, "next": None}},
        Chain(1, Chain(2)),
        {"value": 1, "next": {}},
    ),
    "frozen-dataclass": (
        Segment,
        {"start": {"x": 0, "y": 0}, "end": {"x": 1, "y": 0}},
        Segment(Point(0), Point(1)),
        {"start": {"x": 0}},
    ),
    "typeddict": (
        City,
        {"name": "Ulm", "people": 3},
        {"name": "Ulm", "people": 3},
        {"name": "Ulm"},
    ),
    "nested-typeddict": (
        Country,
        {"name": "X", "cities": [{"name": "Ulm", "people": 3}]},
        {"name": "X", "cities": [{"name": "Ulm", "people": 3}]},
        {"cities": []},
    ),
    "modern-typeddict": (Modern, {"a": 1}, {"a": 1}, {"b": "x"}),
    "list-typeddict": (list[City], [], [], [{}]),
    "namedtuple": (Pair, [1.5, 2], Pair(1.5, 2.0), [1.5]),
    "namedtuple-default": (Entry, ["a", 1], Entry("a"), [1]),
    "optional-model": (Row | None, None, None, {"name": "tea"}),
    "pydantic-json-value": (pydantic.JsonValue, {"a": [1, None]}, {"a": [1, None]}, ...),
    "url": (pydantic.AnyUrl, "https://a.b/", pydantic.AnyUrl("https://a.b/"), "a b"),
}


def walk(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object in a JSON value, from the outside in."""
    if isinstance(value, dict):
        yield value
        for held in value.values():
            yield from walk(held)
    elif isinstance(value, list):
        for held in value:
            yield from walk(held)


def wrap(output, document):
    """Return a JSON value as a model sends it: wrapped, if the schema is."""
    return {"value": document} if output.wrapped else document
