"""Schemas of servers: whatever they hold, dialects and policies can work with what is left."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.host import plugins
from agent_nb.models.messages import ToolSpec
from agent_nb.tools.base import Tool
from agent_nb.tools.mcp.input_schema import clean_schema
from agent_nb.tools.policy import Policy
from agent_nb.wire.hidden_characters import strip_hidden

KEYWORDS = ["type", "properties", "required", "items", "anyOf", "oneOf", "allOf", "not", "enum", "const", "default", "description", "title", "minimum", "maxLength", "pattern", "additionalProperties", "patternProperties", "$defs", "$ref", "prefixItems", "format", "a", "b"]  # fmt: skip
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats()
    | st.sampled_from(["object", "string", "array", "integer", "a", "#/$defs/a", "#/properties/a"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4)
    ),
    max_leaves=12,
)
SCHEMAS = st.dictionaries(st.sampled_from(KEYWORDS), VALUES, max_size=5)


def test_a_usual_schema_stays_as_it_is():
    usual = {
        "type": "object",
        "properties": {
            "required": {"type": "string", "description": "a name like a keyword"},
            "type": {"type": ["integer", "null"], "minimum": 1, "default": 3},
            "of": {"type": "array", "items": {"$ref": "#/$defs/one"}},
        },
        "required": ["type"],
        "additionalProperties": False,
        "$defs": {"one": {"anyOf": [{"type": "string"}, {"const": 1}]}},
    }
    assert clean_schema(usual) == usual


@pytest.mark.parametrize(
    ("given_", "left"),
    [
        (None, {}),
        ({"required": "a"}, {}),
        ({"required": ["a", 1, None]}, {"required": ["a"]}),
        ({"$defs": 5}, {}),
        ({"anyOf": [{}], "oneOf": [], "enum": [1], "$schema": "x"}, {}),
        ({"type": "string", "properties": []}, {}),
        ({"minProperties": True}, {}),
        ({"description": 5, "title": "a\u200b\U000e0041b"}, {"title": "ab"}),
        ({"default": {"a": float("nan")}}, {"default": {"a": None}}),
        ({"minProperties": float("inf"), "default": float("nan")}, {}),
        ({"min\u200bProperties": "1", "pro\u200bperties": 5}, {}),
        ({"additional\u200bProperties": {"ty\u200bpe": 5}}, {"additionalProperties": {}}),
    ],
)  # fmt: skip
def test_what_is_wrong_is_dropped(given_, left):
    assert clean_schema(given_) == {"type": "object", "properties": {}, **left}


def test_a_schema_that_is_too_deep_ends():
    deep = {}
    for _ in range(2_00):
        deep = {"type": "object", "properties": {"a": deep}}
    assert len(json.dumps(clean_schema(deep))) < 3_000


@pytest.mark.parametrize("levels", range(26, 34))
def test_the_deepest_schema_that_stays_is_whole(levels):
    """A keyword with null in place of its value would make the provider refuse the request."""
    deep = {"type": "string", "minLength": 1, "enum": ["a", "b"]}
    for _ in range(levels):
        deep = {"type": "array", "items": deep}
    text = json.dumps(clean_schema({"properties": {"a": deep}}))
    assert "null" not in text
    assert ('["a", "b"]' in text) == ('"string"' in text) == (levels < 30)


@given(SCHEMAS)
def test_every_dialect_and_a_policy_can_use_what_is_left(schema):
    spec = ToolSpec("t", "does", clean_schema(schema))
    json.dumps(spec.parameters, allow_nan=False)
    for name in ("native", "xml", "section"):
        dialect = plugins.load_plugin("dialects", name)
        for small in (False, True):
            dialect.instructions([spec], small=small)
            dialect.grammar([spec], small=small)
        dialect.shots([spec])
    tool = Tool(spec=spec, invoke=print, validate=dict, effect="outside")
    assert Policy().judge(tool, {"a": 1})[0] == "ask"


@given(st.text())
def test_visible_text_is_printable(text):
    assert all(
        c.isprintable() or c in "\n\t\u2028\u2029" or c.isspace() for c in strip_hidden(text)
    )
