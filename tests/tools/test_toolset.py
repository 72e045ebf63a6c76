"""Toolsets: ordered, unique, found by name in the namespace, the built-ins and the entry points."""

from __future__ import annotations

from typing import Any

import pytest

from agent_nb.errors import MissingExtra, UsageError
from agent_nb.host import plugins
from agent_nb.tools.decorator import as_tool, tool
from agent_nb.tools.toolset import Toolset, available


def one(n: int) -> int:
    """One."""
    return n


def two() -> None: ...


def test_order_is_kept_and_repeats_of_the_same_tool_are_one() -> None:
    assert Toolset.resolve(["two", "one", "two"], {"one": one, "two": two}).names == ("two", "one")


def test_two_different_tools_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="named 'one'"):
        Toolset([as_tool(one), as_tool(two, "one")])


def test_names_functions_tools_and_toolsets_mix() -> None:
    found = Toolset.resolve(
        ["list, read", one, as_tool(two), Toolset([as_tool(lambda: None, "three")])]
    )
    assert found.names == ("list", "read", "one", "two", "three")
    assert [spec.name for spec in found.specs] == list(found.names)


def test_one_function_needs_no_list_and_what_is_no_tool_is_named() -> None:
    assert Toolset.resolve(one).names == ("one",)
    with pytest.raises(UsageError, match="int"):
        Toolset.resolve(5)


def test_a_file_name_brings_all_its_tools_and_a_tool_name_one() -> None:
    assert Toolset.resolve("files").names == ("list", "read", "write")
    assert Toolset.resolve("write").names == ("write",)


def test_available_lists_the_tools_of_every_plug_in() -> None:
    found = available()
    assert found["files"] == ("list", "read", "write")
    assert found["python"] == ("python",)
    assert found["shell"] == ("shell",)


def test_a_function_of_the_namespace_comes_before_a_built_in() -> None:
    def read(page: int) -> None: ...

    assert list(Toolset.resolve("read", {"read": read})["read"].spec.parameters["properties"]) == [
        "page"
    ]


def test_a_variable_that_is_no_function_does_not_hide_a_built_in() -> None:
    assert Toolset.resolve("list", {"list": [1, 2]})["list"].icon == "folder"


def test_a_function_is_named_as_in_the_notebook_and_a_tool_as_declared() -> None:
    @tool(name="declared")
    def f() -> None: ...

    assert Toolset.resolve("alias", {"alias": one}).names == ("alias",)
    assert Toolset.resolve("f", {"f": f}).names == ("declared",)
    assert Toolset.resolve("declared", {"f": f}).names == ("declared",)


def test_an_unknown_name_gives_near_ones() -> None:
    with pytest.raises(UsageError, match="Did you mean my_function"):
        Toolset.resolve("my_fnction", {"my_function": one})
    with pytest.raises(UsageError, match=r"Did you mean python.*Built in: add_cell, list, python"):
        Toolset.resolve("pyton")


def test_a_name_of_something_else_says_what_it_is() -> None:
    with pytest.raises(UsageError, match="'frame' is a dict, not a function"):
        Toolset.resolve("frame", {"frame": {}})


def test_an_entry_point_is_found_by_its_name_and_by_its_tools(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Entry:
        name = "extra"

        def load(self) -> Any:
            return (as_tool(one),)

    class Broken:
        name = "broken"

        def load(self) -> Any:
            raise MissingExtra("x", "pip install x")

    monkeypatch.setattr(
        plugins,
        "list_entry_points",
        lambda group: [Broken(), Entry()] if group == "agent_nb.tools" else [],
    )
    assert Toolset.resolve("extra").names == ("one",)
    assert Toolset.resolve("one").names == ("one",)
    assert available()["broken"] == ()
    with pytest.raises(MissingExtra):
        Toolset.resolve("broken")


def test_the_combinators_return_new_toolsets() -> None:
    base = Toolset.resolve([one, two])
    assert base.filter(lambda t: t.name != "one").names == ("two",)
    assert base.prefix("my_").names == ("my_one", "my_two")
    assert base.rename({"one": "first"}).names == ("first", "two")
    assert (base + Toolset.resolve("list")).names == ("one", "two", "list")
    assert base.names == ("one", "two")
    assert base.rename({"one": "first"})["first"].spec.description == "One."


def test_renaming_what_is_not_there_or_onto_another_is_an_error() -> None:
    base = Toolset.resolve([one, two])
    with pytest.raises(UsageError, match="no tool 'zero'"):
        base.rename({"zero": "x"})
    with pytest.raises(UsageError, match="named 'two'"):
        base.rename({"one": "two"})
