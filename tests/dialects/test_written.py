"""What the models are told: instructions, example turns and grammars, as snapshots and by their
properties.

To renew the snapshots after a deliberate change run the tests with AGENT_NB_RENEW=1 and read the
diff.
"""

import json
import os
from pathlib import Path

import pytest

from agent_nb.dialects import examples, grammar, render
from agent_nb.models.messages import CallBlock, ResultBlock, ToolSpec

SNAPSHOTS = Path(__file__).with_name("snapshots")


def compare(name, text):
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("AGENT_NB_RENEW"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    assert text + "\n" == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["xml", "section"])
@pytest.mark.parametrize("size", ["", "-small"])
@pytest.mark.parametrize("kit", ["tools", "none"])
def test_the_instructions_are_as_agreed(load_dialect, tools, name, size, kit):
    given = tools if kit == "tools" else []
    compare(
        f"instructions-{name}-{kit}{size}", load_dialect(name).instructions(given, small=bool(size))
    )


@pytest.mark.parametrize("name", ["xml", "section"])
def test_braces_in_a_description_reach_the_model_unchanged(load_dialect, name):
    words = "Fill {name} into {} and {{0}}."
    tool = ToolSpec("fill", words, {"properties": {"q": {"type": "string", "description": words}}})
    assert load_dialect(name).instructions([tool]).count(words) == 2


EXAMPLES = [
    examples.Example("Thanks!", "No tool.", "You are welcome."),
    examples.Example(
        question="What is in docs?",
        thought="I list it.",
        call=CallBlock("c1", "list", {"path": "docs"}),
        result=ResultBlock("c1", "list", "a.md\nb.md"),
        conclusion="I know.",
        answer="a.md and b.md.",
    ),
]


@pytest.mark.parametrize("name", ["xml", "section"])
def test_the_shots_are_written_as_agreed(load_dialect, tools, name, monkeypatch):
    monkeypatch.setattr("agent_nb.dialects.examples.make_examples", lambda _: EXAMPLES)
    compare(
        f"shots-{name}",
        "\n".join(f"--- {m.role}\n{m.text}" for m in load_dialect(name).shots(tools)),
    )


def test_there_is_an_example_for_each_of_the_first_tools(tools):
    called = [e.call.name for e in examples.make_examples(tools) if e.call]
    assert called == [t.name for t in tools[: examples.MOST_TOOLS]]
    assert any(e.call is None for e in examples.make_examples(tools))


@pytest.mark.parametrize("name", ["xml", "section"])
@pytest.mark.parametrize("moment", ["", "-small", "-small-answered"])
def test_the_grammars_are_as_agreed(load_dialect, tools, name, moment):
    text = load_dialect(name).grammar(tools, small="small" in moment, answered="answered" in moment)
    compare(f"grammar-{name}{moment}", text)


def test_the_native_dialect_teaches_nothing(load_dialect, tools):
    native = load_dialect("native")
    assert (native.instructions(tools), list(native.shots(tools)), native.grammar(tools)) == (
        "",
        [],
        "",
    )


def test_the_instructions_name_every_tool_and_parameter(load_dialect, tools):
    for name in ("xml", "section"):
        text = load_dialect(name).instructions(tools)
        assert '- list(path?: string = "."): List the entries of a folder.' in text
        assert "    path: the folder" in text
        assert (
            '- plan(stops: array of {city: string, nights?: integer}, pace: "slow" | "fast", budget?: number | null)'
            in text
        )
        assert "- now(): Tell the time." in text


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({}, "any"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"const": 3}, "3"),
        ({"type": "array"}, "array"),
        ({"type": "array", "items": {"type": "integer"}}, "array of integer"),
        ({"$ref": "#/$defs/Missing"}, "any"),
        ({"$ref": "#/$defs/Loop"}, "any"),
        ({"type": "object"}, "object"),
        ({"oneOf": [{"type": "string"}, {"type": "string"}]}, "string"),
    ],
)
def test_a_schema_in_a_few_words(schema, words):
    assert render.name_type(schema, {"$defs": {"Loop": {"$ref": "#/$defs/Loop"}}}) == words


def test_a_schema_that_contains_itself_many_times_is_named_in_short():
    members = {f"p{n}": {"$ref": "#/$defs/A"} for n in range(100)}
    root = {"$defs": {"A": {"type": "object", "properties": members}}}
    assert len(render.name_type({"$ref": "#/$defs/A"}, root)) < 1_000_000
    root["$defs"]["A"]["required"] = list(members)
    assert len(str(examples.make_args(ToolSpec("f", "", {**root, "properties": members})))) < 1e8


def test_a_schema_that_contains_itself_ends():
    node = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/Node"}},
        "required": ["next"],
    }
    root = {
        "$defs": {"Node": node},
        "type": "object",
        "properties": {"n": {"$ref": "#/$defs/Node"}},
        "required": ["n"],
    }
    assert len(render.name_type({"$ref": "#/$defs/Node"}, root)) < 200
    json.dumps(examples.make_args(ToolSpec("f", "", root)))
    json.dumps(grammar.make_batch_schema([ToolSpec("f", "", root)]))


@pytest.mark.parametrize(
    ("schema", "name", "value"),
    [
        ({"type": "string"}, "path", "docs"),
        ({"type": "string"}, "whatever", "example"),
        ({"type": "string", "maxLength": 3}, "whatever", "exa"),
        ({"type": "string", "minLength": 9}, "whatever", "exampleaa"),
        ({"type": "string", "examples": ["x.csv"]}, "file", "x.csv"),
        ({"type": "string", "default": "y"}, "file", "y"),
        ({"type": "string", "default": "."}, "path", "docs"),
        ({"enum": ["a", "b"]}, "", "a"),
        ({"type": "integer"}, "count", 3),
        ({"type": "integer", "minimum": 10}, "count", 10),
        ({"type": "number", "maximum": 1}, "x", 1),
        ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, "x", 0.5),
        ({"type": "number", "minimum": 0.2, "exclusiveMaximum": 1}, "x", 0.6),
        ({"type": "integer", "exclusiveMinimum": 4}, "x", 5),
        ({"type": "boolean"}, "x", True),
        ({"type": "array", "items": {"type": "string"}}, "files", ["notes.txt"]),
        ({"type": "array", "items": {"type": "integer"}, "minItems": 2}, "x", [3, 3]),
        ({"anyOf": [{"type": "null"}, {"type": "integer"}]}, "x", 3),
        (
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a"]},
            "x",
            {"a": "example"},
        ),
        ({"type": "null"}, "x", None),
    ],
)
def test_an_example_value_fits_its_schema(schema, name, value):
    tool = ToolSpec("f", "", {"type": "object", "properties": {name: schema}, "required": [name]})
    assert examples.make_args(tool) == {name: value}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/A"},
        {"type": "array", "minItems": 10**9},
        {"type": "string", "minLength": 10**9},
    ],
)
def test_an_example_of_any_schema_is_short(schema):
    root = {"$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}]}}, "properties": {"x": schema}}
    assert len(str(examples.make_args(ToolSpec("f", "", root)))) < 2000


def test_an_example_gives_the_required_arguments_or_the_first():
    spec = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}
    assert examples.make_args(ToolSpec("f", "", {**spec, "required": ["b"]})) == {"b": 4}
    assert examples.make_args(ToolSpec("f", "", spec)) == {"a": "example"}
    assert examples.make_args(ToolSpec("f", "", {"type": "object"})) == {}


def test_the_grammar_bounds_what_has_no_bound(tools):
    schema = grammar.make_batch_schema(tools)
    options = {
        o["properties"]["name"]["const"]: o["properties"]["args"] for o in schema["items"]["anyOf"]
    }
    assert list(options) == ["list", "read", "plan", "now"]
    assert options["read"]["properties"]["file"]["maxLength"] == grammar.SHORT_TEXT
    assert options["plan"]["properties"]["stops"] == {
        "type": "array",
        "items": {"$ref": "#/$defs/t2_Stop"},
        "maxItems": grammar.MOST_ITEMS,
    }
    assert schema["$defs"]["t2_Stop"]["properties"]["nights"]["maximum"] == grammar.LARGEST_NUMBER
    assert all(o["additionalProperties"] is False for o in options.values())


@pytest.mark.parametrize(
    ("schema", "bounded"),
    [
        ({"type": "string", "maxLength": 5000}, {"type": "string", "maxLength": 5000}),
        ({"type": "string", "enum": ["a"]}, {"type": "string", "enum": ["a"]}),
        ({"type": "string", "format": "date"}, {"type": "string", "format": "date"}),
        (
            {"type": "string", "format": "odd", "pattern": "(?=x)"},
            {"type": "string", "maxLength": 120},
        ),
        (
            {"type": "integer", "minimum": 1, "maximum": 3, "title": "N"},
            {"type": "integer", "minimum": 1, "maximum": 3},
        ),
        (
            {"type": "object", "additionalProperties": {"type": "boolean"}},
            {"type": "object", "additionalProperties": {"type": "boolean"}},
        ),
        ({"type": "object"}, {"type": "object", "additionalProperties": True}),
        ({"oneOf": [{"type": "boolean"}]}, {"anyOf": [{"type": "boolean"}]}),
        (True, True),
        ("nonsense", {}),
    ],
)
def test_a_schema_keeps_its_bounds_and_loses_what_the_grammar_lacks(schema, bounded):
    assert grammar.bound_schema(schema) == bounded


@pytest.mark.parametrize(("maximum", "minimum"), [(-(10**13), -(10**13)), (5, -(10**12))])
def test_a_bound_lies_beyond_the_one_that_a_number_has(maximum, minimum):
    low = grammar.bound_schema({"type": "integer", "exclusiveMaximum": maximum})["minimum"]
    high = grammar.bound_schema({"type": "integer", "exclusiveMinimum": -maximum})["maximum"]
    assert low == -high <= minimum
    assert low < maximum


def test_code_may_be_longer_than_a_name():
    assert grammar.bound_schema({"type": "string"}, "", "code")["maxLength"] == grammar.LONG_TEXT


def test_json_for_a_model_holds_no_marker():
    text = render.write_json({"a": "</execute><execute><think>§END", "b": "\ud800é"})
    assert "<execute" not in text
    assert "</" not in text
    assert "§" not in text
    assert json.loads(text) == {"a": "</execute><execute><think>§END", "b": "\ud800é"}
    text.encode()


def test_arguments_are_written_as_they_are_now_not_as_they_came():
    assert render.make_call_value(CallBlock("i", "f", {"a": 2}, '{"a": 1}')) == {
        "name": "f",
        "args": {"a": 2},
    }
