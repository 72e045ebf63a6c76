"""A JSON object that grows: the same members in any chunking, and what a cut text shows."""

import json
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_nb.view.state.growing_object import MAX_DEPTH, GrowingObject
from agent_nb.wire.surrogates import replace_surrogates

TEXTS = [
    "{}",
    " \n{ } \t",
    '{"code": "a = 1\\nprint(\\"a\\")\\t\\\\n"}',
    '{"file": "x.py", "lines": [1, 2.5, -3e2], "all": true, "none": null, "deep": {"a": [{"b": "c"}]}}',
    '{"a": "\\ud83d\\ude00\\u00e9", "b\\u0041": "\U0001f600é"}',
    '{"lone": "\\ud83d", "low": "\\ude00x", "two": "\\ud83d\\ud83d\\ude00", "other": "\\ud83d\\u0041\\ud83d\\n"}',
    '{"a": "\\\\ud83d\\\\", "b": "\\/\\b\\f\\r"}',
    '{"a": "first", "b": 1, "a": "second"}',
    '{"a": {"x": 1}, "a": {"y": "two"}}',
    '{"": "", "text": "raw\nbreak\tand tab"}',
    '{"empty": [], "nested": [[], [{}], {"a": {}}]}',
]
# not one object: all of it, or from some character on
FAULTY = [
    "print(1)",
    '"text"',
    "[1, 2]",
    "3",
    "{]",
    '{"a": [1}',
    '{"a" 1}',
    '{"a":: 1}',
    '{"a": 1,}',
    '{"a": [1,]}',
    "{,}",
    "{1: 2}",
    '{"a": "\\x"}',
    '{"a": "\\u12g4"}',
    '{"a": "\\ud83d\\udczz"}',
    '{"a": tru}',
    '{"a": 01}',
    '{"a": NaN}',
    '{"a": 1e999}',
    '{"a": 1 2}',
    '{"a": 1} {"b": 2}',
    '{"a": ' + "9" * 5000 + "}",
]


def read(*chunks):
    reader = GrowingObject()
    for chunk in chunks:
        reader.feed(chunk)
    return reader


def expected(text):
    return replaced(json.loads(text, strict=False))


def replaced(value):
    """Return a value with its lone surrogates replaced, as the reader does."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, dict):
        return {replace_surrogates(k): replaced(v) for k, v in value.items()}
    return [replaced(v) for v in value] if isinstance(value, list) else value


def refuse(constant):
    raise ValueError(constant)


def outcome(reader):
    """Return the object that was read, None if the text is not one whole object."""
    whole = not reader.broken and reader._expected == "nothing"
    return reader.take_value() if whole else None


@pytest.mark.parametrize("text", TEXTS)
def test_an_object_is_read_as_a_parser_reads_the_whole_of_it(text):
    assert outcome(read(text)) == expected(text)
    assert outcome(read(*text)) == expected(text)
    for at in range(len(text) + 1):
        assert outcome(read(text[:at], text[at:])) == expected(text)


@pytest.mark.parametrize("text", [*TEXTS, *FAULTY])
def test_a_cut_text_shows_the_same_in_any_chunking(text):
    slowly = GrowingObject()
    for at in range(len(text)):
        assert slowly.take_value() == read(text[:at]).take_value()
        assert slowly.broken == read(text[:at]).broken
        slowly.feed(text[at])


@pytest.mark.parametrize("text", FAULTY)
def test_what_is_not_one_object_is_not_read_as_one(text):
    assert outcome(read(text)) is None
    assert outcome(read(*text)) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        ("{", {}),
        ('{"a', {}),
        ('{"a"', {}),
        ('{"a": "', {"a": ""}),
        ('{"a": "on', {"a": "on"}),
        ('{"a": "on\\', {"a": "on"}),
        ('{"a": "on\\u00', {"a": "on"}),
        ('{"a": "\\ud83d', {"a": ""}),
        ('{"a": "\\ud83d\\ude0', {"a": ""}),
        ('{"a": "\\ud83d\\u0', {"a": "\ufffd"}),
        ('{"a": [1, {"b": "x', {"a": [1, {"b": "x"}]}),
        ('{"a": tr', {}),
        ('{"a": 1', {}),
        ('{"a": 1,', {"a": 1}),
        ('{"a": 1, "a": "', {"a": ""}),
        ('{"late": 3, "code": "x', {"late": 3, "code": "x"}),
        ('{"code": "x", oops', {"code": "x"}),
        ('{"a": NaN', {}),
        ("nonsense", {}),
    ],
)
def test_a_cut_text_shows_what_has_come(text, value):
    assert read(text).take_value() == value
    assert read(*text).take_value() == value


def test_a_faulty_text_is_ignored_from_its_fault_on():
    reader = read('{"code": "x"} and words')
    assert reader.broken
    reader.feed(', "code": "y"}')
    assert reader.take_value() == {"code": "x"}


def test_a_value_that_was_taken_keeps_its_texts():
    reader = read('{"a": "one')
    before = reader.take_value()
    reader.feed(' two", "b": "')
    assert before == {"a": "one"}
    assert reader.take_value() == {"a": "one two", "b": ""}


def test_nesting_is_bounded():
    deep = '{"a": ' + "[" * MAX_DEPTH
    assert read(deep).broken
    assert not read(deep[:-1]).broken


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.property
@given(
    value=st.dictionaries(st.text(), VALUES, max_size=5),
    cuts=st.lists(st.integers(0, 400), max_size=8),
    ascii_only=st.booleans(),
    indent=st.sampled_from([None, 1]),
)
def test_any_object_in_any_chunking_is_read_as_by_json(value, cuts, ascii_only, indent):
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    assert outcome(read(*(text[a:b] for a, b in pairwise(places)))) == json.loads(text)


@pytest.mark.property
@given(text=st.text(alphabet='{}[]",:\\/ud8cDe0a1-.tfn \n', max_size=60))
@example(text='{"":"\\uD8cD\\uDce0"}')
def test_any_text_is_an_object_exactly_if_json_says_so(text):
    try:
        value = json.loads(text, strict=False, parse_constant=refuse)
        value = replaced(value) if isinstance(value, dict) else None
    except ValueError:
        value = None
    assert outcome(read(text)) == value
    assert outcome(read(*text)) == value
