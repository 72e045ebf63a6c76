"""JSON text: strict and lenient reading, and the canonical form."""

import math

import msgspec
import pytest

from agent_nb.wire.json_text import dumps, encode_canonical, lenient_loads, loads


def test_strict_reading_refuses_what_lenient_reading_takes():
    text = '{"x": NaN, "y": "a\tb"}'
    with pytest.raises(msgspec.DecodeError):
        loads(text)
    value = lenient_loads(text)
    assert math.isnan(value["x"])
    assert value["y"] == "a\tb"


@pytest.mark.parametrize("text", ["", "{", "[1,]", "[" * 100_000])
def test_lenient_reading_raises_value_errors_only(text):
    with pytest.raises(ValueError):
        lenient_loads(text)


def test_canonical_text_has_sorted_keys_and_no_spaces():
    assert encode_canonical({"b": 1.0, "a": ["é", None]}) == '{"a":["é",null],"b":1}'
    assert dumps({"b": 1.0}) == '{"b":1.0}'
