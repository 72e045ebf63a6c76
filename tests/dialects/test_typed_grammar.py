"""Grammars of turns whose answer is JSON of a type."""

import json

import pytest
from helpers.output_types import TYPES, walk

from agent_nb.agent.typed.output_type import OutputType
from agent_nb.dialects import grammar, native, section, thinking, xml
from agent_nb.dialects.base import Typed
from agent_nb.models.messages import ToolSpec

TOOL = ToolSpec("look", "Look.", {"type": "object", "properties": {}})


def schema_of(text):
    (line,) = [line for line in text.splitlines() if line.startswith("reply: %json ")]
    return json.loads(line.removeprefix("reply: %json "))


@pytest.mark.parametrize("spoken", [xml.dialect, section.dialect, thinking.thinking(xml.dialect)])
@pytest.mark.parametrize("tools", [(), (TOOL,)])
@pytest.mark.parametrize("small", [True, False])
def test_the_reply_is_json_and_the_rest_of_the_turn_as_ever(spoken, tools, small):
    wire = OutputType(TYPES["list-model"][0]).wire
    typed = spoken.typed_grammar(tools, wire, small=small)
    plain = spoken.grammar(tools, small=small)
    others = [line for line in plain.splitlines() if not line.startswith("reply:")]
    assert [line for line in typed.splitlines() if not line.startswith("reply:")] == others
    assert list(schema_of(typed)["properties"]) == ["value"]
    assert list(schema_of(typed)["$defs"]) == ["answer_Row"]


@pytest.mark.parametrize("name", TYPES)
def test_every_type_has_a_bounded_grammar(name):
    wire = OutputType(TYPES[name][0]).wire
    made = grammar.make_answer_schema(wire)
    text = json.dumps(made)
    assert made["type"] == "object"
    for held in walk(made):
        if held.get("type") == "array":
            assert "maxItems" in held
        if held.get("type") == "string":
            assert held.keys() & {"maxLength", "enum", "const", "format"}
    assert '"uri"' not in text


def test_a_pattern_that_the_engine_lacks_is_left_out():
    kept = grammar.bound_schema({"type": "string", "pattern": "^[a-z]+$"})
    left = grammar.bound_schema({"type": "string", "pattern": "^(?=a).*$"})
    assert (kept["pattern"], "pattern" in left) == ("^[a-z]+$", False)


def test_a_dialect_without_such_a_grammar_gives_none():
    wrapped = thinking.thinking(native.dialect)
    assert not isinstance(native.dialect, Typed)
    assert wrapped.typed_grammar((), OutputType(int).wire) == ""
