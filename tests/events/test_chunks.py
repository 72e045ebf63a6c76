"""The compact form of how a block came."""

import base64
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.events.chunks import PACKED, decode_chunks, encode_chunks, pack_chunks, unpack_chunks

PAIRS = st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**9)))


@given(PAIRS)
def test_decoding_returns_the_pairs(pairs):
    assert list(decode_chunks(encode_chunks(pairs))) == pairs


def test_token_sized_pieces_take_three_characters():
    assert len(encode_chunks([(4, 40)] * 1000)) == 3000


def test_known_value():
    assert (
        encode_chunks([(1, 0), (31, 32), (40, 1000)])
        == "BAfgBoBofB"[:4] + encode_chunks([(31, 32), (40, 1000)])[2:]
    )


@pytest.mark.parametrize("text", ["B", "g", "!!", "AAA"])
def test_what_cannot_have_been_written_is_a_value_error(text):
    with pytest.raises(ValueError):
        list(decode_chunks(text))


@pytest.mark.parametrize("coding", [lambda text: text, pack_chunks])
def test_numbers_of_more_than_64_bits_are_refused(coding):
    largest = [(2**64 - 1, 0)] * 9
    assert list(decode_chunks(coding(encode_chunks(largest)))) == largest
    with pytest.raises(ValueError, match="too large"):
        list(decode_chunks(coding(encode_chunks([(2**64, 0)] * 9))))


def test_packed_numbers_of_70_bits_are_refused():
    packed = base64.b85encode(zlib.compress(b"\xff" * 9 + b"\x7f" + b"\x00")).decode()
    with pytest.raises(ValueError, match="too large"):
        list(decode_chunks(PACKED + packed))


def test_negative_numbers_are_refused():
    with pytest.raises(ValueError, match="not negative"):
        encode_chunks([(1, -1)])


@given(PAIRS)
def test_packing_keeps_the_pairs_and_the_string(pairs):
    text = encode_chunks(pairs)
    assert list(decode_chunks(pack_chunks(text))) == pairs
    assert unpack_chunks(pack_chunks(text)) == text


def test_a_long_string_becomes_shorter():
    text = encode_chunks([(n % 7 + 1, 40 + n % 5) for n in range(1000)])
    packed = pack_chunks(text)
    assert packed.startswith(PACKED)
    assert len(packed) < len(text) / 2
    assert pack_chunks(packed) == packed


@pytest.mark.parametrize("text", ["~", "~abc", "~" + "a" * 50, "~é", "g" * 100])
def test_what_cannot_have_been_packed_is_a_value_error(text):
    with pytest.raises(ValueError):
        list(decode_chunks(text))


def test_a_packed_string_cut_short_is_a_value_error():
    packed = pack_chunks(encode_chunks([(n % 7, n) for n in range(1000)]))
    with pytest.raises(ValueError):
        list(decode_chunks(packed[:-10]))


def test_a_packed_string_that_expands_takes_little_memory():
    data = bytes(4_000_000)  # two million pairs of zeros
    packed = PACKED + base64.b85encode(zlib.compress(data)).decode()
    tracemalloc.start()
    try:
        assert next(decode_chunks(packed)) == (0, 0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * len(data)
