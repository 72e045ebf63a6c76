"""Questions of MCP servers at the keyboard: what counts as an answer, and what is asked again."""

import asyncio
import json
import sys

import pytest

from agent_nb.errors import MissingExtra
from agent_nb.tools.mcp.elicitation import answer_elicitation, ask_at_keyboard


@pytest.fixture
def answer(monkeypatch):
    """Answer the questions for one field with these words; return the reply and the prompts."""

    def answer(field, *typed):
        prompts, words = [], iter(("y", *typed))

        def read(prompt=""):
            prompts.append(prompt)
            return next(words)

        monkeypatch.setattr("builtins.input", read)
        schema = {"properties": {"n": field}, "required": ["n"]}
        return ask_at_keyboard("small", "How many?", schema), prompts

    return answer


@pytest.mark.parametrize("typed", ["nan", "NaN", "inf", "-Infinity", "1e999", "many", "3,5"])
def test_only_a_finite_number_is_a_number(typed, answer):
    reply, prompts = answer({"type": "number"}, typed, "2.5")
    assert reply == {"n": 2.5}
    assert prompts[2] == "Please type a number. n: "


@pytest.mark.parametrize("typed", ["3.5", "3.0", "nan", "three"])
def test_a_whole_number_is_asked_for_by_its_name(typed, answer):
    reply, prompts = answer({"type": "integer"}, typed, "-4")
    assert reply == {"n": -4}
    assert json.dumps(reply) == '{"n": -4}'
    assert prompts[1:] == ["n (a whole number): ", "Please type a whole number. n: "]


def test_a_whole_number_may_be_larger_than_any_float(answer):
    assert answer({"type": "integer"}, "1" + "0" * 400)[0] == {"n": 10**400}


def test_a_number_with_choices_is_one_of_them(answer):
    reply, prompts = answer({"type": "integer", "enum": [1, 2]}, "7", "2")
    assert reply == {"n": 2}
    assert prompts[1:] == ["n (one of 1, 2): ", "Please type one of 1, 2. n: "]


def test_three_unclear_answers_cancel(answer):
    assert answer({"type": "integer"}, "a", "b", "c")[0] == "cancel"


def test_without_the_sdk_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp_types", None)  # importing it raises
    monkeypatch.setattr("agent_nb.tools.mcp.sdk.import_library", lambda name: None)
    with pytest.raises(MissingExtra, match="pip install"):
        asyncio.run(answer_elicitation("small", None, None))
