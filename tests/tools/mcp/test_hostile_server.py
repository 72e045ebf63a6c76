"""A server that says what nobody should read: what a run keeps of it is bounded and visible."""

import sys
from pathlib import Path

import pytest
from helpers import mcp_hostile_server
from helpers.mcp_hostile_server import SAID
from helpers.mcp_runs import written

from agent_nb import mcp_server
from agent_nb.tools.mcp import elicitation, session

pytestmark = pytest.mark.slow


@pytest.fixture
def hostile():
    """Return the hostile server in a mode."""
    program = str(Path(mcp_hostile_server.__file__))
    return lambda mode="": mcp_server("evil", sys.executable, [program, mode])


def hidden(text):
    return [c for c in SAID if c in text and not c.isprintable()]


def test_what_a_server_says_of_its_tools_is_bounded_and_visible(ask, hostile):
    run = ask([hostile()], ("a", {"v": "x"}))
    [listed] = [e.payload for e in run.log.of("state") if e.kind == "mcp"]
    assert len(listed["about"]) < 250
    assert not hidden(listed["about"])
    offered = listed["tools"]
    assert [len(tool["name"]) < 70 for tool in offered] == [
        True
    ] * 3  # the endless name is left out
    assert not hidden(str([(t["description"], t["parameters"]) for t in offered]))
    assert offered[0]["parameters"]["properties"]["v"]["enum"] == ["[31mevil", "\t"]


def test_the_words_of_a_servers_progress_are_bounded_and_visible(ask, hostile):
    run = ask([hostile()], ("a", {"v": "x"}))
    [said] = [e.message for e in run.log.of("progress") if e.message]
    assert said.startswith("[31mevilPPP")
    assert len(said) < 250


@pytest.mark.parametrize("mode", ["start", "call"])
def test_a_servers_error_is_bounded_and_visible(mode, ask, hostile):
    run = ask([hostile(mode)], ("a", {"v": "x"}))
    said = run.error or run.log.of("result")[0].content
    assert "[31mevil" in said
    assert len(said) < 3_000
    assert not hidden(said)


def test_a_server_that_does_not_list_its_tools_is_given_up(ask, hostile, monkeypatch):
    monkeypatch.setattr(session, "START_TIMEOUT", 3.0)
    run = ask([hostile("list")], ("a", {"v": "x"}))
    assert run.error == 'The MCP server "evil" did not list its tools within 3 seconds.'


def test_an_unknown_tool_is_answered_with_names_that_can_be_typed(ask, tmp_path, monkeypatch):
    program = str(Path(mcp_hostile_server.__file__))
    written(tmp_path, "evil", [sys.executable, program, ""])
    monkeypatch.setenv("AGENT_NB_TRUST_MCP", "1")
    run = ask(["mcp:evil/zzz"], ("a", {}), folder=tmp_path)
    assert 'has no tool "zzz"' in run.error
    assert "Tools: a, " in run.error
    assert not hidden(run.error)


def test_a_question_of_a_server_is_bounded(monkeypatch):
    asked = []

    def fake(text=""):
        asked.append(text)
        return "y" if len(asked) == 1 else ""

    monkeypatch.setattr("builtins.input", fake)
    field = {"type": "string", "default": "D" * 100_000, "enum": ["E" * 50_000] * 100}
    elicitation.ask_at_keyboard("evil", "M" * 100_000, {"properties": {"F" * 9_000: field}})
    assert max(map(len, asked)) < 3_000
