"""Objects that a program hands over instead of text: what is no JSON is made JSON, and that is
said.
"""

import datetime
import json
from types import MappingProxyType

import pytest
from helpers.codec_io import logs

from agent_nb.codecs.convert import decode, encode
from agent_nb.errors import WireError
from agent_nb.wire.json_text import nearest_json

SHAPES = {
    "canonical": lambda v: {"type": "state", "payload": v},
    "cogency": lambda v: {
        "type": "result",
        "payload": {"outcome": "o", "content": v, "error": False},
    },
    "loom": lambda v: {"type": "custom", "value": v},
    "agent-event": lambda v: {"type": "tool_progress", "toolName": "x", "data": v},
    "looopy": lambda v: {"kind": "tool-complete", "taskId": "t", "toolCallId": "x", "result": v},
    "ag-ui": lambda v: {"type": "CUSTOM", "name": "x", "value": v},
    "ui-message": lambda v: {"type": "data-x", "data": v},
}


class Odd:
    def __str__(self):
        return "odd"


class Unwritable:
    def __str__(self):
        raise KeyError("no text")


def looped(depth=100_000):
    value = []
    for _ in range(depth):
        value = [value]
    return value


ODD = {
    "object": (Odd(), "odd"),
    "half": (json.loads('"a\\ud800b"'), "a\ufffdb"),
    "nested half": ({"\ud800": ["\udfff"]}, {"\ufffd": ["\ufffd"]}),
    "nan": ([float("nan"), float("-inf")], [None, None]),
    "tuple": ((1, 2), [1, 2]),
    "keys": ({1: 2}, {"1": 2}),
    "date": (datetime.date(2026, 1, 2), "2026-01-02"),
    "more digits than Python writes": ([1, 10**5000], [1, None]),
    "a text that raises": ([Unwritable()], [None]),
    "mapping": (MappingProxyType({"a": Odd()}), {"a": "odd"}),
}


@pytest.mark.parametrize("case", ODD)
def test_the_nearest_json_value_takes_the_place(case):
    value, wanted = ODD[case]
    assert nearest_json(value) == (wanted, True)


@pytest.mark.parametrize("value", [None, True, 0, 1.5, 10**30, "é\u2028", [], {"a": [{"b": None}]}])
def test_json_stays_as_it_is(value):
    nearest, changed = nearest_json(value)
    assert (nearest, type(nearest)) == (value, type(value))
    assert not changed


@pytest.mark.few(24)
@pytest.mark.parametrize("case", ODD)
def test_no_object_raises_and_each_that_is_no_json_is_counted(name, case):
    obj = SHAPES[name](ODD[case][0])
    events = decode([obj], name)
    assert events
    for target in SHAPES:
        encode(events, target)
    with pytest.raises(WireError, match="not JSON"):
        decode([obj], name, strict=True)


def test_what_is_nested_too_deeply_is_one_bad_line(name):
    assert decode([SHAPES[name](looped())], name) == []


def test_a_format_is_detected_from_objects_that_are_no_json():
    (log,) = logs(
        [
            {"type": "user", "content": "\ud800"},
            {"type": "think", "content": "t"},
            {"type": "respond", "content": "a"},
        ]
    )
    assert [e.type for e in log] == ["user", "think", "respond", "end"]
