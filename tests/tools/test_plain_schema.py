"""Schemas of plain parameters, made by hand, are those of pydantic to the byte; a tool with such
parameters loads no pydantic.
"""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import typing
from typing import Any, Literal, Optional

import pytest
from annotated_types import Ge, Le, MaxLen
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.tools import schema
from agent_nb.tools.plain_schema import describe_plain

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
PLAIN = st.recursive(
    st.sampled_from([str, int, float, bool, list, dict, Any]),
    lambda inner: st.one_of(
        inner.map(lambda hint: list[hint]),
        inner.map(lambda hint: dict[str, hint]),
        inner.map(lambda hint: Optional[hint]),  # noqa: UP045
        inner.map(lambda hint: list[hint] | None),
        inner.map(lambda hint: typing.List[hint]),  # noqa: UP006
    ),
    max_leaves=3,
)
BOUNDED = st.sampled_from(
    [
        typing.Annotated[str, MaxLen(9)],
        typing.Annotated[int, Ge(0)],
        typing.Annotated[int, Le(20), Ge(1)],
    ]
)
LITERAL = st.lists(WORDS, min_size=1, max_size=4, unique=True).map(
    lambda words: Literal[tuple(words)]
)
DEFAULTS = st.one_of(
    st.just(inspect.Parameter.empty), st.none(), st.booleans(), st.integers(), st.floats(), WORDS
)
FIELDS = st.lists(
    st.tuples(
        st.sampled_from(["title", "class_", "p0", "a", "b", "self_", "ärger"]),
        st.one_of(
            PLAIN,
            BOUNDED,
            BOUNDED.map(lambda hint: list[hint]),
            LITERAL,
            LITERAL.map(lambda hint: hint | None),
        ),
        DEFAULTS,
        st.one_of(st.none(), WORDS),
    ),
    max_size=5,
    unique_by=lambda field: field[0],
)


def function_of(fields: list[tuple[str, Any, Any, str | None]]) -> Any:
    """Return a function with these keyword parameters, and their descriptions by name."""

    def function(**values: Any) -> None: ...

    kind = inspect.Parameter.KEYWORD_ONLY
    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, kind, annotation=hint, default=default)
            for name, hint, default, _ in fields
        ]
    )
    return function


def dumped(fields: list[tuple[str, Any, Any, str | None]], *, plain: bool) -> str:
    """Return the schema as text: made by hand, or by pydantic."""
    texts = {name: text for name, _, _, text in fields if text is not None}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema.Arguments, "_describe", lambda self, p: texts.get(p.name))
        if not plain:
            patch.setattr(schema, "describe_plain", lambda *_: None)
        return json.dumps(schema.Arguments(function_of(fields), "f").schema)


@given(FIELDS)
def test_plain_schema_is_that_of_pydantic_to_the_byte(
    fields: list[tuple[str, Any, Any, str | None]],
) -> None:
    assert dumped(fields, plain=True) == dumped(fields, plain=False)


@pytest.mark.parametrize(
    "hint",
    [tuple, set[int], bytes, int | str, int | str | None, Literal[1, "a"], dict[int, str],
     typing.Annotated[int, "x"], typing.Annotated[int, MaxLen(3)], None, complex, type("Own", (str,), {})],
)  # fmt: skip
def test_other_types_are_left_to_pydantic(hint: Any) -> None:
    parameter = inspect.Parameter("a", inspect.Parameter.KEYWORD_ONLY)
    assert describe_plain([parameter], {"a": hint}, lambda _: None) is None


def test_plain_tool_loads_no_pydantic_before_its_first_call() -> None:
    code = """
import sys
from agent_nb import tool
@tool
def add(a: int, b: list[str] | None = None) -> int:
    "Add."
print("pydantic" in sys.modules, add.tool.validate({"a": "3"}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False {'a': 3}\n"


def test_built_in_tools_load_no_pydantic_before_their_first_call() -> None:
    names = ("add_cell", "files", "python", "variables")
    code = f"""
import importlib, sys
for name in {names}:
    importlib.import_module(f"agent_nb.tools.{{name}}")
    print(name, "pydantic" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{name} False" for name in names]
