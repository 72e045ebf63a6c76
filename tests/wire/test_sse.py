"""Server-sent events as the standard has them, in any chunking."""

import json
from itertools import pairwise

import pytest
from helpers.examples import count_examples
from helpers.paths import DATA
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_nb.errors import WireError
from agent_nb.wire.sse import Frame, SSEDecoder

ROWS = [
    json.loads(line)
    for line in (DATA / "wire.jsonl").read_text(encoding="utf-8").split("\n")
    if line
]
VECTORS = [r for r in ROWS if r["system"] == "sse_frames"]


def decode(*chunks, lenient=False, limit=1 << 20):
    decoder = SSEDecoder(limit=limit)
    return [f for chunk in chunks for f in decoder.feed(chunk)] + decoder.close(lenient=lenient)


def cut(data, places):
    return [
        data[a:b] for a, b in pairwise([0, *sorted(min(p, len(data)) for p in places), len(data)])
    ]


def data_of(*chunks, **options):
    return [f.data for f in decode(*chunks, **options)]


@pytest.mark.parametrize("vector", VECTORS, ids=[v["name"] for v in VECTORS])
def test_the_vectors(vector):
    data = "".join(vector["chunks"]).encode()
    for chunks in (
        [c.encode() for c in vector["chunks"]],
        [data],
        [data[n : n + 1] for n in range(len(data))],
        *(cut(data, [n]) for n in range(len(data))),
    ):
        assert [
            {"event": f.event, "data": json.loads(f.data), "id": f.id} for f in decode(*chunks)
        ] == vector["expected_events"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end_of_the_standard(end):
    assert decode(b"event: a" + end + b"data: x" + end + b"data: y" + end + end) == [
        Frame("a", "x\ny")
    ]


def test_a_line_end_cut_in_two_is_one():
    assert data_of(b"data: a\r", b"\ndata: b\r", b"\n", b"\r", b"\n") == ["a\nb"]


def test_a_lone_cr_before_a_lf_that_is_a_blank_line():
    assert data_of(b"data: a\r", b"\n\r\n") == ["a"]


def test_line_separators_of_other_kinds_are_data():
    assert data_of("data: a\u2028b\x85c\x0bd\n\n".encode()) == ["a\u2028b\x85c\x0bd"]


@pytest.mark.parametrize(
    "chunks",
    [
        [b"\xef\xbb\xbfdata: a\n\n"],
        [b"\xef", b"\xbb", b"\xbf", b"data: a\n\n"],
        [b"\xef\xbb", b"\xbfdata: a\n\n"],
    ],
)
def test_a_byte_order_mark_is_skipped_once(chunks):
    assert data_of(*chunks) == ["a"]


def test_a_second_byte_order_mark_is_data():
    assert data_of(b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n") == ["b"]


def test_what_begins_like_a_byte_order_mark_is_kept():
    assert data_of(b"\xef", b"\xbb", b"x: 1\ndata: a\n\n") == ["a"]


def test_comments_and_unknown_fields_are_ignored():
    assert data_of(b": ping\n\nfoo: 1\nbar\ndata: a\n:\n\n") == ["a"]


def test_without_data_there_is_no_frame():
    assert decode(b"id: 7\nevent: x\n\n: ping\n\n\n\n") == []


def test_a_keep_alive_after_an_id_yields_no_frame():
    decoder = SSEDecoder()
    assert len(decoder.feed(b"id: 1\ndata: a\n\n")) == 1
    assert decoder.feed(b": ping\n\n") == []


def test_empty_data_is_a_frame():
    assert decode(b"data\n\n", b"data:\ndata:\n\n") == [
        Frame("message", ""),
        Frame("message", "\n"),
    ]


def test_only_one_space_after_the_colon_goes():
    assert data_of(b"data:  a\ndata:b\ndata:\tc\n\n") == [" a\nb\n\tc"]


def test_field_names_are_exact():
    assert data_of(b" data: a\nDATA: b\ndata : c\ndata: d\n\n") == ["d"]


def test_the_last_event_of_a_frame_counts_and_an_empty_one_is_message():
    assert decode(b"event: a\nevent: b\ndata: 1\n\nevent: a\nevent:\ndata: 2\n\ndata: 3\n\n") == [
        Frame("b", "1"),
        Frame("message", "2"),
        Frame("message", "3"),
    ]


def test_an_id_stays_in_force():
    decoder = SSEDecoder()
    frames = decoder.feed(b"data: 0\n\nid: a\ndata: 1\n\ndata: 2\n\nid\ndata: 3\n\n")
    assert [f.id for f in frames] == [None, "a", "a", ""]
    assert decoder.last_event_id == ""


def test_an_id_without_data_is_remembered():
    decoder = SSEDecoder()
    decoder.feed(b"id: 9\n\n")
    assert decoder.last_event_id == "9"


def test_an_id_with_nul_is_ignored():
    assert decode(b"id: a\nid: b\0c\ndata: 1\n\n")[0].id == "a"


@pytest.mark.parametrize(
    ("value", "retry"),
    [
        (b"10", 10),
        (b"1a", None),
        (b"-1", None),
        (b"", None),
        (b"\xd9\xa1", None),
        (b"9" * 5000, None),
    ],
)
def test_retry_is_all_digits(value, retry):
    assert decode(b"retry: " + value + b"\ndata: 1\n\n")[0].retry == retry


def test_retry_belongs_to_its_frame_and_to_the_stream():
    decoder = SSEDecoder()
    frames = decoder.feed(b"retry: 5\n\ndata: 1\n\n")
    assert (frames[0].retry, decoder.retry) == (None, 5)


def test_an_unfinished_frame_is_dropped():
    assert data_of(b"data: a\n\ndata: b\n") == ["a"]


@pytest.mark.parametrize("rest", [b"data: b", b"data: b\n", b"data: b\r"])
def test_an_unfinished_frame_is_returned_to_the_lenient(rest):
    assert data_of(b"data: a\n\n", rest, lenient=True) == ["a", "b"]


def test_nothing_is_nothing():
    assert decode() == decode(b"", b"") == decode(b"\n\n", lenient=True) == []


def test_a_character_cut_in_two_is_one():
    data = "data: é🙂\n\n".encode()
    for n in range(len(data)):
        assert data_of(data[:n], data[n:]) == ["é🙂"]


def test_bytes_that_are_no_text_are_replaced():
    assert data_of(b"data: a\xffb\n\n") == ["a\ufffdb"]


@pytest.mark.parametrize("size", [1, 3, 50, 1000])
def test_a_frame_beyond_the_limit_is_an_error_and_the_decoder_goes_on(size):
    decoder = SSEDecoder(limit=100)
    data = b"data: ok\n\ndata: " + b"x" * 200 + b"\n\n"
    found = []

    def feed_all():
        for n in range(0, len(data), size):
            found.extend(decoder.feed(data[n : n + size]))
        decoder.feed(b"")

    with pytest.raises(WireError, match="larger than 100 bytes"):
        feed_all()
    assert [f.data for f in found] == ["ok"]
    decoder.feed(b"\n\n")
    assert [f.data for f in decoder.feed(b"data: after\n\n")] == ["after"]


@pytest.mark.parametrize("begun", [b"", b"data: ok\n\n", b"data: ok\r\n\r\n"])
def test_a_frame_beyond_the_limit_that_is_a_whole_chunk_is_an_error(begun):
    decoder = SSEDecoder(limit=100)
    decoder.feed(begun)
    assert [f.data for f in decoder.feed(b"data: " + b"x" * 94 + b"\n\n")] == ["x" * 94]
    with pytest.raises(WireError, match="larger than 100 bytes"):
        decoder.feed(b"data: " + b"x" * 95 + b"\n\n")
    assert [f.data for f in decoder.feed(b"data: after\n\n")] == ["after"]


def test_what_was_complete_before_a_fault_is_not_lost():
    decoder = SSEDecoder(limit=20)
    assert [f.data for f in decoder.feed(b"data: a\n\ndata: " + b"x" * 30 + b"\n\n")] == ["a"]
    with pytest.raises(WireError):
        decoder.feed(b"data: b\n\n")


LINES = st.sampled_from(
    [
        b"data: a",
        b"data:",
        b"data",
        b"event: e",
        b"id: 1",
        b"retry: 3",
        b": c",
        b"",
        b"x",
        "data: é🙂".encode(),
        b"id: \0",
        b"data: \xff",
    ]
)
STREAMS = st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r\n", b"\r"])), max_size=25)


def reference(stream):
    """The standard's algorithm, line by line."""
    frames, event, data, last, retry = [], "", [], None, None
    for line, _ in stream:
        if not line:
            if data:
                frames.append(Frame(event or "message", "\n".join(data), last, retry))
            event, data, retry = "", [], None
            continue
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif name == "event":
            event = value
        elif name == "id" and "\0" not in value:
            last = value
        elif name == "retry":
            retry = int(value)
    return frames


@given(STREAMS, st.lists(st.integers(0, 200), max_size=10))
@settings(max_examples=count_examples(300), deadline=None)
def test_any_stream_in_any_chunking_follows_the_standard(stream, places):
    # an empty line after a CR must not begin with LF, which would belong to the CR
    stream = [(line, b"\r\n" if not line and end == b"\n" else end) for line, end in stream]
    stream = [
        s
        for n, s in enumerate(stream)
        if s[0] or s[1] != b"\r\n" or not n or stream[n - 1][1] != b"\r"
    ]
    data = b"".join(line + end for line, end in stream)
    assert decode(*cut(data, places)) == decode(data) == reference(stream)


@given(
    st.binary(max_size=60).map(lambda b: b.replace(b"x", b"data: ").replace(b"y", b"\n\n")),
    st.lists(st.integers(0, 80), max_size=8),
)
@settings(max_examples=count_examples(300), deadline=None)
def test_any_bytes_are_read_without_an_error(data, places):
    assert decode(*cut(data, places), lenient=True) == decode(data, lenient=True)
