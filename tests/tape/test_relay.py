"""The relay: what passes between a client and its provider, and what does not."""

import asyncio
import contextlib
import gzip
import http.client
import json
import socket
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
from urllib.parse import urlsplit

import httpx
import pytest
from helpers.model_server import Server
from helpers.paths import CHECKOUT
from tape.answers import chat_chunks, sse

from agent_nb import tape
from agent_nb.errors import UsageError
from agent_nb.tape.exchange import Body, Response
from agent_nb.tape.providers import BY_NAME
from agent_nb.tape.relay import Live, Refusal, Relay, _Call


def test_request_and_answer_pass_unaltered(relayed):
    one = relayed(lambda peer: peer.reply(200, b'{"a":  1}', x_request_id="r1"))
    answer, body = one.ask("/chat/completions?x=1", authorization="Bearer key")
    assert (answer.status, body, answer.getheader("x-request-id")) == (200, b'{"a":  1}', "r1")
    (peer,) = one.server.asked
    assert (peer.path, peer.body, peer.headers["authorization"]) == (
        "/v1/chat/completions?x=1",
        {"model": "m"},
        "Bearer key",
    )
    assert peer.headers["host"] == one.server.host
    assert one.over.wait(10)
    assert one.sent[0].exchange.response.headers == {
        "content-type": "application/json",
        "x-request-id": "r1",
    }


@pytest.mark.parametrize(
    ("name", "path"),
    [("anthropic", "/v1/messages"), ("google", "/v1beta/models/gemini-3:generateContent")],
)
def test_each_provider_has_its_own_address_and_errors(relayed, name, path):
    decisions = [None, Refusal("why")]
    one = relayed(
        lambda peer: peer.reply(200, b"{}"), lambda *_: decisions.pop(0) or Live(one.finish)
    )
    one.url = urlsplit(one.relay.address(BY_NAME[name]))
    assert one.ask(path)[1] == b"{}"
    assert one.over.wait(10)
    assert (one.sent[0].exchange.request.provider, one.sent[0].exchange.request.path) == (
        name,
        path,
    )
    assert json.loads(one.ask(path)[1])["error"]["message"] == "why"


def test_a_server_that_the_notebook_names_is_reached_at_its_own_address(relayed):
    one, other = relayed(lambda peer: peer.reply(500, b"")), Server(lambda p: p.reply(200, b'"it"'))
    named = other.url.replace("/v1", "/api/v1")
    one.url = urlsplit(one.relay.address_of(named + "/"))
    assert one.url.path.endswith("/api/v1")
    assert one.relay.address_of(named) == one.url.geturl() == one.relay.address_of(one.url.geturl())
    assert one.ask()[1] == b'"it"'
    assert one.over.wait(10)
    request = one.sent[0].exchange.request
    assert (request.provider, request.path) == (named, "/chat/completions")
    assert other.asked[0].path == "/api/v1/chat/completions"
    assert one.server.asked == []
    other.close()


@pytest.mark.parametrize("path", ["/v1/a b", "/ü/v1", "/%7Eme/v1", "/v1:beta;a=1/[1]"])
def test_the_path_of_a_server_may_have_any_sign_that_clients_write(relayed, path):
    one = relayed(lambda peer: peer.reply(200, b'"it"'))
    base = httpx.URL(f"http://{one.server.host}{path}")  # as an SDK's client has it
    answer = httpx.post(f"{one.relay.address_of(base)}/chat/completions", json={})
    assert (answer.status_code, answer.text) == (200, '"it"')
    assert one.server.asked[0].path == f"{base.raw_path.decode()}/chat/completions"
    text = f"http://{one.server.host}{path}"
    answer = httpx.post(f"{one.relay.address_of(text)}/chat/completions", json={})
    assert (answer.status_code, answer.text) == (200, '"it"')


@pytest.mark.parametrize(
    "address", [None, "ftp://a/v1", "nonsense", "https://a/v1?key=1", "https:///"]
)
def test_an_address_that_is_no_base_url_is_refused(relayed, address):
    with pytest.raises(UsageError):
        relayed(lambda peer: peer.reply(200, b"")).relay.address_of(address)


def test_no_request_names_a_server(relayed):
    one, other = relayed(lambda peer: peer.reply(200, b"{}")), Server(lambda p: p.reply(200, b"{}"))
    for place in (other.url, f"http/{other.host}/v1", "server3/v1", f"server3{other.url}"):
        one.url = urlsplit(f"{one.relay.base}/{place}")
        assert one.ask()[0].status == 404
    assert one.server.asked == other.asked == []
    other.close()


def test_without_a_tape_an_address_is_itself(relayed):
    assert tape.url("https://example.com/v1") == "https://example.com/v1"
    one = relayed(lambda peer: peer.reply(200, b""))
    assert tape.url("https://example.com/v1") == one.relay.address_of("https://example.com/v1")
    one.relay.stop()
    assert tape.url("https://example.com/v1") == "https://example.com/v1"


def test_an_exchange_has_ended_when_its_client_has_the_whole_answer(relayed, monkeypatch):
    flushed, flush = [], _Call._flush

    def watch(call):
        flushed.append((bytes(call._unwritten), bool(call._relay.endings)))
        flush(call)

    monkeypatch.setattr(_Call, "_flush", watch)
    assert relayed(lambda peer: peer.reply(200, b'{"a": 1}')).ask()[1] == b'{"a": 1}'
    assert [ended for data, ended in flushed if b'{"a": 1}' in data] == [True]


def test_a_stream_passes_chunk_by_chunk(relayed):
    gate = threading.Event()

    def behaviour(peer):
        peer.begin()
        peer.send("data: 1\n\n")
        gate.wait(10)
        peer.send("data: [DONE]\n\n")
        peer.end()

    one = relayed(behaviour)
    connection = one.connect()
    connection.request("POST", one.url.path + "/chat/completions", b"{}")
    answer = connection.getresponse()
    assert answer.read1(100) == b"data: 1\n\n"  # the server has not sent the rest
    gate.set()
    assert answer.read() == b"data: [DONE]\n\n"


def test_a_connection_serves_one_request_after_another(relayed):
    one = relayed(lambda peer: peer.reply(200, b"{}"))
    connection = one.connect()
    for _ in range(3):
        connection.request("POST", one.url.path + "/chat/completions", b"{}")
        assert connection.getresponse().read() == b"{}"


def test_a_compressed_answer_passes_as_it_is_and_is_recorded_plain(relayed):
    data = gzip.compress(b'{"a": 1}')
    one = relayed(lambda peer: peer.reply(200, data, content_encoding="gzip"))
    answer, body = one.ask()
    assert (body, answer.getheader("content-encoding")) == (data, "gzip")
    assert one.over.wait(10)
    assert one.sent[0].exchange.response.body == Body("json", {"a": 1})


@pytest.mark.parametrize("status", [302, 400, 429, 500])
def test_errors_and_redirects_pass_as_they_are(relayed, status):
    one = relayed(lambda peer: peer.reply(status, b'{"error": 1}', location="http://elsewhere/"))
    answer, body = one.ask()
    assert (answer.status, body, answer.getheader("location")) == (
        status,
        b'{"error": 1}',
        "http://elsewhere/",
    )


@pytest.mark.parametrize(
    "path",
    ["/", "/chat/completions", "/wrong/openai/v1/chat/completions", "/../v1/x", "//", "/%00"],
)
def test_a_path_without_the_secret_is_not_found(relayed, path):
    one = relayed(lambda peer: peer.reply(200, b"{}"))
    connection = one.connect()
    connection.request("GET", path)
    assert connection.getresponse().status == 404
    assert one.server.asked == []


@pytest.mark.parametrize("tail", ["/../../admin", "x/chat", "/a/../../b"])
def test_a_path_leads_to_no_other_place_of_the_server(relayed, tail):
    one = relayed(lambda peer: peer.reply(200, b"{}"))
    assert one.ask(tail)[0].status == 404
    assert one.server.asked == []


def test_a_client_that_goes_away_ends_the_upstream_request(relayed):
    gone = threading.Event()

    def behaviour(peer):
        peer.begin()
        peer.send(sse(*list(chat_chunks(["Hel", "lo"]))[:2], done=False).decode())
        peer.wait_gone()
        gone.set()

    one = relayed(behaviour)
    connection = one.connect()
    connection.request("POST", one.url.path + "/chat/completions", b"{}")
    connection.getresponse().read1(10)
    connection.sock.shutdown(socket.SHUT_RDWR)
    assert gone.wait(10)
    assert one.over.wait(10)
    assert not one.sent[0].exchange.is_replayable


@pytest.mark.parametrize("is_reset", [False, True])
def test_who_went_away_before_a_wait_for_endings_has_ended(relayed, is_reset):
    async def block_loop():
        time.sleep(0.3)

    def stall(peer):
        peer.begin()
        peer.send('data: {"n": 1}\n\n')
        peer.wait_gone()

    one = relayed(stall)
    connection = one.connect()
    connection.request("POST", one.url.path + "/chat/completions", b"{}")
    client = connection.sock
    assert connection.getresponse().readline() == b'data: {"n": 1}\n'
    Relay._BACKGROUND.submit(block_loop())
    if is_reset:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    one.relay.wait_for_endings()
    assert [sent.received.complete for sent in one.sent] == [False]


def test_an_answer_that_breaks_off_is_half_an_exchange(relayed):
    def behaviour(peer):
        peer.begin()
        peer.send("data: 1\n\n")

    one = relayed(behaviour)
    with pytest.raises(http.client.IncompleteRead):
        one.ask()
    assert one.over.wait(10)
    assert not one.sent[0].exchange.is_replayable


def test_what_came_before_an_answer_breaks_off_reaches_the_client(relayed):
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    one = relayed(lambda peer: peer.connection.sendall(head + b"9\r\ndata: 1\n\n\r\nno size\r\n"))
    connection = one.connect()
    connection.request("POST", one.url.path + "/chat/completions", b"{}")
    with pytest.raises(http.client.IncompleteRead) as broken:
        connection.getresponse().read()
    assert broken.value.partial == b"data: 1\n\n"


def test_the_error_of_a_server_that_is_away_names_its_address(relayed):
    one = relayed(lambda peer: peer.reply(200, b"{}"))
    one.server.close()
    answer, body = one.ask()
    assert (answer.status, answer.getheader("x-should-retry")) == (502, "true")
    error = json.loads(body)["error"]
    assert error["type"] == "server_error"
    assert f"no answer of {one.server.url}/chat/completions: " in error["message"]
    assert one.relay.base not in body.decode()
    assert one.over.wait(10)
    assert one.sent == [None]


def test_the_error_of_a_server_without_tls_is_not_sent_again(relayed):
    one = relayed(lambda peer: peer.reply(200, b"{}"))
    with socket.create_server(("127.0.0.1", 0)) as plain:

        def answer_plainly():
            client, _ = plain.accept()
            client.recv(9)
            client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            client.close()

        thread = threading.Thread(target=answer_plainly)
        thread.start()
        address = f"https://127.0.0.1:{plain.getsockname()[1]}/v1"
        one.url = urlsplit(one.relay.address_of(address))
        answer, body = one.ask()
        thread.join(10)
    assert (answer.status, answer.getheader("x-should-retry")) == (502, "false")
    assert f"no answer of {address}/chat/completions: " in json.loads(body)["error"]["message"]


def test_a_recorded_answer_and_a_refusal_reach_no_server(relayed):
    decisions = [
        Response(
            body=Body("stream", [{"data": {"a": 1}}]), headers={"content-type": "text/event-stream"}
        ),
        Refusal("why"),
    ]
    one = relayed(lambda peer: peer.reply(200, b"{}"), lambda *_: decisions.pop(0))
    assert one.ask()[1] == b'data: {"a":1}\n\n'
    answer, body = one.ask()
    assert (answer.status, answer.getheader("x-should-retry")) == (400, "false")
    assert json.loads(body)["error"]["message"] == "why"
    assert one.server.asked == []


def test_a_recorded_stream_comes_in_one_piece(relayed):
    """A client in Python spends more on each chunk than on what is in it."""
    body = Body("stream", [{"data": {"a": n}} for n in range(3)] + [{"text": "[DONE]"}])
    one = relayed(lambda peer: peer.reply(200, b"{}"), lambda *_: Response(body=body))
    answer, data = one.ask()
    assert data == b'data: {"a":0}\n\ndata: {"a":1}\n\ndata: {"a":2}\n\ndata: [DONE]\n\n'
    assert answer.getheader("content-length") == f"{len(data)}"
    assert answer.getheader("transfer-encoding") is None


def test_a_header_of_a_record_makes_no_other_line(relayed):
    decisions = [
        Response(headers={"x-request-id": "a→b"}),
        Response(headers={"x-a": "1\r\nx-b: 2"}),
    ]
    one = relayed(lambda peer: peer.reply(200, b"{}"), lambda *_: decisions.pop(0))
    assert one.ask()[0].getheader("x-request-id") == "a?b"
    with pytest.raises(http.client.RemoteDisconnected):
        one.ask()


def test_many_streams_at_once_do_not_mix(relayed):
    def behaviour(peer):
        peer.stream(*[f"data: {peer.body['n']}\n\n" for _ in range(20)])

    one = relayed(behaviour)
    answers = {}

    def ask(n):
        answers[n] = one.ask(body=json.dumps({"n": n}).encode())[1]

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert answers == {n: f"data: {n}\n\n".encode() * 20 for n in range(20)}


@pytest.mark.parametrize("limit", [0, 1])
def test_calls_at_once_wait_for_their_turn(relayed, limit):
    both = threading.Barrier(2)

    def behaviour(peer):
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(1 if limit else 20)
        peer.reply(200, b"{}")

    one = relayed(behaviour)
    one.relay.limit(0, limit)
    threads = [threading.Thread(target=one.ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(one.server.asked) == 2
    assert both.broken == bool(limit)


def test_a_very_large_answer_passes_and_is_known_by_its_digest(relayed, monkeypatch):
    monkeypatch.setattr("agent_nb.tape.live_exchange.LARGEST_BODY", 1000)
    one = relayed(lambda peer: peer.reply(200, b"x" * 5000))
    assert one.ask()[1] == b"x" * 5000
    assert one.over.wait(10)
    body = one.sent[0].exchange.response.body
    assert (body.kind, body.value["bytes"]) == ("digest", 5000)


@pytest.mark.parametrize("chunked", [False, True], ids=["of a known length", "in chunks"])
def test_a_too_large_request_is_refused_and_never_kept(relayed, monkeypatch, chunked):
    monkeypatch.setattr("agent_nb.tape.relay._LARGEST_REQUEST", 1 << 20)
    one = relayed(lambda peer: peer.reply(200, b"{}"))
    piece = b"x" * (1 << 16)
    body = (piece for _ in range(1000))
    length = {} if chunked else {"content-length": str(1000 * len(piece))}
    connection = one.connect()
    tracemalloc.start()
    try:
        connection.request("POST", one.url.path + "/files", body, length, encode_chunked=chunked)
        answer = connection.getresponse()
        message = json.loads(answer.read())["error"]["message"]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (answer.status, answer.getheader("x-should-retry")) == (413, "false")
    assert "requests of up to 256 MB" in message
    assert one.server.asked == []
    assert peak < 20 << 20


def test_a_client_that_waits_to_send_a_too_large_request_need_not(relayed):
    one = relayed(lambda peer: peer.reply(200, b"{}"))
    head = f"POST {one.url.path}/files HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: {2 << 30}\r\n\r\n"
    with socket.create_connection((one.url.hostname, one.url.port), 10) as raw:
        raw.sendall(head.encode())
        assert raw.recv(100).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize("user", ["", "user:password@"], ids=["our transport", "httpx"])
def test_headers_pass_with_their_bytes(relayed, user):
    one = relayed(lambda peer: peer.reply(200, b"{}"))
    one.url = urlsplit(one.relay.address_of(f"http://{user}{one.server.host}/v1"))
    with socket.create_connection((one.url.hostname, one.url.port), 10) as raw:
        raw.sendall(
            f"POST {one.url.path}/x HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\nx-title: café\r\n\r\n{{}}".encode()
        )
        assert raw.recv(100).startswith(b"HTTP/1.1 200")
    assert one.server.asked[0].headers["x-title"].encode("latin-1").decode() == "café"


def test_a_malformed_request_ends_only_its_connection(relayed):
    one = relayed(lambda peer: peer.reply(200, b"{}"))
    with socket.create_connection((one.url.hostname, one.url.port), 10) as raw:
        raw.sendall(b"\x00\x01 nonsense\r\n\r\n")
        assert raw.recv(100) == b""
    assert one.ask()[1] == b"{}"


def test_repeated_headers_stay_apart_and_those_for_the_next_host_stay_here(relayed):
    def behaviour(peer):
        lines = [
            "set-cookie: a=1; Path=/",
            "set-cookie: b=2",
            "connection: x-hop, close",
            "x-hop: 1",
        ]
        head = "\r\n".join(
            ["HTTP/1.1 200 OK", *lines, "x-name: caf\xe9", "content-length: 2", "", ""]
        )
        peer.connection.sendall(head.encode("latin-1") + b"{}")

    one = relayed(behaviour)
    answer, _ = one.ask(connection="x-mine", **{"x-mine": "1"})
    assert answer.headers.get_all("set-cookie") == ["a=1; Path=/", "b=2"]
    assert answer.getheader("x-name") == "caf\xe9"
    assert answer.getheader("x-hop") is None
    assert "x-mine" not in one.server.asked[0].headers


def test_a_post_without_a_body_says_so(relayed):
    one = relayed(lambda peer: peer.reply(200, b"{}"))
    assert one.ask(body=b"")[1] == b"{}"
    assert one.server.asked[0].headers["content-length"] == "0"


def test_a_target_that_is_no_url_is_not_found(relayed):
    one = relayed(lambda peer: peer.reply(200, b"{}"))
    with socket.create_connection((one.url.hostname, one.url.port), 10) as raw:
        raw.sendall(b"GET http://[ HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        assert raw.recv(100).startswith(b"HTTP/1.1 404")


def test_a_client_that_has_sent_its_next_request_may_go_away_too(relayed):
    gone, asked = threading.Event(), threading.Event()

    def behaviour(peer):
        asked.set()
        peer.wait_gone()
        gone.set()

    one = relayed(behaviour)
    head = f"POST {one.url.path}/x HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{{}}".encode()
    with socket.create_connection((one.url.hostname, one.url.port), 10) as raw:
        raw.sendall(head)
        assert asked.wait(10)
        raw.sendall(head)
        time.sleep(0.2)  # the relay has read it
    assert gone.wait(5)


def test_requests_that_come_at_once_are_answered_in_turn(relayed):
    one = relayed(lambda peer: peer.reply(200, json.dumps(peer.path.encode().decode()[-1:])))
    heads = [f"GET {one.url.path}/{n} HTTP/1.1\r\nhost: a\r\n" for n in (1, 2)]
    with socket.create_connection((one.url.hostname, one.url.port), 10) as raw:
        raw.sendall("\r\n".join([*heads, ""]).encode())
        raw.settimeout(10)
        data = b""
        while data.count(b"200 ") < 2 or not data.endswith(b'"2"'):
            data += raw.recv(1000)
    assert data.index(b'"1"') < data.index(b'"2"')


def test_a_client_that_goes_away_before_the_decision_leaves_no_open_call(relayed):
    deciding, go_on = threading.Event(), threading.Event()

    def decide(*_):
        deciding.set()
        go_on.wait(10)
        return Live(one.finish)

    one = relayed(lambda peer: peer.reply(200, b"{}"), decide)
    connection = one.connect()
    connection.request("POST", one.url.path + "/chat/completions", b"{}")
    assert deciding.wait(10)
    connection.sock.shutdown(socket.SHUT_RDWR)
    time.sleep(0.2)  # the relay has seen it
    go_on.set()
    assert one.over.wait(10)
    assert one.sent == [None]
    assert one.server.asked == []


def test_a_fault_of_the_decision_is_an_error_of_the_provider(relayed):
    def decide(*_):
        raise RuntimeError("no rules")

    answer, body = relayed(lambda peer: peer.reply(200, b"{}"), decide).ask()
    assert answer.status == 400
    assert "no rules" in json.loads(body)["error"]["message"]


def test_a_stopped_relay_listens_no_more(relayed):
    one = relayed(lambda peer: time.sleep(0))
    one.relay.stop()
    with pytest.raises(OSError, match="refused"):
        one.connect().connect()


def test_an_answer_that_is_still_read_holds_up_no_other_stream(relayed):
    reading, go_on = threading.Event(), threading.Event()

    def finish(sent):
        reading.set()
        go_on.wait(10)

    one = relayed(
        lambda peer: peer.reply(200, "{}"),
        lambda request, headers: Live(finish if request.path == "/first" else lambda sent: None),
    )
    assert one.ask("/first")[1] == b"{}"
    assert reading.wait(10)
    assert one.ask("/second")[1] == b"{}"
    go_on.set()


def test_a_connection_serves_its_next_request_while_an_answer_is_read(relayed):
    answered, in_time = threading.Event(), []

    def finish(sent):
        in_time.append(answered.wait(5))

    one = relayed(lambda peer: peer.reply(200, "{}"), lambda *_: Live(finish))
    connection = one.connect()
    for _ in range(2):
        connection.request("POST", one.url.path + "/chat/completions", b"{}")
        assert connection.getresponse().read() == b"{}"
    answered.set()
    one.relay.stop()
    assert in_time == [True, True]


def test_a_relay_that_stops_waits_until_the_answers_are_read(relayed):
    reading, go_on, read = threading.Event(), threading.Event(), []

    def finish(sent):
        reading.set()
        go_on.wait(10)
        read.append(sent)

    one = relayed(lambda peer: peer.reply(200, "{}"), lambda *_: Live(finish))
    one.ask()
    assert reading.wait(10)
    timer = threading.Timer(0.2, go_on.set)
    timer.start()
    one.relay.stop()
    assert len(read) == 1


def test_a_client_in_a_hurry_waits_for_its_answers_to_be_read(relayed, monkeypatch):
    monkeypatch.setattr("agent_nb.tape.relay._MOST_ENDINGS", 3)
    unread, most, ahead = [], [], threading.Event()

    def finish(sent):
        ahead.wait(10)  # until the client has no answer read and goes on
        time.sleep(0.02)
        unread.pop()

    def decide(*_):
        unread.append(1)
        most.append(len(unread))
        if len(unread) == 3:
            ahead.set()
        return Live(finish)

    one = relayed(lambda peer: peer.reply(200, "{}"), decide)
    connection = one.connect()
    for _ in range(12):
        connection.request("POST", one.url.path + "/chat/completions", b"{}")
        assert connection.getresponse().read() == b"{}"
    assert 1 < max(most) <= 3


CROWD = """
import asyncio, resource, sys
count, port = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 4096))
from agent_nb.tape.providers import BY_NAME
from agent_nb.tape.relay import Live, Relay
relay = Relay(dict.fromkeys(BY_NAME, f"http://127.0.0.1:{port}/v1"), lambda *_: Live(lambda sent: None))
relay.start()
async def ask():
    reader, writer = await asyncio.open_connection("127.0.0.1", int(relay.proxy.rpartition(":")[2]))
    target = relay.address(BY_NAME["openai"]).removeprefix(relay.proxy)
    writer.write(f"GET {target}/models HTTP/1.0\\r\\n\\r\\n".encode())
    return (await reader.read())[:12]
async def main():
    print({await each for each in [asyncio.create_task(ask()) for _ in range(count)]})
asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit")
def test_hundreds_of_calls_at_once_stay_within_the_limit_of_open_files():
    async def serve(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(2)  # until all are there
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()

    async def main():
        server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=2048)
        port = server.sockets[0].getsockname()[1]
        command = [sys.executable, "-c", CROWD, "400", str(port)]
        async with server:
            return await asyncio.to_thread(
                subprocess.run, command, capture_output=True, text=True, cwd=CHECKOUT, timeout=60
            )

    assert asyncio.run(main()).stdout == "{b'HTTP/1.1 200'}\n"
