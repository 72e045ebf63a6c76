"""The way of a request to a server without a proxy, against servers that misbehave."""

import asyncio
import gc
import socket
import time
import warnings
from contextlib import suppress

import h11
import httpx
import pytest
from helpers.ports import take_port
from helpers.tcp_server import listen
from hypothesis import given
from hypothesis import strategies as st

from agent_nb.errors import ModelError
from agent_nb.models.config import Timeouts
from agent_nb.models.http import direct, network, transport
from agent_nb.models.http.client import Http
from agent_nb.models.http.direct import Direct

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


class Lines:
    """A server that answers each request of a connection with the next bytes; None closes."""

    def __init__(self, *answers):
        self.answers, self.asked, self.connections = list(answers), [], 0

    async def __aenter__(self):
        self.server = listen(self.talk)
        self.port = await self.server.__aenter__()
        self.url = httpx.URL(f"http://127.0.0.1:{self.port}/v1/x?y=%C3%A4")
        return self

    async def __aexit__(self, *_):
        await self.server.__aexit__(None, None, None)

    async def talk(self, reader, writer):
        self.connections += 1
        try:
            while self.answers:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
                self.asked.append(head + await reader.readexactly(size))
                answer = self.answers.pop(0)
                if answer is None:
                    break
                writer.write(answer)
                if b"connection: close" in answer.lower():
                    break
            else:
                await reader.read()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def talk(*answers, requests=1, body=b"{}", between=None):
    """Ask so many times over one way; return the server, the statuses and the bodies."""

    async def main():
        async with Lines(*answers) as server:
            one, said = Direct("127.0.0.1", server.port, None, 5.0), []
            try:
                for _ in range(requests):
                    answer = await one.send("POST", server.url, {"x-a": "1"}, body)
                    said.append((answer.status_code, b"".join([b async for b in answer.stream])))
                    await answer.aclose()
                    if between is not None:
                        await between(server)
            finally:
                await one.aclose()
                await asyncio.sleep(0)
        return server, said

    return asyncio.run(main())


def test_a_request_is_written_as_http_says():
    server, said = talk(OK)
    assert said == [(200, b"ok")]
    head, _, body = server.asked[0].partition(b"\r\n\r\n")
    first, *lines = head.lower().split(b"\r\n")
    assert (first, body) == (b"post /v1/x?y=%c3%a4 http/1.1", b"{}")
    assert {f"host: 127.0.0.1:{server.port}".encode(), b"x-a: 1", b"content-length: 2"} == {*lines}


def test_the_connection_is_kept_while_answers_are_read_to_their_end():
    chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"
    server, said = talk(OK, chunked, OK, requests=3)
    assert said == [(200, b"ok"), (200, b"abc"), (200, b"ok")]
    assert server.connections == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nconnection: close\r\n\r\nok",
    ],
)
def test_a_connection_that_the_server_ends_is_opened_anew(answer):
    server, said = talk(answer, answer, requests=2)
    assert (said, server.connections) == ([(200, b"ok")] * 2, 2)


def test_a_connection_that_was_free_for_long_is_opened_anew(monkeypatch):
    monkeypatch.setattr(direct, "EXPIRY", -1.0)
    server, said = talk(OK, OK, requests=2)
    assert (said, server.connections) == ([(200, b"ok")] * 2, 2)


def test_a_connection_that_takes_no_request_is_opened_anew(monkeypatch):
    write = network.TcpStream.write

    async def fail(*_):
        raise httpx.WriteTimeout("full")

    async def main():
        async with Lines(OK, OK) as server:
            one = Direct("127.0.0.1", server.port, None, 5.0)
            for step in (write, fail, write):
                monkeypatch.setattr(network.TcpStream, "write", step)
                with suppress(httpx.WriteTimeout):
                    answer = await one.send("POST", server.url, {}, b"{}")
                    assert [piece async for piece in answer.stream] == [b"ok"]
                    await answer.aclose()
            await one.aclose()
            await asyncio.sleep(0)
            return len(server.asked), server.connections

    assert asyncio.run(main()) == (2, 2)


def test_an_answer_that_is_left_closes_its_connection():
    async def main():
        async with Lines(OK, OK) as server:
            one = Direct("127.0.0.1", server.port, None, 5.0)
            for _ in range(2):
                await (await one.send("POST", server.url, {}, b"")).aclose()
            await one.aclose()
            await asyncio.sleep(0)
            return server.connections

    assert asyncio.run(main()) == 2


def test_a_word_in_between_is_skipped():
    _, said = talk(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + OK)
    assert said == [(200, b"ok")]


def test_headers_of_one_name_are_joined():
    async def main():
        async with Lines(OK.replace(b"\r\n\r\n", b"\r\nA: 1\r\na: \xe4\r\n\r\n")) as server:
            one = Direct("127.0.0.1", server.port, None, 5.0)
            answer = await one.send("GET", server.url, {}, b"")
            await one.aclose()
            await asyncio.sleep(0)
            return answer.headers

    assert asyncio.run(main())["a"] == "1, ä"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (None, httpx.RemoteProtocolError),
        (b"HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n", httpx.RemoteProtocolError),
        (b"nonsense\r\n\r\n", httpx.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 300_000, httpx.RemoteProtocolError),
        (
            b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 9\r\n\r\nok",
            httpx.RemoteProtocolError,
        ),
        (
            b"HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
            httpx.RemoteProtocolError,
        ),
    ],
)
def test_what_is_no_answer_is_an_error_of_the_protocol(answer, kind):
    with pytest.raises(kind):
        talk(answer)


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("POST", {"x": "a\nb"}),
        ("POST", {"x": "a\r\nhost: b"}),
        ("POST", {"x": "a "}),
        ("POST", {"x": "ä"}),
        ("POST", {"x y": "a"}),
        ("POST", {"x:": "a"}),
        ("POST", {"": "a"}),
        ("PO ST", {}),
        ("POST /", {}),
    ],
)
def test_what_cannot_be_sent_is_an_error_before_anything_is_sent(method, headers):
    asked = []

    async def main():
        async with Lines(OK) as server:
            one = Direct("127.0.0.1", server.port, None, 5.0)
            try:
                await one.send(method, server.url, headers, b"")
            finally:
                await one.aclose()
                await asyncio.sleep(0)
                asked.extend(server.asked)

    with pytest.raises(httpx.LocalProtocolError):
        asyncio.run(main())
    assert asked == []


def read_request(data):
    """Return a request as h11 reads it: method, target, headers and body."""
    http = h11.Connection(h11.SERVER)
    http.receive_data(data)
    request, body = http.next_event(), http.next_event()
    assert isinstance(http.next_event() if isinstance(body, h11.Data) else body, h11.EndOfMessage)
    data = bytes(body.data) if isinstance(body, h11.Data) else b""
    return request.method, request.target, dict(request.headers), data


URL = httpx.URL("http://h/v1/x?y=%C3%A4")
FIELDS = st.dictionaries(
    st.text(max_size=4) | st.sampled_from(["Host", "x-a"]), st.text(max_size=6)
)


@given(FIELDS, st.binary(max_size=3), st.sampled_from(["GET", "POST"]))
def test_a_request_is_read_as_it_was_given_or_not_sent(headers, body, method):
    try:
        head = direct._write_head(method, URL, headers, len(body))
    except httpx.LocalProtocolError:
        return
    given_fields = {n.lower().encode(): v.encode() for n, v in headers.items()}
    length = {b"content-length": b"%d" % len(body)} if body or method == "POST" else {}
    fields = {b"host": b"h", **given_fields, **length}
    assert read_request(head + body) == (method.encode(), URL.raw_path, fields, body)


def test_only_the_connection_itself_decides_how_a_request_ends():
    headers = {"Transfer-Encoding": "chunked", "Content-Length": "9", "Connection": "close"}
    _, _, fields, body = read_request(direct._write_head("POST", URL, headers, 2) + b"ok")
    assert (fields, body) == ({b"host": b"h", b"content-length": b"2"}, b"ok")


def test_a_refusal_is_read_though_the_body_was_not_taken_whole():
    async def refuse(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 No\r\ncontent-length: 3\r\n\r\nbig")

    async def main():
        async with listen(refuse) as port:
            one = Direct("127.0.0.1", port, None, 5.0)
            answer = await one.send(
                "POST", httpx.URL(f"http://127.0.0.1:{port}/"), {}, b"x" * 10**5
            )
            said = answer.status_code
            await one.aclose()
            return said

    assert asyncio.run(main()) == 413


def test_a_host_with_several_addresses_says_why_none_of_them_answers(monkeypatch):
    port = take_port()

    async def both(*_, **__):
        return [
            (socket.AF_INET, 1, 6, "", ("127.0.0.1", port)),
            (socket.AF_INET, 1, 6, "", ("127.0.0.2", port)),
        ]

    async def main():
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "getaddrinfo", both)
        http = Http(f"http://localhost:{port}/v1", Timeouts(connect=5))
        async with http.post("/x", b"{}", {}):
            pass

    with pytest.raises(ModelError, match="could not be reached: Connection refused"):
        asyncio.run(main())


def test_an_event_loop_of_another_package_is_enough(monkeypatch):
    class Other(asyncio.SelectorEventLoop):
        async def create_connection(self, factory, host=None, port=None, *, ssl=None, **other):
            assert set(other) <= {"server_hostname"}
            return await super().create_connection(factory, host, port, ssl=ssl, **other)

    async def main():
        async with Lines(OK) as server:
            one = Direct("127.0.0.1", server.port, None, 5.0)
            answer = await one.send("GET", server.url, {}, b"")
            await one.aclose()
            await asyncio.sleep(0)
            return answer.status_code

    monkeypatch.setattr(network.asyncio, "BaseEventLoop", int)
    with asyncio.Runner(loop_factory=Other) as runner:
        assert runner.run(main()) == 200


def test_a_model_closed_while_a_request_connects_leaves_no_connection(monkeypatch):
    opened = []

    async def slow(*where):
        stream = await open_stream(*where)
        opened.append(stream)
        await asyncio.sleep(0.05)
        return stream

    open_stream = network.open_stream
    monkeypatch.setattr(network, "open_stream", slow)

    async def main():
        async with Lines(OK) as server:
            one = Direct("127.0.0.1", server.port, None, 5.0)
            sending = asyncio.create_task(one.send("GET", server.url, {}, b""))
            while not opened:
                await asyncio.sleep(0.01)
            await one.aclose()
            with pytest.raises(httpx.ConnectError, match="the model was closed"):
                await sending
            assert opened[0]._transport.get_extra_info("socket").fileno() == -1
            assert server.asked == []

    asyncio.run(main())


@pytest.mark.parametrize("host", ["127.0.0.1", "lab.example"])
@pytest.mark.parametrize("leave", ["timeout", "cancel"])
def test_a_caller_that_leaves_while_the_loop_is_busy_leaves_no_open_socket(host, leave):
    limit = 0.005

    async def connect(port, turns):
        """Leave after the loop was busy for the limit, `turns` steps after the start."""
        opening = asyncio.create_task(network.open_stream(host, port, None, limit))
        for _ in range(turns):
            await asyncio.sleep(0)
        time.sleep(limit)
        if leave == "cancel":
            opening.cancel()
        with suppress(httpx.ConnectTimeout, asyncio.CancelledError):
            await (await opening).aclose()

    async def main():
        loop = asyncio.get_running_loop()
        async with Lines(OK) as server:
            address = socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", server.port)
            loop.getaddrinfo = lambda *_, **__: asyncio.sleep(0, [address])
            for turns in range(20):
                await connect(server.port, turns)
            await asyncio.sleep(0.05)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(main())
        gc.collect()
    assert [str(each.message) for each in caught if "unclosed" in str(each.message)] == []


def test_a_proxy_or_a_password_goes_the_way_of_httpx(monkeypatch):
    def kind(url, *, loopback=False):
        return type(transport.make_transport(httpx.URL(url), None, 5.0, loopback=loopback))

    assert kind("http://lab.example/v1") is Direct
    assert kind("http://me:word@lab.example/v1") is transport.Proxied
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    assert kind("http://lab.example/v1") is transport.Proxied
    assert kind("http://127.0.0.1/v1", loopback=True) is Direct


def test_a_password_never_leads_loopback_through_a_proxy(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "")

    async def ask(server):
        url = httpx.URL(f"http://me:word@127.0.0.1:{server.port}/v1")
        way = transport.make_transport(url, None, 5.0, loopback=True)
        response = await way.send("GET", url, {}, b"")
        status = response.status_code
        await response.aclose()
        await way.aclose()
        return status

    async def main():
        async with Lines(OK) as server:
            return await ask(server)

    assert asyncio.run(main()) == 200
