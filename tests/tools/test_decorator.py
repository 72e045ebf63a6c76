"""`@tool` and `as_tool`: the function stays a function, and the tool says what it was told."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import pytest

from agent_nb.errors import UsageError
from agent_nb.tools.base import Tool, ToolContext
from agent_nb.tools.decorator import as_tool, clean_name, is_tool, tool


def test_the_decorated_function_is_the_function_and_carries_the_tool() -> None:
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    made = tool(add)
    assert made is add
    assert made(1, 2) == 3
    assert isinstance(made.tool, Tool)
    assert (made.tool.name, made.tool.spec.description, made.tool.effect) == ("add", "Add.", "none")


def test_options_reach_the_tool() -> None:
    def render(value: Any) -> dict[str, Any]:
        return {}

    def preview(args: dict[str, Any], context: ToolContext) -> str:
        return ""

    @tool(
        name="other",
        description="D",
        effect="kernel",
        timeout=3,
        thread="main",
        render=render,
        preview=preview,
        icon="star",
    )
    def f() -> None: ...

    made = f.tool
    assert (
        made.name,
        made.spec.description,
        made.effect,
        made.timeout,
        made.thread,
        made.icon,
    ) == (
        "other",
        "D",
        "kernel",
        3.0,
        "main",
        "star",
    )
    assert made.render is render
    assert made.preview is preview


def test_side_effects_is_another_word_for_outside() -> None:
    @tool(side_effects=True)
    def f() -> None: ...

    assert f.tool.effect == "outside"


@pytest.mark.parametrize(
    "options", [{"effect": "strange"}, {"nmae": "x"}, {"timeout": "long"}, {"thread": "loop"}]
)
def test_wrong_options_are_a_usage_error(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="@tool"):
        tool(**options)


def test_async_functions_run_on_the_loop_and_not_on_the_main_thread() -> None:
    async def coroutine() -> None: ...
    async def generator() -> Any:
        yield 1

    class Callable_:
        async def __call__(self) -> None: ...

    for function in (coroutine, generator, functools.partial(coroutine), Callable_()):
        assert as_tool(function).thread == "loop"
    with pytest.raises(UsageError, match="thread='main'"):
        tool(thread="main")(coroutine)
    assert inspect.iscoroutinefunction(tool(coroutine))


def test_a_method_becomes_a_tool_of_its_object_with_its_declaration() -> None:
    class Box:
        def __init__(self) -> None:
            self.items: list[int] = []

        @tool(name="put_in", effect="outside")
        def put(self, item: int) -> None:
            """Put."""
            self.items.append(item)

    box = Box()
    made = as_tool(box.put)
    made.invoke(**made.validate({"item": "3"}))
    assert box.items == [3]
    assert (made.name, made.effect, list(made.spec.parameters["properties"])) == (
        "put_in",
        "outside",
        ["item"],
    )


def test_wrappers_and_partials_keep_the_declaration_and_run_themselves() -> None:
    @tool(effect="outside")
    def f(a: int) -> int:
        return a

    @functools.wraps(f)
    def louder(*args: Any, **kwargs: Any) -> int:
        return f(*args, **kwargs) * 10

    assert as_tool(louder).invoke(a=1) == 10
    assert as_tool(louder).effect == as_tool(functools.partial(f, a=1)).effect == "outside"


def test_a_plain_function_counts_as_without_effects() -> None:
    def f() -> None: ...

    assert as_tool(f).effect == "none"
    assert as_tool(f, "alias").name == "alias"
    assert not is_tool(f)


def test_a_tool_and_a_decorated_function_are_passed_through() -> None:
    @tool
    def f() -> None: ...

    assert as_tool(f.tool) is f.tool
    assert as_tool(f) is f.tool


def test_an_object_that_can_make_its_own_tool_is_asked_to() -> None:
    @tool
    def delegate(prompt: str) -> None: ...

    class Agent:
        def as_tool(self) -> Tool:
            return delegate.tool

        def __call__(self, prompt: str, attachments: Any = ()) -> None: ...

    assert as_tool(Agent()) is delegate.tool


@pytest.mark.parametrize("value", [3, "text", int, object()])
def test_what_is_no_function_is_a_usage_error(value: Any) -> None:
    with pytest.raises(UsageError, match="Cannot make a tool"):
        as_tool(value)


def test_the_decorator_above_classmethod_or_on_a_builtin_says_what_to_do() -> None:
    with pytest.raises(UsageError, match="below @classmethod"):
        tool(classmethod(lambda cls: None))
    with pytest.raises(UsageError, match="Wrap it"):
        tool(len)
    with pytest.raises(UsageError, match="The signature of 'getattr' cannot be read"):
        tool(getattr)


def test_an_object_that_answers_to_every_name_is_no_tool() -> None:
    class Yes:
        def __getattr__(self, name: str) -> Any:
            return self

    assert not is_tool(Yes())


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("add", "add"),
        ("my tool!", "my_tool"),
        ("größe", "groe"),
        ("名前", "tool"),
        ("x" * 99, "x" * 64),
        ("a-b_c", "a-b_c"),
        ("<lambda>", "lambda"),
    ],
)
def test_names_are_cleaned_for_every_provider(text: str, name: str) -> None:
    assert clean_name(text) == name
