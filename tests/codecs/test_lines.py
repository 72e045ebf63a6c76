"""Lines end at LF and nowhere else."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.codecs.lines import LineDecoder
from agent_nb.errors import WireError


def lines(*chunks, limit=1 << 20):
    decoder = LineDecoder(limit=limit)
    return [line for chunk in chunks for line in decoder.feed(chunk)] + decoder.close()


def test_lines_come_when_they_are_complete():
    decoder = LineDecoder()
    assert decoder.feed(b"a\nb") == ["a"]
    assert decoder.feed(b"c\n\nd") == ["bc", ""]
    assert decoder.close() == ["d"]
    assert decoder.close() == []


def test_only_lf_ends_a_line():
    assert lines('{"a": "\u2028\x85\x0b\x0c\r"}\n') == ['{"a": "\u2028\x85\x0b\x0c\r"}']


def test_a_cr_stays():
    assert lines(b"a\r\nb") == ["a\r", "b"]


def test_text_and_bytes_are_read_alike():
    assert lines("é\n🙂") == lines("é\n🙂".encode()) == ["é", "🙂"]


def test_bytes_that_are_no_text_are_replaced():
    assert lines(b"a\xff\n") == ["a\ufffd"]


def test_a_line_beyond_the_limit_is_an_error():
    decoder = LineDecoder(limit=10)
    assert decoder.feed(b"ok\n" + b"x" * 6) == ["ok"]
    with pytest.raises(WireError, match="larger than 10"):
        decoder.feed(b"x" * 6)
    assert decoder.feed(b"\nafter\n") == ["", "after"]


def test_what_was_complete_before_a_fault_is_not_lost():
    decoder = LineDecoder(limit=10)
    assert decoder.feed("ok\n" + "x" * 20 + "\nmore\n") == ["ok"]
    with pytest.raises(WireError):
        decoder.close()


def test_data_of_the_call_that_raises_is_dropped_and_reading_goes_on():
    decoder = LineDecoder(limit=10)
    assert decoder.feed("ok\n" + "x" * 20 + "\ndropped\n") == ["ok"]
    with pytest.raises(WireError):
        decoder.feed("dropped\n")
    assert decoder.feed("after\n") == ["after"]


@given(st.text("a\n\r\u2028é🙂", max_size=40), st.lists(st.integers(0, 90), max_size=8))
def test_chunks_do_not_matter(text, places):
    data = text.encode()
    chunks = [
        data[a:b] for a, b in pairwise([0, *sorted(min(n, len(data)) for n in places), len(data)])
    ]
    expected = text.split("\n")
    assert lines(*chunks) == (expected if expected[-1] else expected[:-1])
