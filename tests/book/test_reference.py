"""The reference pages: made from the package, complete, each name once."""

import importlib.util
import re

import pytest
from helpers.paths import CHECKOUT, EXAMPLES

import agent_nb
from agent_nb import errors, events
from agent_nb.cli.main import COMMANDS

BOOK = EXAMPLES / "book"
SPEC = importlib.util.spec_from_file_location("book_reference", BOOK / "reference.py")
reference = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(reference)


@pytest.mark.parametrize("name", sorted(reference.TABLES))
def test_each_table_stands_on_a_page(name):
    assert reference.TABLES[name]().strip()
    uses = [p for p in BOOK.rglob("*.md") if f"```{{reference}} {name}\n" in p.read_text("utf-8")]
    assert uses


def test_each_public_name_stands_on_one_page():
    named = [name for names in reference.NAMES.values() for name in names.split()]
    assert sorted(named) == sorted(agent_nb.__all__)


@pytest.mark.parametrize("name", sorted(reference.MEMBERS))
def test_the_members_that_are_shown_exist(name):
    kind = getattr(agent_nb, name)
    assert all(hasattr(kind, member) for member in reference.MEMBERS[name].split())


def test_each_member_of_a_result_says_what_it_is():
    for function, members in reference.RESULTS.items():
        kind = reference._result_of(function)
        assert all(reference.summary_of(getattr(kind, name)) for name in members.split())


def test_every_option_command_event_and_error_is_there():
    options = reference.options()
    assert all(f"`--{name}`" in options for name in ("model", "output", "context", "map", "from"))
    assert all(f"## {name}\n" in reference.command_line() for name in COMMANDS)
    assert all(f"## {name}\n" in reference.event_types() for name in events.TYPES)
    assert all(f"`{name}`" in reference.error_types() for name in ("AgentError", "AgentStopped"))
    assert f"`{errors.RunFailed.__name__}`" in reference.error_types()
    assert all(f"`{column.name}`" in reference.columns() for column in agent_nb.EVENTS)


def test_every_variable_of_the_environment_is_explained():
    page = (BOOK / "reference" / "environment.md").read_text(encoding="utf-8")
    sources = (CHECKOUT / "agent_nb").rglob("*.py")
    used = {v for s in sources for v in re.findall(r"AGENT_NB_[A-Z_]+", s.read_text("utf-8"))}
    assert {name for name in used if f"`{name}`" not in page} == set()


def test_a_docstring_becomes_restructured_text():
    lines = ["Take `a*b`s and *args.", "", "    code(*args)", "", "The `x", "y` end_ is near."]
    assert [line for line in reference.as_rst(lines) if line] == [
        r"Take ``a*b``\ s and \*args.",
        "::",
        "    code(*args)",
        r"The ``x",
        r"y``\  end\_ is near.",
    ]


def test_a_paragraph_about_parameters_becomes_a_list():
    text = "`a`: one, or `x`. `b`, `c`: two\nlines. `d`: three. Raises UsageError for more."
    assert [line for line in reference.as_rst(text.split("\n")) if line] == [
        r"- ``a``\ : one, or ``x``\ .",
        r"- ``b``\ , ``c``\ : two lines.",
        r"- ``d``\ : three.",
        "Raises UsageError for more.",
    ]
