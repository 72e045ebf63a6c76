"""Schemas within the subsets that providers enforce."""

import json

import jsonschema
import pytest
from helpers.output_types import TYPES, walk
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.agent.typed.output_type import OutputType
from agent_nb.models.strict_schema import ANTHROPIC, OPENAI, make_strict

NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "pattern": "^a+$"},
        {"type": "string", "maxLength": 3},
        {"type": "string", "format": "date"},
        {"type": "integer", "minimum": 1, "maximum": 9},
        {"type": "number", "multipleOf": 2},
        {"type": "boolean", "description": "yes or no"},
        {"type": ["integer", "null"]},
        {"type": "null", "title": "Nothing"},
        {"enum": ["x", 1, None]},
        {"const": "k"},
        {"$ref": "#/$defs/leaf"},
        {"$ref": "#/$defs/leaf", "description": "a leaf"},
        {},
        {"type": "object", "additionalProperties": {"type": "integer"}},
    ]
)


def objects(inner):
    return st.builds(
        lambda members, optional, extra: {
            "type": "object",
            "properties": members,
            "required": [name for name in members if name not in optional],
            **({} if extra is None else {"additionalProperties": extra}),
        },
        st.dictionaries(NAMES, inner, max_size=3),
        st.sets(NAMES),
        st.sampled_from([None, False, True, {"type": "integer"}]),
    )


def arrays(inner):
    return st.builds(
        lambda items, least, unique: {
            "type": "array",
            "items": items,
            **({"minItems": least} if least else {}),
            **({"uniqueItems": True} if unique else {}),
        },
        inner,
        st.integers(0, 2),
        st.booleans(),
    )


def choices(inner):
    return st.builds(
        lambda options, key: {key: options},
        st.lists(inner, min_size=1, max_size=3),
        st.sampled_from(["anyOf", "anyOf", "oneOf"]),
    )


INNER = st.recursive(SCALARS, lambda s: objects(s) | arrays(s) | choices(s), max_leaves=8)
LEAF = {
    "type": "object",
    "properties": {"kind": {"const": "leaf"}, "n": {"type": "integer"}},
    "required": ["kind"],
}
SCHEMAS = objects(INNER).map(lambda s: {**s, "$defs": {"leaf": LEAF}})


def documents(schema, definitions):
    """Return a strategy of documents that are valid under a strict schema."""
    if "$ref" in schema:
        return documents(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        return st.one_of([documents(each, definitions) for each in schema["anyOf"]])
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    made = {
        "string": st.sampled_from(["", "a", "aaa", "abcd", "2024-01-01"]),
        "integer": st.integers(-3, 12),
        "number": st.integers(-4, 4) | st.floats(-5, 5),
        "boolean": st.booleans(),
        "null": st.none(),
        "array": st.lists(documents(schema.get("items", {"const": 0}), definitions), max_size=3),
        "object": st.fixed_dictionaries(
            {n: documents(s, definitions) for n, s in schema.get("properties", {}).items()}
        ),
    }
    return st.one_of([made[kind] for kind in kinds])


def valid(schema, document):
    return jsonschema.Draft202012Validator(schema).is_valid(document)


@given(SCHEMAS, st.data())
def test_a_document_valid_under_the_strict_schema_fits_the_original(schema, data):
    form = make_strict(schema, OPENAI)
    if form is None:
        return
    jsonschema.Draft202012Validator.check_schema(form)
    document = data.draw(documents(form, form.get("$defs", {})))
    if valid(form, document):
        assert valid(schema, document), (form, document)


@given(SCHEMAS)
def test_a_strict_object_is_closed_and_all_its_members_are_required(schema):
    for rules in (OPENAI, ANTHROPIC):
        form = make_strict(schema, rules)
        for each in walk(form):
            if "object" in each.get("type", ()) and not isinstance(each["type"], dict):
                assert each["required"] == list(each["properties"])
                assert each["additionalProperties"] is False
            assert (
                not each.keys() & {"title", "default", "oneOf", "uniqueItems"} or "type" not in each
            )


@pytest.mark.parametrize(
    "name", ["model", "nested-model", "recursive-model", "list-model", "model-of-unions", "set"]
)
def test_usual_types_have_a_strict_form(name):
    assert make_strict(OutputType(TYPES[name][0]).wire.schema, OPENAI) is not None


@pytest.mark.parametrize("name", ["dict-int", "tuple", "namedtuple", "any", "list"])
def test_open_objects_tuples_and_untyped_values_have_none(name):
    schema = OutputType(TYPES[name][0]).wire.schema
    assert make_strict(schema, OPENAI) is None
    assert make_strict(schema, ANTHROPIC) is None


def test_the_original_is_not_changed():
    schema = OutputType(TYPES["model-of-unions"][0]).wire.schema
    before = json.dumps(schema)
    make_strict(schema, OPENAI)
    make_strict(schema, ANTHROPIC)
    assert json.dumps(schema) == before


def test_bounds_become_words_where_the_provider_takes_none():
    form = make_strict(OutputType(TYPES["constrained-model"][0]).wire.schema, ANTHROPIC)
    assert form["properties"]["a"] == {
        "description": "(minimum: 0, maximum: 10)",
        "type": "integer",
    }
    assert make_strict(OutputType(TYPES["recursive-model"][0]).wire.schema, ANTHROPIC) is None


def test_a_described_reference_keeps_its_description():
    schema = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/leaf", "description": "a leaf"}},
        "$defs": {"leaf": LEAF},
    }
    assert make_strict(schema, OPENAI)["properties"]["x"] == {
        "description": "a leaf",
        "anyOf": [{"$ref": "#/$defs/leaf"}],
    }


def test_one_of_is_strict_only_where_a_fixed_member_tells_options_apart():
    def either(*kinds, of="object"):
        options = [
            {"type": of, "properties": {"kind": kind}, "required": ["kind"]} for kind in kinds
        ]
        return {"type": "object", "properties": {"x": {"oneOf": options}}}

    assert make_strict(either({"const": "a"}, {"const": "b"}), OPENAI) is not None
    assert make_strict(either({"const": "a"}, {"const": "a"}), OPENAI) is None
    assert make_strict(either({"type": "string"}, {"const": "a"}), OPENAI) is None
    nullable = either({"const": "a"}, {"const": "b"}, of=["object", "null"])
    assert make_strict(nullable, OPENAI) is None  # null fits both options


@pytest.mark.parametrize("options", [[True, {"type": "null"}], [{"$ref": "#/$defs/any"}], [], 1])
def test_one_of_with_a_boolean_or_without_options_has_no_strict_form(options):
    schema = {"type": "object", "properties": {"x": {"oneOf": options}}, "$defs": {"any": True}}
    assert make_strict(schema, OPENAI) is None


@pytest.mark.parametrize(
    ("levels", "enclose"),
    [
        (12, lambda schema: {"type": "object", "properties": {"x": schema}}),
        (5000, lambda schema: {"anyOf": [schema]}),
    ],
    ids=["objects", "options"],
)
def test_a_schema_nested_too_deeply_has_none(levels, enclose):
    schema = {"type": "string"}
    for _ in range(levels):
        schema = enclose(schema)
    assert make_strict({"type": "object", "properties": {"x": schema}}, OPENAI) is None


def test_fixed_values_name_their_types():
    def member(schema):
        form = make_strict({"type": "object", "properties": {"x": schema}}, OPENAI)
        return form and form["properties"]["x"]

    assert member({"const": 1}) == {"const": 1, "type": "integer"}
    assert member({"enum": ["a", None]})["type"] == ["string", "null"]
    assert member({"enum": [[1]]}) is None
