"""Lines end at LF and nowhere else."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.codecs.lines import LineDecoder
from agent_nb.errors import WireError


def refuse(fault):
    raise fault


def lines(*chunks, limit=1 << 20):
    decoder = LineDecoder(refuse, limit=limit)
    return [line for chunk in chunks for line in decoder.feed(chunk)] + decoder.close()


def test_lines_come_when_they_are_complete():
    decoder = LineDecoder(refuse)
    assert decoder.feed(b"a\nb") == ["a"]
    assert decoder.feed(b"c\n\nd") == ["bc", ""]
    assert decoder.close() == ["d"]
    assert decoder.close() == []


def test_only_lf_ends_a_line():
    assert lines('{"a": "\u2028\x85\x0b\x0c\r"}\n'.encode()) == ['{"a": "\u2028\x85\x0b\x0c\r"}']


def test_a_cr_stays():
    assert lines(b"a\r\nb") == ["a\r", "b"]


def test_characters_of_several_bytes_are_read():
    assert lines("é\n🙂".encode()) == ["é", "🙂"]


def test_bytes_that_are_no_text_are_replaced():
    assert lines(b"a\xff\n") == ["a\ufffd"]


@pytest.mark.parametrize("size", [1, 4, 7, 100])
def test_the_lines_around_one_beyond_the_limit_are_not_lost(size):
    data = b"before\n" + b"x" * 25 + b"\nafter\n\n" + b"y" * 11 + b"\nlast"
    faults = []
    decoder = LineDecoder(faults.append, limit=10)
    read = [line for n in range(0, len(data), size) for line in decoder.feed(data[n : n + size])]
    assert [*read, *decoder.close()] == ["before", "after", "", "last"]
    assert ["larger than 10" in str(fault) for fault in faults] == [True, True]


def test_a_line_beyond_the_limit_is_reported_once_and_not_kept():
    faults = []
    decoder = LineDecoder(faults.append, limit=10)
    for _ in range(1000):
        assert decoder.feed(b"x" * 100) == []
    assert len(faults) == 1
    assert decoder._pieces == []
    assert decoder.close() == []


def test_a_reader_may_refuse_a_line_beyond_the_limit():
    decoder = LineDecoder(refuse, limit=10)
    with pytest.raises(WireError, match="larger than 10"):
        decoder.feed(b"x" * 11)
    assert decoder.feed(b"rest\nafter\n") == ["after"]


@given(st.text("a\n\r\u2028é🙂", max_size=40), st.lists(st.integers(0, 90), max_size=8))
def test_chunks_do_not_matter(text, places):
    data = text.encode()
    chunks = [
        data[a:b] for a, b in pairwise([0, *sorted(min(n, len(data)) for n in places), len(data)])
    ]
    expected = text.split("\n")
    assert lines(*chunks) == (expected if expected[-1] else expected[:-1])
