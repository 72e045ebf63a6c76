"""Packed values come back, survive JavaScript, and name no home."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.record import packing
from agent_nb.record.packing import LARGE, Home, Packer, Payloads, Unpacker, payload_key
from agent_nb.wire.json_text import encode_canonical

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
KEYS = st.text(max_size=8) | st.sampled_from(["$int", "$payload", "$literal", "$raw", "$float"])
VALUES = st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=4) | st.dictionaries(KEYS, v, max_size=3), max_leaves=20
)


def there_and_back(value, home="/home/ann", other=None, large=LARGE):
    packer = Packer(Home(home), large)
    packed = packer.pack(value)
    return Unpacker(packer.payloads, Home(home if other is None else other)).unpack(
        json.loads(json.dumps(packed))
    )


@given(VALUES)
def test_every_json_value_comes_back(value):
    assert there_and_back(value) == value


@given(VALUES)
def test_large_values_come_back_from_the_payloads(value):
    assert there_and_back(value, large=3) == value


@pytest.mark.parametrize(
    "value", [math.inf, -math.inf, 2**53, -(2**70), pytest.param(10**5000, id="huge")]
)
def test_numbers_that_javascript_lacks_come_back(value):
    assert there_and_back({"x": [value]}) == {"x": [value]}


def test_nan_comes_back():
    assert math.isnan(there_and_back(math.nan))


def test_integral_floats_are_written_as_javascript_writes_them():
    assert json.dumps(Packer(Home("")).pack([1.0, -0.0, 2.5])) == "[1, 0, 2.5]"


def test_canonical_text_is_the_same_after_javascript_rewrote_the_numbers():
    assert encode_canonical({"b": 1.0, "a": 1e17}) == encode_canonical(
        {"a": 100000000000000000, "b": 1}
    )


@pytest.mark.parametrize("value", [{1, 2}, 10**400, -(10**400), float("nan")])
def test_canonical_text_refuses_other_values(value):
    with pytest.raises(ValueError):
        encode_canonical({"x": value})


@given(st.lists(st.sampled_from(["/home/ann", "/", "a", "⌂", "~", "=", "\\", " "])).map("".join))
def test_texts_with_the_home_and_the_sign_come_back(text):
    home = Home("/home/ann")
    assert home.show(home.hide(text)) == text


def test_packed_values_do_not_name_the_home_folder():
    packed = Packer(Home("/home/ann")).pack({"/home/ann/x": ["see /home/ann/data.csv, /home/ann."]})
    assert "ann" not in json.dumps(packed)


def test_the_home_of_windows_is_hidden_also_where_backslashes_are_doubled():
    home = Home("C:\\Users\\ann")
    text = 'C:\\Users\\ann\\x and "C:\\\\Users\\\\ann\\\\x"'
    assert "ann" not in home.hide(text)
    assert home.show(home.hide(text)) == text


def test_another_reader_finds_the_own_home():
    assert there_and_back("open('/home/ann/x')", other="/Users/bob") == "open('/Users/bob/x')"


def test_a_word_that_only_begins_like_the_home_stays():
    assert Home("/root").hide("/rootkit") == "/rootkit"


def test_a_large_text_that_occurs_twice_is_stored_once():
    packer = Packer(Home(""))
    text = "x" * (LARGE + 1)
    packed = packer.pack([text, text])
    assert packed[0] == packed[1]
    assert packer.payloads == {payload_key(text): text}


def test_a_missing_payload_becomes_words():
    assert "missing" in Unpacker({}, Home("")).unpack({"$payload": "0" * 64})


def test_a_payload_that_was_changed_is_not_used():
    key = payload_key("good")
    assert "changed" in Unpacker({key: "evil"}, Home("")).unpack({"$payload": key})


def test_payloads_do_not_unfold_without_end():
    bomb = "x" * (1 << 20)
    key = payload_key(bomb)
    outer = [{"$payload": key}] * 10_000
    unfolded = Unpacker({key: bomb}, Home("")).unpack(outer)
    assert sum(len(v) for v in unfolded) < 1 << 29


def test_payloads_that_are_not_texts_count_with_their_size(monkeypatch):
    large = [[]] * 1000
    key, size = payload_key(large), len(encode_canonical(large))
    monkeypatch.setattr(packing, "MOST_UNPACKED", 5 * size)
    values = Unpacker({key: large}, Home("")).unpack([{"$payload": key}] * 9)
    assert values[:5] == [large] * 5
    assert all("too large together" in value for value in values[5:])


def test_a_value_nested_without_end_is_cut():
    deep = []
    for _ in range(5000):
        deep = [deep]
    assert "nested too deeply" in json.dumps(Packer(Home("")).pack(deep))


def test_other_values_become_text():
    assert Packer(Home("")).pack({"x": {1}}) == {"x": "{1}"}


def test_references_are_found_at_any_depth():
    assert Payloads.find_keys({"a": [{"$payload": "k1"}, {"b": {"$payload": "k2"}}]}) == {
        "k1",
        "k2",
    }


def test_a_text_of_blanks_is_told_from_a_picture_in_linear_time():
    """In quadratic time it would exceed the test's time limit."""
    text = " " * 200_000 + "§"
    packer = Packer(Home("/home/ann"))
    packed = packer.pack_picture({"data": text})
    assert packer.payloads[packed["data"]["$payload"]] == text
