"""Signatures become schemas; arguments are checked, mended where models err, and refused with a
message that helps.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional, TypedDict

import pydantic
import pytest

from agent_nb.errors import ToolError, UsageError
from agent_nb.tools.base import ToolContext
from agent_nb.tools.schema import Arguments

if TYPE_CHECKING:
    import nowhere
    from nowhere import Missing


CONTEXT = ToolContext()


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    title: str = "t"


class Shape(pydantic.BaseModel):
    points: list[Point]


class Opaque:
    pass


class Place(TypedDict, total=False):
    city: str
    year: int


def arguments(function: Callable[..., Any]) -> Arguments:
    return Arguments(function, "f")


def properties(function: Callable[..., Any]) -> dict[str, Any]:
    return arguments(function).schema["properties"]


def test_types_defaults_and_descriptions_are_in_the_schema() -> None:
    def f(a: int, b: str = "x", *, c: list[float] | None = None) -> None:
        """F.

        Args:
            a: The a.
        """

    schema = arguments(f).schema
    assert schema["required"] == ["a"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["a"] == {"type": "integer", "description": "The a."}
    assert schema["properties"]["b"] == {"type": "string", "default": "x"}
    assert schema["properties"]["c"]["anyOf"][0] == {"type": "array", "items": {"type": "number"}}


def test_titles_are_left_out_but_a_parameter_called_title_stays() -> None:
    def f(title: str, point: Point) -> None: ...

    schema = arguments(f).schema
    assert schema["properties"]["title"] == {"type": "string"}
    assert schema["$defs"]["Point"]["properties"]["title"] == {"type": "string", "default": "t"}
    assert "title" not in schema
    assert "title" not in schema["$defs"]["Point"]


@pytest.mark.parametrize(
    ("hint", "given", "made"),
    [
        (int, "3", 3),
        (int, 3.0, 3),
        (float, "2.5", 2.5),
        (bool, "true", True),
        (str, 3, "3"),
        (Optional[int], None, None),  # noqa: UP045  (the old spelling is what is tested)
        (int | None, "null", None),
        (Literal["a", 1], 1, 1),
        (Literal["a", 1], "1", 1),
        (Colour, "blue", Colour.BLUE),
        (list[int], "[1, 2]", [1, 2]),
        (dict[str, int], '{"a": "1"}', {"a": 1}),
        (tuple[int, str], [1, "a"], (1, "a")),
        (Path, "a/b", Path("a/b")),
        (Point, {"x": "1"}, Point(1)),
        (Point, '{"x": 1}', Point(1)),
        (Shape, {"points": [{"x": 1}]}, Shape(points=[Point(1)])),
        (Any, {"x": [1]}, {"x": [1]}),
    ],
)
def test_values_are_converted_and_common_slips_mended(hint: Any, given: Any, made: Any) -> None:
    def f(value): ...

    f.__annotations__["value"] = hint
    assert arguments(f).validate({"value": given}) == {"value": made}


def test_a_null_for_a_parameter_with_a_default_means_the_default() -> None:
    def f(n: int = 3) -> None: ...

    assert arguments(f).validate({"n": None}) == {}


def test_what_was_not_given_is_left_to_the_functions_own_default() -> None:
    marker = object()

    def f(a: int = 1, b: Any = marker) -> None: ...

    assert arguments(f).validate({}) == {}


def test_a_json_text_of_endless_depth_is_a_wrong_value() -> None:
    def f(a: list[int]) -> None: ...

    with pytest.raises(ToolError, match="a: expected a valid list"):
        arguments(f).validate({"a": "[" * 100_000})


def test_every_bad_argument_is_listed_with_what_was_expected_and_what_came() -> None:
    def f(
        count: int,
        kind: Literal["a", "b"],
        shape: Shape | None = None,
        n: Annotated[int, pydantic.Field(ge=0)] = 0,
    ) -> None: ...

    with pytest.raises(ToolError) as raised:
        arguments(f).validate({"count": "x", "shape": {"points": [{"y": 1}]}, "n": -1, "extra": 1})
    message = str(raised.value)
    assert "count: expected a valid integer" in message
    assert 'got "x" (string)' in message
    assert "kind: is missing" in message
    assert "shape.points[0].x: is missing" in message
    assert "n: expected greater than or equal to 0; got -1 (integer)" in message
    assert "extra: is not a parameter" in message
    assert (
        'count (integer), kind (one of "a", "b"), shape (Shape or null, optional), n (integer, optional)'
        in message
    )


def test_a_huge_wrong_value_is_repeated_only_in_part() -> None:
    def f(n: int) -> None: ...

    with pytest.raises(ToolError) as raised:
        arguments(f).validate({"n": "x" * 100_000})
    assert len(str(raised.value)) < 400


def test_arguments_that_are_not_named_by_text_are_refused_not_crashed_on() -> None:
    def f(n: int) -> None: ...

    with pytest.raises(ToolError):
        arguments(f).validate({"": 1, "n": []})


def test_the_context_parameter_is_found_and_left_out() -> None:
    def f(a: int, context: ToolContext) -> None: ...
    def g(a: int, c: ToolContext | None = None) -> None: ...
    def h(a: int, c: nowhere.ToolContext | None = None) -> None: ...

    assert arguments(f).context_parameter == "context"
    assert arguments(g).context_parameter == "c"
    assert arguments(h).context_parameter == "c"
    assert set(properties(f)) == set(properties(g)) == set(properties(h)) == {"a"}


def test_parameters_without_annotations_take_anything() -> None:
    def f(a, b=2): ...

    assert properties(f) == {"a": {}, "b": {"default": 2}}
    assert arguments(f).validate({"a": [1], "b": "x"}) == {"a": [1], "b": "x"}


@pytest.mark.parametrize(
    "name", ["schema", "model_config", "copy", "json", "validate", "_private", "model_fields_set"]
)
def test_any_parameter_name_is_safe(name: str) -> None:
    scope: dict[str, Any] = {}
    exec(f"def f({name}: int): ...", scope)
    assert arguments(scope["f"]).validate({name: "1"}) == {name: 1}


def test_positional_only_and_star_parameters_are_passed_as_wanted() -> None:
    def f(a: int, b: int = 2, /, *rest: int, c: int = 0, **more: int) -> tuple[Any, ...]:
        return a, b, rest, c, more

    made = arguments(f)
    args, named = made.split(made.validate({"a": "1", "rest": ["4"], "c": 3, "z": "5"}))
    assert f(*args, **named) == (1, 2, (4,), 3, {"z": 5})


def test_extra_keywords_are_checked_against_their_annotation() -> None:
    def f(**more: int) -> None: ...

    assert arguments(f).schema["additionalProperties"] == {"type": "integer"}
    with pytest.raises(ToolError, match="z: expected a valid integer"):
        arguments(f).validate({"z": "x"})


def test_values_bound_by_a_partial_are_hidden_from_the_model() -> None:
    def f(a: int, key: str) -> None:
        """F."""

    made = arguments(functools.partial(f, key="hidden"))
    assert made.doc.description == "F."
    assert list(made.schema["properties"]) == ["a"]
    with pytest.raises(ToolError):
        made.validate({"a": 1, "key": "other"})


def test_methods_and_wrapped_functions_show_the_inner_signature() -> None:
    class Box:
        def put(self, a: int) -> None: ...

    def outer(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapper

    def inner(point: Point) -> None: ...

    assert list(properties(Box().put)) == ["a"]
    assert properties(outer(inner))["point"] == {"$ref": "#/$defs/Point"}


def test_local_types_in_postponed_annotations_are_found_at_use() -> None:
    @dataclasses.dataclass
    class Local:
        n: int

    def f(value: Local) -> Any:
        return Local

    assert arguments(f).validate({"value": {"n": 1}}) == {"value": Local(1)}


def test_an_annotation_that_cannot_be_resolved_is_a_usage_error() -> None:
    def f(value: Missing) -> None: ...

    with pytest.raises(UsageError, match="'Missing' of parameter 'value'"):
        arguments(f)


def test_a_required_parameter_that_json_cannot_express_is_refused() -> None:
    def f(value: Opaque) -> None: ...

    with pytest.raises(UsageError, match=r"'value' of tool 'f' is a .*Opaque"):
        arguments(f)


def test_an_optional_parameter_that_json_cannot_express_is_left_out() -> None:
    def f(a: int, value: Opaque | None = None, call: Callable[[], None] = print) -> None: ...

    assert list(properties(f)) == ["a"]


def call(function: Callable[..., Any], **sent: Any) -> Any:
    """Call a function with what a model sends, and with a context if it takes one."""
    made = arguments(function)
    own = {made.context_parameter: CONTEXT} if made.context_parameter else {}
    args, named = made.split({**made.validate(sent), **own})
    return function(*args, **named)


def test_a_parameter_left_out_keeps_its_position() -> None:
    def star(a: int, b: Opaque | None = None, *rest: int) -> Any:
        return a, b, rest

    def slash(a: int, b: Opaque | None = None, /, c: int = 3) -> Any:
        return a, b, c

    assert call(star, a=1, rest=[7, 8]) == (1, None, (7, 8))
    assert call(functools.partial(star, 1), rest=["7"]) == (1, None, (7,))
    assert call(slash, a=1, c=4) == (1, None, 4)


def test_the_context_is_passed_where_its_parameter_stands() -> None:
    def star(a: int, ctx: ToolContext, *rest: int) -> Any:
        return a, ctx, rest

    def slash(ctx: ToolContext, /, a: int) -> Any:
        return a, ctx

    def named(a: int, *rest: int, b: Opaque | None = None, ctx: ToolContext) -> Any:
        return a, rest, b, ctx

    class Box:
        def __call__(self, a: int, ctx: ToolContext, *rest: int, **more: int) -> Any:
            return a, ctx, rest, more

        put = __call__

    assert call(star, a=1, rest=[7, 8]) == (1, CONTEXT, (7, 8))
    assert call(slash, a=1) == (1, CONTEXT)
    assert call(named, a=1, rest=[2]) == (1, (2,), None, CONTEXT)
    for method in (Box(), Box().put):
        assert call(method, a=1, rest=[2], z=3) == (1, CONTEXT, (2,), {"z": 3})


def test_a_missing_context_is_named_by_the_call() -> None:
    def f(a: int, ctx: ToolContext, *rest: int) -> None: ...

    args, named = arguments(f).split({"a": 1})
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'ctx'"):
        f(*args, **named)


@pytest.mark.parametrize("name", ["ctx", "value", "key"])
def test_a_hidden_parameter_cannot_be_set_through_kwargs(name: str) -> None:
    def f(ctx: ToolContext, key: str, value: Opaque | None = None, **more: int) -> None: ...

    made = arguments(functools.partial(f, key="hidden"))
    assert made.validate({"x": "1"}) == {"x": 1}
    with pytest.raises(ToolError, match=f"{name}: is not a parameter"):
        made.validate({"x": 1, name: 2})


def test_extra_keywords_may_have_any_name() -> None:
    def f(a: int = 1, **more: int) -> None: ...

    assert arguments(f).validate({"p0": 5, "": 6}) == {"p0": 5, "": 6}


def test_a_context_in_place_of_many_arguments_is_refused() -> None:
    def f(*contexts: ToolContext) -> None: ...

    with pytest.raises(UsageError, match=r"'contexts' of tool 'f' is a .*ToolContext"):
        arguments(f)


def test_a_function_without_a_readable_signature_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="signature"):
        arguments(min)


@pytest.mark.slow
def test_pydantic_is_not_imported_before_a_tool_is_made() -> None:
    modules = "agent_nb.tools.decorator, agent_nb.tools.runner, agent_nb.tools.toolset, agent_nb.tools.approval"
    code = f"import sys, {modules}; print('pydantic' in sys.modules, 'yaml' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["False", "False"]


def test_a_typed_dict_of_the_standard_library_is_a_parameter() -> None:
    def f(a: Place, b: list[Place] | None = None, *c: Place, **d: Place) -> None: ...

    one, many = {"city": "Rome"}, [{"year": 2025}]
    assert list(properties(f)) == ["a", "b", "c"]
    assert arguments(f).validate({"a": one, "b": many, "c": many, "z": one}) == {
        "a": one,
        "b": many,
        "c": many,
        "z": one,
    }
    with pytest.raises(ToolError, match=r"a\.year: expected a valid integer"):
        arguments(f).validate({"a": {"year": "soon"}})


def test_a_text_inside_an_annotation_is_evaluated_as_one_around_it_is() -> None:
    # the `__future__` import makes whole annotations texts: these are as without it
    row, none = Optional["Point"], Optional["Missing"]
    hints = {"a": list["Point"], "b": row, "c": Optional["ToolContext"], "d": none}

    def f(a: Any, b: Any = None, c: Any = None, d: Any = None) -> None: ...

    f.__annotations__ = hints
    assert list(properties(f)) == ["a", "b"]
    assert arguments(f).context_parameter == "c"
    values = arguments(f).validate({"a": [{"x": 1}], "b": {"x": 2}})
    assert values == {"a": [Point(1)], "b": Point(2)}
