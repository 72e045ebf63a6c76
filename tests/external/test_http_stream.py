"""Reading any stream over HTTP: taken up again where it broke off when its events are numbered,
passed on as it is when not.
"""

import gzip
import json
import random
from functools import partial

import anyio
import httpx
import pytest
from helpers.tcp_server import listen
from hypothesis import given
from hypothesis import strategies as st

import agent_nb
from agent_nb import events as ev
from agent_nb.codecs.convert import decode
from agent_nb.errors import ModelError, UsageError, WireError
from agent_nb.external import http_stream
from agent_nb.external.connect import Backoff
from agent_nb.external.http_stream import read_stream
from agent_nb.external.sources import read_items
from agent_nb.wire.compression import PIECE

QUICK = Backoff(first_wait=0.001, longest_wait=0.01, patience=5)


def frame(number, data="x"):
    return f"id: {number}\ndata: {data}\n\n".encode()


class Broken:
    """A server that answers each request with the next of some answers; `asked` are the
    `Last-Event-ID`s it got, `paths` the paths.
    """

    def __init__(self, *answers, kind="text/event-stream"):
        self._answers = list(answers)
        self._kind = kind
        self.asked, self.paths = [], []

    async def __aenter__(self):
        self._server = listen(self._serve)
        self.url = f"http://127.0.0.1:{await self._server.__aenter__()}/x"
        return self

    async def __aexit__(self, *_):
        await self._server.__aexit__(None, None, None)

    async def _serve(self, stream, writer):
        head = (await stream.readuntil(b"\r\n\r\n")).decode("latin-1")
        self.paths.append(head.split(" ")[1])
        self.asked.append(
            next(
                (
                    line.split(": ")[1]
                    for line in head.split("\r\n")
                    if line.lower().startswith("last-event-id")
                ),
                "",
            )
        )
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, int):
            writer.write(
                f"HTTP/1.1 {answer} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
            )
        else:
            whole, data = answer if isinstance(answer, tuple) else (True, answer)
            # one byte more than comes: the connection breaks
            length = len(data) + (0 if whole else 1)
            writer.write(
                f"HTTP/1.1 200 OK\r\nContent-Type: {self._kind}\r\nContent-Length: {length}\r\n\r\n".encode()
                + data
            )
        await writer.drain()
        writer.close()


def all_of(*answers, done=lambda text: False, kind="text/event-stream"):
    """Return (what was read, what was asked)."""

    async def main():
        found: list[bytes] = []
        async with Broken(*answers, kind=kind) as server:
            async for chunk in read_stream(
                server.url, done=lambda: done(b"".join(found)), backoff=QUICK
            ):
                found.append(chunk)
            return b"".join(found), server.asked

    return anyio.run(main)


def test_a_stream_with_ids_is_taken_up_where_it_broke_off():
    first, second = (False, frame(1) + frame(2) + b"id: 3\nda"), frame(3) + frame(4)
    assert all_of(first, second, 204) == (frame(1) + frame(2) + frame(3) + frame(4), ["", "2", "4"])


def test_the_case_of_a_media_type_does_not_count():
    kind = "Text/Event-Stream; charset=UTF-8"
    assert all_of((False, frame(1)), frame(2), 204, kind=kind) == (
        frame(1) + frame(2),
        ["", "1", "2"],
    )


@pytest.mark.parametrize("blank", [" ", "\t", " \t "])
def test_a_stream_whose_ids_end_with_blanks_is_taken_up(blank):
    frames = [frame(f"{n}{blank}") for n in (1, 2, 3)]
    assert all_of((False, frames[0]), frames[1] + frames[2], 204)[1] == ["", "1", "3"]


def test_it_is_not_asked_again_when_what_came_is_complete():
    assert all_of(frame(1) + frame(2), done=lambda text: b"id: 2" in text) == (
        frame(1) + frame(2),
        [""],
    )


@pytest.mark.parametrize("status", [502, 503, 404, 429])
def test_a_server_that_is_away_for_a_moment_is_waited_for(status):
    assert all_of((False, frame(1)), status, status, frame(2), 204)[0] == frame(1) + frame(2)


def test_a_refusal_before_anything_came_is_an_error_at_once():
    with pytest.raises(UsageError, match="answers 503"):
        all_of(503)


def test_a_refusal_that_waiting_cannot_mend_is_an_error():
    with pytest.raises(UsageError, match="answers 401"):
        all_of((False, frame(1)), 401)


def test_it_gives_up_when_nothing_new_comes(monkeypatch):
    monkeypatch.setattr(
        f"{__name__}.QUICK", Backoff(first_wait=0.001, longest_wait=0.002, patience=0.05)
    )
    with pytest.raises(ModelError, match="nothing came for"):
        all_of(frame(1), frame(1)[:3])


def test_a_stream_without_ids_is_passed_on_and_ends_with_its_connection():
    assert all_of(b"data: a\n\ndata: b") == (b"data: a\n\ndata: b", [""])
    assert all_of(b'{"a": 1}\n{"b"', kind="application/x-ndjson") == (b'{"a": 1}\n{"b"', [""])


def test_a_stream_without_ids_that_breaks_is_an_error():
    with pytest.raises(ModelError, match="broke off"):
        all_of((False, b"data: a\n\n"))


def compressed(encoding):
    return f"text/event-stream\r\nContent-Encoding: {encoding}"


def test_a_compressed_stream_is_read_and_taken_up_again():
    first, second = (False, gzip.compress(frame(1) + frame(2))), gzip.compress(frame(3))
    assert all_of(first, second, 204, kind=compressed("gzip"))[0] == frame(1) + frame(2) + frame(3)


@pytest.mark.parametrize("encoding", ["gzip, gzip", "br"])
def test_a_compression_that_is_not_read_is_refused_at_once_by_name(encoding):
    async def attached():
        async with Broken(frame(1), kind=compressed(encoding)) as server:
            await agent_nb.attach(f"{server.url}/runs/r", "token", show=False)

    for attempt in (
        partial(all_of, frame(1), kind=compressed(encoding)),
        partial(anyio.run, attached),
    ):
        with pytest.raises(UsageError, match=f"compressed as '{encoding}'"):
            attempt()


@pytest.mark.few(1)
@pytest.mark.parametrize("way", ["read", "watch"])
def test_a_stream_that_expands_comes_in_small_pieces(way):
    """An answer of 64 KB becomes 64 MB: as an address, and as a response that the caller opened."""
    body = gzip.compress(b"x" * (64 << 20), 9)

    async def pieces(source):
        return [len(piece) async for piece in source]

    async def main():
        async with Broken(body, kind="text/plain\r\nContent-Encoding: gzip") as server:
            if way == "read":
                return await pieces(read_stream(server.url))
            async with (
                httpx.AsyncClient(trust_env=False) as client,
                client.stream("GET", server.url) as response,
            ):
                return await pieces(read_items(response))

    sizes = anyio.run(main)
    assert (sum(sizes), max(sizes) <= PIECE) == (64 << 20, True)


def test_frames_without_an_id_wait_for_the_next_that_has_one_and_come_once():
    loose = b"data: loose\n\n"
    first, second = frame(1) + loose, loose + frame(2) + loose
    assert all_of((False, first), second, 204)[0] == frame(1) + loose + frame(2) + loose
    assert all_of(first, second, 204)[0] == frame(1) + loose + frame(2) + loose


def frames_of(*connections):
    """Return what comes out of several connections, each of whole frames."""
    frames, out = http_stream.Frames(), b""
    for data in connections:
        out += frames.feed(data) + frames.end_connection()
    return out


A, B, C = frame(1, "a"), frame(2, "b"), frame(3, "c")
LOOSE, HELLO = b"data: loose\n\n", b"event: connected\ndata: {}\n\n"


@pytest.mark.parametrize(
    "again",
    [A + B + C, B + C, C, LOOSE + C, HELLO + C, HELLO + B + C, HELLO + A + LOOSE + B + C],
    ids=["all", "from before", "after", "loose", "greeting", "greeting twice", "greeting, all"],
)
def test_what_a_server_repeats_after_a_break_is_dropped(again):
    whole = HELLO + A + LOOSE + B
    expected = whole + C if again != LOOSE + C else whole + LOOSE + C
    if again == A + B + C:  # without the loose frame its repetition ends at the first that differs
        whole, expected = A + B, A + B + C
    assert frames_of(whole, again) == expected


def test_equal_frames_within_a_connection_all_count():
    same = frame(1, "a") * 3
    assert frames_of(same) == same
    assert frames_of(same, same + frame(2)) == same + frame(2)
    assert frames_of(A + A + B, A + B + C) == A + A + B + C


def test_equal_frames_that_a_server_repeats_are_dropped_in_linear_time():
    """In quadratic time it would exceed the test's time limit."""
    same = frame(1) * 40_000
    assert frames_of(same, same + frame(2)) == same + frame(2)


def test_an_id_that_comes_again_with_other_content_is_news():
    assert frames_of(A + B, frame(1, "x") + B) == A + B + frame(1, "x") + B
    assert frames_of(A + B, A + frame(2, "x") + B) == A + B + frame(2, "x") + B


def test_comments_between_repeated_frames_change_nothing():
    ping = b": ping\n\n"
    assert frames_of(A + ping + B, A + B + ping + C).replace(ping, b"") == A + B + C


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 12)), max_size=8))
def test_no_place_of_a_repetition_doubles_or_loses_a_frame(connections):
    """Contents repeat; each connection begins anywhere in what has come, and ends anywhere."""
    whole = [frame(n, n % 3) for n in range(12)]
    frames, out, came = http_stream.Frames(), b"", 0
    for share, end in [*connections, (0.0, 12)]:
        start = round(share * came)
        out += frames.feed(b"".join(whole[start:end])) + frames.end_connection()
        came = max(came, end)
    assert out == b"".join(whole)


def asked_paths(*answers, path="?a=b%20c&sig=x/y=="):
    async def main():
        async with Broken(*answers) as server:
            async for _ in read_stream(server.url + path, backoff=QUICK):
                pass
            return server.paths, server.asked

    return anyio.run(main)


def test_the_newest_id_is_in_the_address_of_a_reconnection_only():
    paths, asked = asked_paths((False, frame("c-1")), (False, frame("c/2")), 204)
    signed = "/x?a=b%20c&sig=x/y=="
    assert paths == [signed, f"{signed}&lastEventId=c-1", f"{signed}&lastEventId=c%2F2"]
    assert asked == ["", "c-1", "c/2"]


def test_an_id_that_the_caller_wrote_gives_way_to_the_newest():
    paths, _ = asked_paths((False, frame(5)), 204, path="?lastEventId=4&b=1")
    assert paths == ["/x?lastEventId=4&b=1", "/x?b=1&lastEventId=5"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_server_that_refuses_the_id_in_the_address_gets_the_header_alone(status):
    paths, asked = asked_paths((False, frame(1)), status, (False, frame(2)), 204, path="")
    assert paths == ["/x", "/x?lastEventId=1", "/x", "/x"]
    assert asked == ["", "1", "1", "2"]


def test_a_server_that_is_away_is_asked_with_the_id_in_the_address_again():
    paths, _ = asked_paths((False, frame(1)), 503, 204, path="")
    assert paths == ["/x", "/x?lastEventId=1", "/x?lastEventId=1"]


@pytest.mark.parametrize(
    ("end", "empty"), [("\n", "\n"), ("\n", "\r\n"), ("\r\n", "\r\n"), ("\r\n", "\n"), ("\r", "\r")]
)
def test_line_ends_of_every_kind_end_a_frame(end, empty):
    frames = http_stream.Frames()
    lines = (frame(1) + frame(2)).decode().replace("\n\n", "\n*")
    data = lines.replace("\n", end).replace("*", empty).encode()
    assert b"".join(frames.feed(data[i : i + 1]) for i in range(len(data))) == data
    assert frames.last_id == "2"


def test_a_frame_without_end_is_refused(monkeypatch):
    monkeypatch.setattr(http_stream.SSEDecoder, "FRAME_LIMIT", 100)
    with pytest.raises(WireError, match="larger"):
        http_stream.Frames().feed(b"data: " + b"x" * 200)


LOOOPY = [
    {"kind": "task-created", "taskId": "t", "contextId": "c"},
    *(
        {"kind": "content-delta", "taskId": "t", "contextId": "c", "delta": piece, "index": i}
        for i, piece in enumerate("abcdef")
    ),
    {"kind": "content-complete", "taskId": "t", "contextId": "c", "content": "abcdef"},
    {
        "kind": "task-complete",
        "taskId": "t",
        "contextId": "c",
        "content": "abcdef",
        "finishReason": "stop",
    },
]


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(5))
def test_a_foreign_run_that_breaks_at_random_bytes_is_watched_exactly_once(seed, monkeypatch):
    frames = [
        f"id: c-{n}\nevent: {o['kind']}\ndata: {json.dumps(o)}\n\n".encode()
        for n, o in enumerate(LOOOPY, 1)
    ]
    whole = b"".join(frames)
    rng = random.Random(seed)
    monkeypatch.setattr(
        "agent_nb.external.http_stream.Backoff",
        partial(Backoff, first_wait=0.001, longest_wait=0.01),
    )

    class Resuming(Broken):
        async def _serve(self, stream, writer):
            head = (await stream.readuntil(b"\r\n\r\n")).decode("latin-1")
            after = next(
                (
                    int(line.rpartition("-")[2])
                    for line in head.split("\r\n")
                    if line.lower().startswith("last-event-id: c-")
                ),
                0,
            )
            rest = b"".join(frames[after:])
            data = rest[: rng.randint(1, len(rest))] if rest else b""
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 99999\r\n\r\n"
                + data
            )
            if len(data) == len(rest):
                writer.write(b"\n" * (99999 - len(data)))
            await writer.drain()
            writer.close()

    async def main():
        async with Resuming(b"") as server:
            return await agent_nb.watch(server.url, show=False, secrets={})

    run = anyio.run(main)
    assert (run.status, run.answer) == ("ok", "abcdef")
    assert [e.type for e in run.log] == [
        e.type for e in decode(whole, "looopy") if e.type != "delta"
    ]


def test_a_server_of_ours_is_read_in_another_format_through_a_restart(rig, token, monkeypatch):
    server = rig()
    log = server.publish("r", ev.User(content="hi"), ev.Respond(content="yo"), ev.End()).log
    url = f"{server.server.url}/runs/r/events?format=looopy"
    assert log.ended

    async def main():
        return b"".join([chunk async for chunk in read_stream(url, token=token)])

    assert decode(anyio.run(main), "looopy")[-1].type == "end"
