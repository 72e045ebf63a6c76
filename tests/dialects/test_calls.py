"""Calls as JSON: the scan that follows them across chunks, and the strict reading."""

import pytest

from agent_nb.dialects.call_scan import CallScan
from agent_nb.dialects.calls import read_args, read_batch, read_call
from agent_nb.models import parts as p


def scan(text, sigil="<", level=1, **options):
    found = []
    return CallScan(sigil, level, **options).run(text, 0, found), found


@pytest.mark.parametrize(
    ("text", "stop", "pos"),
    [
        ('[{"a": "x', "more", 9),
        ('[{"a": "x\\', "more", 9),
        ('[{"a": "x\\"<', "more", 12),
        ('[{"a": 1} <', "sigil", 10),
        ('[{"a": "x\n', "broken", 9),
        ('[{"a": "x\\\n', "broken", 9),
        ("[\\", "broken", 1),
        ("[[[]]] rest", "done", 6),
        ("]", "done", 1),
        ("", "more", 0),
    ],
)
def test_where_a_scan_stops_and_why(text, stop, pos):
    assert scan(text)[0] == (stop, pos)


def test_a_scan_goes_on_where_the_text_before_ended():
    follow, found = CallScan("<", 1), []
    assert follow.run('[{"name": "f", "args": {"a": "x\\', 0, found) == ("more", 31)
    assert follow.run('\\"y</a>"}}]<', 0, found) == ("done", 11)
    assert found == [p.CallDelta('{"a": "x', 0, name="f"), p.CallDelta('\\"y</a>"}', 0, name="f")]


def test_the_deepest_level_is_known():
    follow = CallScan("<", 1)
    follow.run("[" * 300, 0, [])
    assert follow.deepest == 300


def test_arguments_before_the_name_are_not_given_out():
    assert scan('[{"args": {"a": 1}, "name": "f"}]')[1] == []


def test_only_the_arguments_of_a_call_are_given_out():
    text = '[{"name": "f", "x": {"args": {"q": 1}}, "args": {"a": {"args": {}}}, "y": [1]}, {"name": "g", "args": {}}]'
    assert scan(text)[1] == [
        p.CallDelta('{"a": {"args": {}}}', 0, name="f"),
        p.CallDelta("{}", 1, name="g"),
    ]


def test_nothing_is_given_out_when_nobody_watches():
    assert scan('[{"name": "f", "args": {"a": 1}}]', live=False)[1] == []


def test_one_object_is_a_call_of_its_own():
    (stop, pos), found = scan('{"name": "f", "args": {}} §', "§", 0)
    assert (stop, pos) == ("done", 25)
    assert found == [p.CallDelta("{}", 0, name="f")]


def test_of_equal_members_the_last_counts():
    assert read_call('{"name": "a", "name": "b", "args": {"x": 1, "x": 2}}') == p.Call(
        "b", {"x": 2}, '{"x": 1, "x": 2}'
    )


@pytest.mark.parametrize(
    ("raw", "call_id"), [('"c1"', "c1"), ("7", "7"), ("null", ""), ("true", ""), ("[1]", "")]
)
def test_a_member_id_is_the_call_id(raw, call_id):
    assert read_call(f'{{"name": "a", "args": {{}}, "id": {raw}}}').call_id == call_id


def test_the_calls_of_a_batch_are_numbered():
    calls = read_batch('[{"name": "a", "args": {}}, {"name": "b", "args": {}}]', 3)
    assert [c.index for c in calls] == [3, 4]


def test_an_empty_batch_has_no_calls():
    assert read_batch(" [ ] ") == []


def test_large_integers_are_kept():
    assert read_args('{"a": 123456789012345678901234567890}') == {
        "a": 123456789012345678901234567890
    }


@pytest.mark.parametrize(
    "text",
    [
        "[1]",
        '"x"',
        "1",
        "true",
        "null",
        '{"a": 01}',
        "{'a': 1}",
        '{"a": 1,}',
        '{"a": "\t"}',
        "\ufeff{}",
        "{} x",
    ],
)
def test_arguments_must_be_one_strict_json_object(text):
    with pytest.raises(ValueError, match=r"^(it|JSON|Input|The)"):
        read_args(text)
