"""No request gets the answer to another one, whatever a server sends."""

import datetime
import ipaddress
import json
import ssl

import anyio
import pytest
from helpers.meddling_server import (
    REFUSAL,
    STRAY,
    Meddler,
    later,
    one_too_many,
    one_too_many_and_close,
    reply_of,
)
from helpers.tcp_server import listen
from helpers.waiting import wait

from agent_nb import Agent
from agent_nb.external.connect import Target, connect, send_request
from agent_nb.models.http import network, request_queue, retry
from agent_nb.models.http.client import Http
from agent_nb.models.openai import provider

ROWS = [f"row {number}" for number in range(300)]
AT_ONCE = pytest.mark.parametrize("concurrency", [1, 10, 100])


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    for module in (retry, request_queue):
        monkeypatch.setattr(module, "BUSY_DELAYS", (0.001,) * 7)
    monkeypatch.setattr(retry, "AWAY_DELAYS", (0.001,) * 3)


def mapped(behave, concurrency):
    """Map all rows; return the server and the rows of the answer."""

    async def main():
        server = Meddler(behave)
        async with server.serve() as port:
            agent = Agent(provider("m", base_url=f"http://127.0.0.1:{port}/v1"), secrets={})
            rows = await agent.map(
                ROWS, "{{ text }}", concurrency=concurrency, view=None, store=False
            )
            await agent.aclose()
        return server, rows

    return wait(main, 240)


@pytest.mark.few(1)
@AT_ONCE
@pytest.mark.parametrize("behave", [one_too_many, one_too_many_and_close])
def test_no_row_of_a_map_gets_an_answer_too_many(behave, concurrency):
    server, rows = mapped(behave, concurrency)
    assert [row["answer"] for row in rows] == [f"so {text}" for text in ROWS]
    assert server.asked == dict.fromkeys(ROWS, 1)
    assert server.connections == len(ROWS)


@pytest.mark.few(1)
@AT_ONCE
def test_no_row_gets_anothers_answer_where_heads_and_bodies_are_cut(concurrency):
    cuts = (0, 20, reply_of("x").index(b"data:") + 9, len(reply_of("so row 1")) - 30, None)
    seen = set()

    async def behave(peer, prompt, answer):
        cut = cuts[int(prompt[4:]) % len(cuts)] if prompt not in seen else None
        seen.add(prompt)
        peer.write(answer[:cut] if cut is not None else answer)
        return cut is None

    server, rows = mapped(behave, concurrency)
    for row in rows:
        assert row["answer"] in (f"so {row['text']}", "") or row["_status"] == "error"
    assert sum(row["_status"] == "ok" for row in rows) >= 4 * len(ROWS) / 5
    assert len(rows) == len(server.asked) == len(ROWS)


@pytest.mark.parametrize(
    "behave",
    [
        one_too_many,
        one_too_many_and_close,
        later(STRAY, goes_on=True),
        later(STRAY),
        later(REFUSAL % 400),
        later(REFUSAL % 408),
        later(b""),
        later(b"\r\n", goes_on=True),
    ],
    ids=["packet", "packet+close", "stray", "stray+close", "400", "408", "end", "blank"],
)
def test_what_arrives_on_an_idle_connection_is_no_answer(behave):
    prompts = [f"run {number}" for number in range(6)]

    async def main():
        server = Meddler(behave)
        async with server.serve() as port:
            agent = Agent(provider("m", base_url=f"http://127.0.0.1:{port}/v1"), secrets={})
            runs = []
            for prompt in prompts:
                server.quiet.clear()
                runs.append(await agent(prompt))
                await server.quiet.wait()
            await agent.aclose()
        return server, runs

    server, runs = wait(main)
    assert [(run.status, run.answer) for run in runs] == [("ok", f"so {p}") for p in prompts]
    assert server.asked == dict.fromkeys(prompts, 1)
    assert server.connections == len(prompts)


def exchanges(behave, count, *, between=None, **options):
    """Ask so many times over one way; return the server and the bodies."""

    async def main():
        server, bodies = Meddler(behave), []
        async with server.serve(**options) as port:
            http = Http(f"{'https' if 'ssl' in options else 'http'}://127.0.0.1:{port}/v1")
            for number in range(count):
                body = json.dumps({"messages": [{"content": f"{number}"}]}).encode()
                async with http.post("/x", body, {}) as reply:
                    bodies.append(await reply.read_whole())
                if between is not None:
                    await between(server, http)
            await http.aclose()
        return server, bodies

    server, bodies = wait(main, 60)
    for number, body in enumerate(bodies):
        assert f'"so {number}"'.encode() in body
    return server, bodies


async def in_order(peer, prompt, answer):
    peer.write(answer)
    return True


def test_bytes_that_the_event_loop_has_not_seen_yet_count_too(monkeypatch):
    strays = []

    async def behave(peer, prompt, answer):
        strays.append(peer)
        peer.write(answer)
        return True

    async def between(server, http):
        # sent within this step of the event loop, so only the system has it at the next request
        strays.pop().write(STRAY)

    server, _ = exchanges(behave, 3, between=between)
    assert server.connections == 3


async def _quiet(server, http):
    await server.quiet.wait()
    server.quiet.clear()


def test_a_connection_with_nothing_behind_its_answers_is_kept():
    assert exchanges(in_order, 5)[0].connections == 1


@pytest.mark.parametrize("chunk", [b"HTTP/1.1 103 Early\r\na: b\r\n\r\n", b"HTTP/1.1 1", b""])
def test_words_in_between_are_no_answer(chunk):
    assert not network._is_answer(chunk)
    assert not network._is_answer(b"HTTP/1.1 100 Continue\r\n\r\n" + chunk)
    assert network._is_answer(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 413 No\r\n")
    assert network._is_answer(b"nonsense\r\n\r\n")


REFUSED = b'{"error": {"message": "too large here"}}'
TOO_LARGE = b"HTTP/1.1 413 No\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (
    len(REFUSED),
    REFUSED,
)


async def large(size, talk, count, **options):
    """Post a body of `size` bytes so often; return the statuses and what the server said."""
    heard = []
    async with listen(talk, **options) as port:
        for _ in range(count):
            http = Http(f"{'https' if 'ssl' in options else 'http'}://127.0.0.1:{port}/v1")
            async with http.post("/x", b"x" * size, {}) as reply:
                heard.append((reply.status, await reply.read_beginning()))
            await http.aclose()
    return heard


@pytest.mark.parametrize("size", [200_000, 30_000_000])
@pytest.mark.parametrize("closes", [True, False])
@pytest.mark.parametrize("secure", [False, True])
def test_the_refusal_of_a_large_body_is_read(size, closes, secure, tls):
    async def refuse(reader, writer):
        try:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(TOO_LARGE)
            await writer.drain()
        except ConnectionError:
            pass
        if closes:
            writer.close()

    options = {"ssl": tls} if secure else {}
    assert wait(lambda: large(size, refuse, 5, **options), 100) == [(413, REFUSED)] * 5


def test_a_word_in_between_does_not_stop_a_large_body():
    async def talk(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        writer.write(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n")
        await writer.drain()
        size = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
        await reader.readexactly(size)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n%08d" % size)
        writer.close()

    assert wait(lambda: large(3_000_000, talk, 2)) == [(200, b"03000000")] * 2


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """Make a certificate for 127.0.0.1; return the file with its key."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "lab")])
    now = datetime.datetime.now(datetime.UTC)
    one = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=9))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "one.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    file.write_bytes(secret + one.public_bytes(serialization.Encoding.PEM))
    return file


@pytest.fixture
def tls(certificate, monkeypatch):
    """A server's TLS context that clients of this test trust."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    return context


def test_a_connection_with_tls_is_kept_and_left_like_any_other(tls):
    assert exchanges(in_order, 4, ssl=tls)[0].connections == 1
    assert exchanges(one_too_many, 4, ssl=tls)[0].connections == 4
    assert exchanges(later(STRAY, goes_on=True), 3, between=_quiet, ssl=tls)[0].connections == 3


def test_an_answer_larger_than_what_is_held_is_whole():
    async def behave(peer, prompt, answer):
        body = f'"so {prompt}"'.encode() + b"x" * 3_000_000
        peer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        return True

    server, bodies = exchanges(behave, 2)
    assert [len(body) for body in bodies] == [3_000_006] * 2
    assert server.connections == 1


def test_behind_a_proxy_no_connection_is_kept(monkeypatch):
    async def main():
        server = Meddler(one_too_many)
        async with server.serve() as port:
            monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
            http, bodies = Http("http://lab.example/v1"), []
            for number in range(3):
                body = json.dumps({"messages": [{"content": f"{number}"}]}).encode()
                async with http.post("/x", body, {}) as reply:
                    bodies.append(await reply.read_whole())
            await http.aclose()
        return server.connections, bodies

    connections, bodies = wait(main)
    assert connections == 3
    assert all(f'"so {n}"'.encode() in body for n, body in enumerate(bodies))


def test_a_followed_run_keeps_no_connection():
    async def main():
        server = Meddler(one_too_many)
        async with server.serve() as port, connect(Target(f"http://127.0.0.1:{port}")) as client:
            url = f"http://127.0.0.1:{port}/runs"
            payloads = [{"messages": [{"content": f"{number}"}]} for number in range(3)]
            answers = [await send_request(client, "POST", url, payload) for payload in payloads]
        return server.connections, answers

    connections, answers = wait(main)
    assert connections == 3
    assert all(f'"so {n}"'.encode() in body for n, (_, body) in enumerate(answers))


def test_a_server_of_tools_is_asked_over_a_connection_of_its_own(monkeypatch):
    from contextlib import asynccontextmanager

    streamable_http = pytest.importorskip("mcp.client.streamable_http")
    from agent_nb.tools.mcp.server import Server
    from agent_nb.tools.mcp.transport import Link, _connect_http

    @asynccontextmanager
    async def captured(url, http_client):
        yield http_client

    async def main():
        server = Meddler(one_too_many)
        async with server.serve() as port:
            url = f"http://127.0.0.1:{port}/mcp"
            async with _connect_http(Server(name="lab", url=url), Link()) as client:
                payloads = [{"messages": [{"content": f"{number}"}]} for number in range(3)]
                answers = [(await client.post(url, json=payload)).content for payload in payloads]
        return server.connections, answers

    monkeypatch.setattr(streamable_http, "streamable_http_client", captured)
    connections, answers = wait(main)
    assert connections == 3
    assert all(f'"so {n}"'.encode() in body for n, body in enumerate(answers))


def test_a_request_that_is_given_up_leaves_no_answer_for_the_next():
    release = None

    async def behave(peer, prompt, answer):
        if prompt == "0":
            await release.wait()
        peer.write(answer)
        return True

    async def main():
        nonlocal release
        release, server = anyio.Event(), Meddler(behave)
        async with server.serve() as port:
            http = Http(f"http://127.0.0.1:{port}/v1")
            body = json.dumps({"messages": [{"content": "0"}]}).encode()
            with anyio.move_on_after(0.05):
                async with http.post("/x", body, {}):
                    pass
            release.set()
            body = json.dumps({"messages": [{"content": "1"}]}).encode()
            async with http.post("/x", body, {}) as reply:
                answer = await reply.read_whole()
            await http.aclose()
        return server.connections, answer

    connections, answer = wait(main)
    assert connections == 2
    assert b'"so 1"' in answer
