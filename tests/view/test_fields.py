"""The fields of edited arguments: code stays code, and what was not touched stays as it was."""

import pytest

from agent_nb.view.fields import OTHERS, make_fields, read_fields, text_of

SCHEMA = {"properties": {"how": {"enum": ["mail", "post", None]}, "n": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("code", "1 + 1", "code"),
        ("text", "Hello", "text"),
        ("text", "Dear all,\n\tgood morning", "code"),
        ("text", "two\r\nlines", "code"),
        ("path", "li\u202est", "json"),
        ("path", "a\x1b[2Jb", "json"),
        ("how", "post", "choice"),
        ("how", "pigeon", "text"),
        ("n", 3, "number"),
        ("urgent", True, "flag"),
        ("header", {"x": [1]}, "json"),
        ("nothing", None, "json"),
    ],
)
def test_the_kind_of_a_field(name, value, kind):
    args = {name: value}
    [field, *_] = make_fields(args, SCHEMA)
    assert field.kind == kind
    assert "\u202e" not in text_of(field)
    typed = field.choices.index(value) if kind == "choice" else text_of(field)
    assert read_fields([(field, value if kind == "flag" else typed)]) == (args, {})


@pytest.mark.parametrize(
    ("value", "typed", "read"),
    [
        (3, " 4 ", 4),
        (3, "9007199254740993", 9007199254740993),
        (0.5, "1e3", 1000.0),
        ("a\nb", 'x = "\\n"\n', 'x = "\\n"\n'),
        ("a\r\nb", "a\nc", "a\r\nc"),
        ({"x": 1}, "null", None),
    ],
)
def test_a_typed_value_is_read(value, typed, read):
    [field, *_] = make_fields({"a": value}, {})
    assert read_fields([(field, typed)]) == ({"a": read}, {})


@pytest.mark.parametrize(
    ("value", "typed", "fault"),
    [
        (3, "three", "This is not a number."),
        (3, "true", "This is not a number."),
        (3, "NaN", "This is not a number."),
        ({}, '{"a": ', "This is not JSON: "),
        ({}, "[" * 100_000, "This is nested too deeply."),
        ([1], "[Infinity]", "This is not JSON: Infinity"),
        (1, "1e999", "This is not a number"),
        ([1], "[-1e999]", "This is not JSON: -1e999"),
    ],
)
def test_what_cannot_be_read_says_why(value, typed, fault):
    [field, *_] = make_fields({"a": value}, {})
    args, faults = read_fields([(field, typed)])
    assert args == {}
    assert faults["a"].startswith(fault)


def test_arguments_that_the_call_lacks_are_typed_as_json():
    fields = make_fields({"n": 1}, SCHEMA)
    assert [f.name for f in fields] == ["n", OTHERS]
    assert fields[-1].hint == '{"how": …}'
    assert read_fields([(fields[0], "1"), (fields[1], '{"how": "post"}')])[0] == {
        "n": 1,
        "how": "post",
    }
    assert read_fields([(fields[0], "1"), (fields[1], " ")])[0] == {"n": 1}
    assert [f.name for f in make_fields({"n": 1, "how": None}, SCHEMA)] == ["n", "how"]


def test_an_argument_without_a_name_has_a_field_of_its_own():
    fields = make_fields({"": "a"}, SCHEMA)
    assert read_fields([(fields[0], "b"), (fields[1], '{"n": 1}')]) == ({"": "b", "n": 1}, {})
    assert text_of(make_fields({"": "a\u202e"}, {})[0]) == '"a\\u202e"'


def test_an_argument_with_a_field_is_not_typed_a_second_time():
    fields = make_fields({"n": 1}, SCHEMA)
    args, faults = read_fields([(fields[0], "2"), (fields[1], '{"n": 3}')])
    assert args == {"n": 2}
    assert faults == {OTHERS: "n has a field above: change it there."}


@pytest.mark.parametrize(("value", "choices"), [(True, [1, True]), (1.0, [1, 2])])
def test_a_value_is_no_choice_that_is_only_equal_to_it(value, choices):
    [field, *_] = make_fields({"a": value}, {"properties": {"a": {"enum": choices}}})
    assert field.kind != "choice"
    assert type(field.value) is type(value)


def test_hidden_characters_are_seen_inside_lists_and_objects_too():
    field = make_fields({"paths": ["a\u202etxt.exe"]}, {})[0]
    assert "\\u202e" in text_of(field)
    assert text_of(make_fields({"paths": ["Zürich"]}, {})[0]) == '[\n  "Zürich"\n]'
