"""Recursive schemas as schemas of bounded depth."""

import jsonschema
import pytest
from helpers.output_types import TYPES
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.agent.typed.output_type import OutputType
from agent_nb.dialects.recursion import LEVELS, MOST_ITEMS, bound_depth
from agent_nb.models.strict_schema import recursive_names

RECURSIVE = ("recursive-model", "list-recursive", "recursive-dataclass")


def wire(name):
    return OutputType(TYPES[name][0]).wire.schema


def valid(schema, document):
    return jsonschema.Draft202012Validator(schema).is_valid(document)


def nested(depth, width=1):
    return {"label": "x", "children": [nested(depth - 1, width)] * width if depth else []}


@pytest.mark.parametrize("name", RECURSIVE)
def test_the_bounded_schema_has_no_recursion_and_is_a_schema(name):
    made = bound_depth(wire(name))
    jsonschema.Draft202012Validator.check_schema(made)
    assert not recursive_names(made["$defs"])


@pytest.mark.parametrize("name", ["model", "list-model", "dict-int", "model-of-unions"])
def test_a_schema_without_recursion_stays(name):
    schema = wire(name)
    assert bound_depth(schema) is schema


def test_the_depth_and_the_lists_are_bounded():
    made = bound_depth(wire("recursive-model"))
    assert valid(made, nested(LEVELS, MOST_ITEMS))
    assert not valid(made, nested(LEVELS + 1))
    assert not valid(made, nested(1, MOST_ITEMS + 1))


TREES = st.recursive(
    st.just([]),
    lambda inner: st.lists(inner.map(lambda kids: {"label": "x", "children": kids}), max_size=3),
    max_leaves=12,
)


@given(TREES)
def test_every_document_of_the_bounded_schema_is_one_of_the_original(kids):
    document = {"label": "x", "children": kids}
    original = wire("recursive-model")
    if valid(bound_depth(original), document):
        assert valid(original, document)


def test_two_types_that_contain_each_other_are_bounded():
    one = {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}}}
    other = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"]}
    schema = {**one, "$defs": {"A": one, "B": other}}
    made = bound_depth(schema)
    assert not recursive_names(made["$defs"])
    assert valid(made, {"b": {"a": {}}})


def test_a_schema_that_cannot_end_stays():
    endless = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/E"}},
        "required": ["next"],
    }
    schema = {**endless, "$defs": {"E": endless}}
    assert bound_depth(schema) is schema


def test_a_part_that_all_of_demands_is_bounded():
    parent = {"allOf": [{"$ref": "#/$defs/N"}]}
    node = {"type": "object", "properties": {"parent": parent}}
    made = bound_depth({**parent, "$defs": {"N": node}})
    assert valid(made, {"parent": {}})
    assert not recursive_names(made["$defs"])
    deepest = made["$defs"][f"N_{LEVELS - 1}"]
    assert not deepest["properties"]
