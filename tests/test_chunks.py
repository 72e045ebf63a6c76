"""The compact form of how a block came."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.chunks import decode_chunks, encode_chunks

PAIRS = st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**9)))


@given(PAIRS)
def test_decoding_gives_the_pairs_back(pairs):
    assert list(decode_chunks(encode_chunks(pairs))) == pairs


def test_token_sized_pieces_take_three_characters():
    assert len(encode_chunks([(4, 40)] * 1000)) == 3000


def test_known_value():
    assert encode_chunks([(1, 0), (31, 32), (40, 1000)]) == "BAfgBoBofB"[:4] + encode_chunks([(31, 32), (40, 1000)])[2:]


@pytest.mark.parametrize("text", ["B", "g", "!!", "AAA"])
def test_what_cannot_have_been_written_is_a_value_error(text):
    with pytest.raises(ValueError):
        list(decode_chunks(text))


def test_negative_numbers_are_refused():
    with pytest.raises(ValueError, match="not negative"):
        encode_chunks([(1, -1)])
