"""HTTP/1.1 of the relay's clients: what is read, what is refused, and what an answer looks like."""

import asyncio

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.tape.framing import (
    MOST_OF_HEAD,
    AnswerFraming,
    FramingError,
    RequestHead,
    read_body,
    read_head,
)

LENGTH = b"POST /v1/x?y HTTP/1.1\r\nHost: a\r\nX-Name:  b c \r\nContent-Length: 4\r\n\r\nbody"
CHUNKS = (
    b"POST /v1/x HTTP/1.1\r\nhost: a\r\ntransfer-encoding: Chunked\r\n\r\n"
    b"2;a=b\r\nbo\r\n02 \r\ndy\r\n0\r\nx-late: 1\r\n\r\n"
)
EMPTY = b"\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n"


def read_all(*pieces, ends=True, largest=100):
    """Return the requests in bytes that arrive in pieces, each as method, target and body."""

    async def main():
        reader, requests = asyncio.StreamReader(limit=MOST_OF_HEAD), []

        async def send():
            for piece in pieces:
                reader.feed_data(piece)
                await asyncio.sleep(0)
            reader.feed_eof()

        sending = asyncio.create_task(send())
        try:
            while (head := await read_head(reader)) is not None:
                body = await read_body(reader, head, largest)
                requests.append((head.method, head.target, body))
        finally:
            await sending
        return requests

    return asyncio.run(main())


ALL = [("POST", "/v1/x?y", b"body"), ("POST", "/v1/x", b"body"), ("GET", "/", b"")]


def test_requests_are_read_whole_and_byte_by_byte():
    data = LENGTH + CHUNKS + EMPTY
    assert read_all(data) == ALL
    assert read_all(*(data[n : n + 1] for n in range(len(data)))) == ALL


def test_requests_are_read_wherever_they_are_cut():
    data = LENGTH + CHUNKS + EMPTY
    for cut in range(len(data)):
        assert read_all(data[:cut], data[cut:]) == ALL


def test_a_body_that_is_too_large_is_read_to_its_end():
    for data in (LENGTH, CHUNKS):
        bodies = [body for *_, body in read_all(data + EMPTY, largest=3)]
        assert bodies == [None, b""]


def test_a_request_that_breaks_off_is_refused():
    for data in (LENGTH, CHUNKS, EMPTY[2:]):
        for cut in range(1, len(data)):
            with pytest.raises(FramingError):
                read_all(data[:cut])
    assert read_all() == read_all(b"\r\n") == []


@pytest.mark.parametrize(
    "head",
    [
        b"nonsense",
        b"GET / HTTP/2.0",
        b"GET  / HTTP/1.1",
        b"GET / a HTTP/1.1",
        b"G\0T / HTTP/1.1",
        b"GET / HTTP/1.1\r\n folded: a",
        b"GET / HTTP/1.1\r\nno colon",
        b"GET / HTTP/1.1\r\nspaced : a",
        b"GET / HTTP/1.1\r\n: a",
        b"GET / HTTP/1.1\r\na: b\nc: d",
        b"GET / HTTP/1.1\r\na: b\0",
        b"POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2",
        b"POST / HTTP/1.1\r\ncontent-length: +1",
        b"POST / HTTP/1.1\r\ncontent-length: -1",
        b"POST / HTTP/1.1\r\ncontent-length: 1_0",
        b"POST / HTTP/1.1\r\ncontent-length: ",
        b"POST / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked",
        b"POST / HTTP/1.1\r\ntransfer-encoding: gzip, chunked",
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked",
        b"GET / HTTP/1.1\r\na: " + b"x" * MOST_OF_HEAD,
    ],
)
def test_a_head_that_can_be_read_in_two_ways_is_refused(head):
    with pytest.raises(FramingError):
        read_all(head + b"\r\n\r\n" + EMPTY)


@pytest.mark.parametrize("chunk", [b"-1", b"0x1", b"1_0", b"", b" 1", b"1" * 17, b"1\r\nxy"])
def test_a_chunk_of_an_unclear_size_is_refused(chunk):
    with pytest.raises(FramingError):
        read_all(
            b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"
            + chunk
            + b"\r\nxx\r\n0\r\n\r\n"
        )


def test_names_of_headers_are_lower_and_repeated_values_are_joined():
    head = RequestHead(b"GET / HTTP/1.1\r\nA: 1\r\na: 2\r\nCookie: b=1\r\ncookie: c=2")
    assert head.headers == {"a": "1, 2", "cookie": "b=1; c=2"}


@pytest.mark.parametrize(
    ("lines", "is_last", "waits"),
    [
        (b"GET / HTTP/1.1\r\nhost: a", False, False),
        (b"GET / HTTP/1.1\r\nconnection: x, Close", True, False),
        (b"GET / HTTP/1.0\r\nconnection: keep-alive", True, False),
        (b"GET / HTTP/1.1\r\nexpect: 100-Continue", False, True),
        (b"GET / HTTP/1.0\r\nexpect: 100-continue", True, False),
    ],
)
def test_a_head_says_what_the_client_does_next(lines, is_last, waits):
    head = RequestHead(lines)
    assert (head.is_last, head.waits) == (is_last, waits)


def answer_to(first, status, headers, pieces, **options):
    """Return what a client has that reads an answer with h11: head, body, whether it goes on."""
    request = RequestHead(first + b"\r\nhost: a")
    framing = AnswerFraming(request, status, headers, **options)
    data = framing.head + b"".join(map(framing.frame, pieces)) + framing.end()
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method=request.method, target="/", headers=[("host", "a")]))
    client.send(h11.EndOfMessage())
    client.receive_data(data)
    if framing.closes:
        client.receive_data(b"")
    head, body = client.next_event(), b""
    while isinstance(event := client.next_event(), h11.Data):
        body += event.data
    assert isinstance(event, h11.EndOfMessage)
    return head, body, not framing.closes


@given(
    pieces=st.lists(st.binary(max_size=40), max_size=5),
    method=st.sampled_from([b"GET", b"HEAD", b"POST"]),
    version=st.sampled_from([b"1.0", b"1.1"]),
    status=st.sampled_from([200, 204, 302, 304, 404, 599]),
    length=st.sampled_from(["unknown", "in a header", "known"]),
)
def test_what_is_sent_is_what_a_strict_client_reads(pieces, method, version, status, length):
    whole = b"".join(pieces)
    headers = [(b"x-a", b"1"), (b"x-a", b"caf\xc3\xa9")]
    if length == "in a header":
        headers.append((b"content-length", b"%d" % len(whole)))
    first = method + b" / HTTP/" + version
    size = len(whole) if length == "known" else None
    head, body, goes_on = answer_to(first, status, headers, pieces, size=size)
    bodiless = method == b"HEAD" or status in (204, 304)
    lengths = [value for name, value in head.headers if name == b"content-length"]
    has_length = length == "in a header" or (length == "known" and not bodiless)
    assert lengths == [b"%d" % len(whole)] * has_length
    assert (head.status_code, body) == (status, b"" if bodiless else whole)
    assert [value for name, value in head.headers if name == b"x-a"] == [b"1", b"caf\xc3\xa9"]
    assert goes_on == (version == b"1.1")


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ([(b"location", b"/a\r\nx-forged: 1")], ""),
        ([(b"a\r\nb", b"1")], ""),
        ([(b"a b", b"1")], ""),
        ([(b"content-length", b"1, 2")], ""),
        ([], "OK\r\nx-forged: 1"),
    ],
)
def test_no_header_of_an_answer_makes_another_line(headers, reason):
    with pytest.raises(FramingError):
        AnswerFraming(RequestHead(b"GET / HTTP/1.1"), 200, headers, reason)


@pytest.mark.parametrize("status", [-200, 0, 101, 199, 1000])
def test_a_status_that_ends_no_request_is_not_sent(status):
    with pytest.raises(FramingError):
        AnswerFraming(RequestHead(b"GET / HTTP/1.1"), status, [])


@pytest.mark.parametrize("body", [b"1", b"123"])
def test_an_answer_of_another_length_than_it_says_is_a_fault(body):
    framing = AnswerFraming(RequestHead(b"GET / HTTP/1.1"), 200, [(b"content-length", b"2")])
    with pytest.raises(FramingError):
        framing.frame(body) + framing.end()
