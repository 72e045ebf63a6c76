"""The HTTP edge, against a server on a loopback port that misbehaves."""

import gzip
import json
import ssl
import subprocess
import sys
import threading
import zlib
from contextlib import aclosing

import anyio
import httpx
import pytest
from helpers.paths import CHECKOUT

from agent_nb import Agent
from agent_nb.errors import ModelError, UsageError
from agent_nb.models import parts
from agent_nb.models.config import Timeouts
from agent_nb.models.http import client
from agent_nb.models.http.client import check_url, is_loopback
from agent_nb.models.http.network_errors import make_connection_error
from agent_nb.models.openai import provider

DONE = "data: [DONE]\n\n"
SHORT = Timeouts(connect=1, first_byte=0.3, idle=0.3)


def chunk(**delta):
    return {
        "id": "r1",
        "model": "m-1",
        "choices": [{"index": 0, "delta": delta, "finish_reason": None}],
    }


def finish(reason="stop"):
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}


def model_at(server, **options):
    return provider("m", base_url=server.url, **options)


def test_an_answer_streams_in(serve, collect):
    server = serve(
        lambda peer: peer.stream(chunk(content="Hel"), chunk(content="lo"), finish(), DONE)
    )
    got = collect(model_at(server))
    assert (got.text, got.finish) == ("Hello", "stop")
    assert got.of(parts.Head) == [parts.Head(200, "m-1", "r1")]
    assert (server.asked[0].path, server.asked[0].body["stream"]) == ("/v1/chat/completions", True)


def test_parts_arrive_before_the_answer_ends(serve, request_of):
    seen = threading.Event()

    def behaviour(peer):
        peer.begin()
        peer.send('data: {"choices":[{"delta":{"content":"first"}}]}\n\n')
        assert seen.wait(10)
        peer.send(DONE)
        peer.end()

    async def main():
        model = model_at(serve(behaviour))
        texts = []
        async for batch in model.stream(request_of("hi")):
            texts += [p.text for p in batch if isinstance(p, parts.Text)]
            seen.set()
        await model.aclose()
        return texts

    assert anyio.run(main) == ["first"]


def test_the_connection_is_used_again(serve, request_of):
    def twice(peer):
        peer.stream(chunk(content="one"), finish(), DONE, connection="keep-alive")
        again = type(peer)(peer.connection)
        again.stream(chunk(content="two"), finish(), DONE)

    async def main():
        model = model_at(serve(twice, lambda peer: peer.reply(500, "a new connection")))
        texts = []
        for _ in range(2):
            async for batch in model.stream(request_of("hi")):
                texts += [p.text for p in batch if isinstance(p, parts.Text)]
        await model.aclose()
        return texts

    assert anyio.run(main) == ["one", "two"]


def test_one_model_works_in_one_event_loop_after_another(serve, collect):
    model = model_at(serve(lambda peer: peer.stream(chunk(content="x"), finish(), DONE)))
    assert [collect(model).text, collect(model).text] == ["x", "x"]


def test_a_client_left_open_is_closed_with_its_event_loop(serve, request_of):
    server = None

    def behaviour(peer):
        peer.stream(chunk(content="x"), finish(), DONE)
        peer.wait_gone()
        server.gone.set()

    async def main():
        async for _ in model_at(server).stream(request_of("hi")):
            pass

    server = serve(behaviour)
    anyio.run(main)
    assert server.gone.wait(5)


@pytest.mark.parametrize(("told", "retryable"), [("true", True), ("false", False)])
def test_a_server_decides_whether_to_retry(serve, caught, told, retryable):
    status = 400 if retryable else 500
    _, error = caught(model_at(serve(lambda peer: peer.reply(status, "{}", x_should_retry=told))))
    assert error.retryable is retryable


@pytest.mark.parametrize(
    ("status", "body", "words", "retryable"),
    [
        (
            400,
            '{"error": {"message": "bad temperature"}}',
            "refused the request (400): bad temperature",
            False,
        ),
        (403, '{"error": "no"}', "refused access (403): no", False),
        (413, "{}", "too large (413)", False),
        (422, '{"detail": [{"msg": "field required", "loc": ["x"]}]}', "field required", False),
        (429, '{"error": {"message": "slow down"}}', "(429): slow down", True),
        (500, "boom", "failed (500): boom", True),
        (
            502,
            "<html><body>Bad gateway</body></html>",
            "answered with a web page; is the base URL right?",
            True,
        ),
        (503, "", "failed (503)", True),
        (
            529,
            '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
            "is overloaded (529): Overloaded",
            True,
        ),
    ],
)
def test_a_status_is_an_error_in_words(serve, caught, status, body, words, retryable):
    _, error = caught(model_at(serve(lambda peer: peer.reply(status, body))))
    assert words in str(error)
    assert (error.status, error.retryable) == (status, retryable)


def test_401_says_how_to_give_a_key(serve, caught):
    _, error = caught(
        model_at(serve(lambda peer: peer.reply(401, '{"error": {"message": "who?"}}')))
    )
    assert "refused the key (401): who?" in str(error)
    assert "Set OPENAI_API_KEY or use `%agent key openai`" in str(error)
    assert not error.retryable


def test_no_part_of_a_key_is_in_an_error(serve, caught, monkeypatch):
    key = "sk-proj-abcdefgh12345678"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    body = f'{{"error": {{"message": "Incorrect key: {key}, that is sk-proj-********5678"}}}}'
    server = serve(lambda peer: peer.reply(401, body))
    _, error = caught(model_at(server))
    assert server.asked[0].headers["authorization"] == f"Bearer {key}"
    for text in (str(error), error.raw):
        assert "abcdefgh" not in text
        assert "5678" not in text


def test_404_names_model_base_url_and_close_models(serve, caught):
    def models(peer):
        peer.reply(200, '{"data": [{"id": "m2"}, {"id": "other"}]}')

    server = serve(lambda peer: peer.reply(404, '{"error": {"message": "no such model"}}'), models)
    _, error = caught(model_at(server))
    assert f"Check the model name 'm' and the base URL {server.url}." in str(error)
    assert "It has: m2" in str(error)
    assert server.asked[1].path == "/v1/models"


def test_a_redirect_is_not_followed(serve, caught):
    server = serve(lambda peer: peer.reply(301, "", location="https://elsewhere.example/v1"))
    _, error = caught(model_at(server))
    assert "https://elsewhere.example/v1" in str(error)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after_ms": "1500"}, 1.5),
        ({"retry_after": "soon"}, None),
        ({"retry_after_ms": "inf"}, None),
        ({"retry_after_ms": "nan"}, None),
        ({"retry_after": "9" * 400}, None),
        ({"x_ratelimit_reset": "inf", "x_ratelimit_remaining": "0"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read(serve, caught, headers, seconds):
    _, error = caught(model_at(serve(lambda peer: peer.reply(429, "{}", **headers))))
    assert error.retry_after == seconds
    assert "inf minutes" not in str(error)


def test_spent_credit_is_not_retried(serve, caught):
    body = '{"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}'
    _, error = caught(model_at(serve(lambda peer: peer.reply(429, body))))
    assert not error.retryable


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("<!DOCTYPE html><html>Welcome</html>", "garbage", "web page. Is the base URL right?"),
        (
            "hello, this is no model",
            "garbage",
            "neither an event stream nor JSON. It begins with 'hello, this",
        ),
        ("", "empty", "answered with nothing"),
        ('{"choices": [', "garbage", "not JSON"),
        ("data: {broken\n\n", "garbage", "not JSON. It begins with '{broken'"),
    ],
)
def test_a_body_that_is_not_an_answer_is_reported(serve, caught, body, code, words):
    got, error = caught(model_at(serve(lambda peer: peer.reply(200, body, "text/html"))))
    assert error.code == code
    assert words in str(error)
    assert got.parts == []


def test_a_plain_json_answer_is_read(serve, collect):
    body = '{"id": "r", "choices": [{"message": {"role": "assistant", "content": "whole"}, "finish_reason": "stop"}]}'
    assert collect(model_at(serve(lambda peer: peer.reply(200, body)))).text == "whole"


ANSWER = (
    f"data: {json.dumps(chunk(content='Hello'))}\n\ndata: {json.dumps(finish())}\n\n{DONE}".encode()
)
NESTED = gzip.compress(gzip.compress(ANSWER))


def endless(flood, status=200):
    """Return a behaviour: an answer in gzip that expands to 4 GB of `flood`."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    head = packer.compress(flood * (1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(flood * (1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return lambda peer: peer.reply(
        status, head + again * (4096 // len(flood)), "text/event-stream", content_encoding="gzip"
    )


def test_no_compression_is_asked_for_and_gzip_is_read(serve, collect):
    server = serve(
        lambda peer: peer.reply(
            200, gzip.compress(ANSWER), "text/event-stream", content_encoding="gzip"
        )
    )
    assert collect(model_at(server)).text == "Hello"
    assert server.asked[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("encoding", "body"), [("gzip, gzip", NESTED), ("br", ANSWER)], ids=["nested", "unknown"]
)
def test_another_compression_and_one_in_another_are_refused_by_name(serve, caught, encoding, body):
    got, error = caught(
        model_at(
            serve(
                lambda peer: peer.reply(200, body, "text/event-stream", content_encoding=encoding)
            )
        )
    )
    assert (got.parts, error.code, error.retryable) == ([], "garbage", False)
    assert f"compressed as {encoding!r}" in str(error)


def test_data_that_is_not_compressed_as_it_says_is_an_error(serve, caught):
    _, error = caught(
        model_at(
            serve(
                lambda peer: peer.reply(200, ANSWER, "text/event-stream", content_encoding="gzip")
            )
        )
    )
    assert "cannot be decompressed" in str(error)


@pytest.mark.parametrize(("encoding", "words"), [("gzip", "slow down"), ("gzip, gzip", "(429)")])
def test_a_compressed_error_body_is_read_the_same_way(serve, caught, encoding, words):
    body = gzip.compress(b'{"error": {"message": "slow down"}}')
    _, error = caught(
        model_at(serve(lambda peer: peer.reply(429, body, content_encoding=encoding)))
    )
    assert words in str(error)
    assert error.status == 429


def test_an_error_body_that_expands_without_end_is_read_to_its_limit(serve, caught):
    _, error = caught(model_at(serve(endless(b"x", 500))))
    assert (error.status, len(error.raw)) == (500, 2000)


@pytest.mark.few(1)
@pytest.mark.parametrize("flood", [b"\n", b"data: {}\n\n"])
def test_an_answer_that_expands_without_end_ends_at_the_time_limit(serve, flood):
    async def main():
        with anyio.fail_after(30):
            return await Agent(model_at(serve(endless(flood))), limits={"seconds": 1}, secrets={})(
                "hi"
            )

    run = anyio.run(main)
    assert (run.status, run.log.of("interrupt")[0].reason) == ("limit", "timeout")


def test_a_list_of_models_that_expands_without_end_is_refused(serve):
    async def main():
        model = model_at(serve(endless(b"[")))
        try:
            await model.models()
        finally:
            await model.aclose()

    with pytest.raises(ModelError, match="more than 16 MB"):
        anyio.run(main)


def test_a_server_that_never_answers_runs_into_the_first_byte_limit(serve, caught):
    _, error = caught(model_at(serve(lambda peer: peer.wait_gone()), timeouts=SHORT))
    assert "did not answer within 0.3 s" in str(error)
    assert error.retryable


def test_headers_without_a_body_run_into_the_first_byte_limit(serve, caught):
    def behaviour(peer):
        peer.begin()
        peer.wait_gone()

    _, error = caught(model_at(serve(behaviour), timeouts=SHORT))
    assert "said nothing for 0.3 s" in str(error)
    assert error.retryable


def test_a_stream_that_stalls_runs_into_the_idle_limit_and_keeps_what_came(serve, caught):
    def behaviour(peer):
        peer.begin()
        peer.send('data: {"choices":[{"delta":{"content":"half"}}]}\n\n')
        peer.wait_gone()

    got, error = caught(model_at(serve(behaviour), timeouts=SHORT))
    assert got.text == "half"
    assert "stopped sending for 0.3 s" in str(error)
    assert not error.retryable


def test_a_broken_connection_keeps_what_came_and_closes_calls(serve, caught):
    call = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": '{"a": 1'}}

    def behaviour(peer):
        peer.begin()
        peer.send('data: {"choices":[{"delta":{"content":"half"}}]}\n\n')
        peer.send(f'data: {{"choices":[{{"delta":{{"tool_calls":[{json.dumps(call)}]}}}}]}}\n\n')

    got, error = caught(model_at(serve(behaviour)))
    assert got.text == "half"
    assert [c.incomplete for c in got.of(parts.Call)] == [True]
    assert (error.code, error.retryable) == ("cut", False)


def test_a_connection_that_breaks_before_the_answer_may_be_retried(serve, caught):
    _, error = caught(model_at(serve(lambda peer: peer.begin())))
    assert (error.code, error.retryable) == ("cut", True)


def test_an_error_before_the_first_part_may_be_retried(serve, caught):
    event = 'event: error\ndata: {"error": {"type": "server_error", "message": "busy"}}\n\n'
    got, error = caught(model_at(serve(lambda peer: peer.stream(chunk(content=""), event))))
    assert got.parts == []
    assert (str(error), error.retryable) == ("busy", True)


def test_an_error_after_the_first_part_comes_last_and_may_not_be_retried(serve, caught):
    event = 'event: error\ndata: {"error": {"type": "server_error", "message": "busy"}}\n\n'
    got, error = caught(model_at(serve(lambda peer: peer.stream(chunk(content="half"), event))))
    assert got.text == "half"
    assert (str(error), error.code, error.retryable) == ("busy", "provider", False)


def test_a_refused_connection_is_retryable_and_asks_if_the_server_runs(caught):
    _, error = caught(provider("m", base_url="http://127.0.0.1:1/v1"))
    assert "127.0.0.1:1 could not be reached: Connection refused. Is the server running" in str(
        error
    )
    assert (error.code, error.retryable) == ("connect", True)


@pytest.mark.parametrize("how", ["aclose", "cancel"])
def test_leaving_the_stream_closes_the_connection(serve, request_of, how):
    server = None

    def behaviour(peer):
        peer.begin()
        peer.send('data: {"choices":[{"delta":{"content":"first"}}]}\n\n')
        peer.wait_gone()
        server.gone.set()

    async def main():
        model = model_at(server)
        with anyio.CancelScope() as scope:
            async with aclosing(model.stream(request_of("hi"))) as stream:
                async for _ in stream:
                    if how == "aclose":
                        break
                    scope.cancel()
        assert await anyio.to_thread.run_sync(server.gone.wait, 5)
        await model.aclose()

    server = serve(behaviour)
    anyio.run(main)


def test_cancelling_while_waiting_for_the_first_byte_closes_the_connection(serve, request_of):
    server = None
    asked = threading.Event()

    def behaviour(peer):
        asked.set()
        peer.wait_gone()
        server.gone.set()

    async def main():
        model = model_at(server)

        async def read():
            async for _ in model.stream(request_of("hi")):
                pass

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            assert await anyio.to_thread.run_sync(asked.wait, 5)
            group.cancel_scope.cancel()
        assert await anyio.to_thread.run_sync(server.gone.wait, 5)
        await model.aclose()

    server = serve(behaviour)
    anyio.run(main)


def test_a_loopback_address_is_never_asked_through_a_proxy(serve, collect, monkeypatch):
    proxy = serve(lambda peer: peer.reply(500, "the proxy was asked"))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://{proxy.host}")
    server = serve(lambda peer: peer.stream(chunk(content="direct"), finish(), DONE))
    assert collect(model_at(server)).text == "direct"
    assert proxy.asked == []


def test_another_host_is_asked_through_the_proxy(serve, collect, monkeypatch):
    proxy = serve(lambda peer: peer.stream(chunk(content="by proxy"), finish(), DONE))
    monkeypatch.setenv("HTTP_PROXY", f"http://{proxy.host}")
    assert collect(provider("m", base_url="http://lab.example/v1")).text == "by proxy"
    assert proxy.asked[0].path == "http://lab.example/v1/chat/completions"


def test_no_proxy_is_honoured(serve, caught, monkeypatch):
    proxy = serve(lambda peer: peer.stream(chunk(content="by proxy"), finish(), DONE))
    monkeypatch.setenv("HTTP_PROXY", f"http://{proxy.host}")
    monkeypatch.setenv("NO_PROXY", "nowhere.invalid")
    _, error = caught(provider("m", base_url="http://nowhere.invalid/v1"))
    assert error.code == "connect"
    assert proxy.asked == []


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        *(
            (host, True)
            for host in ("127.0.0.1", "127.8.9.1", "::1", "LOCALHOST", "localhost.", "a.localhost")
        ),
        *((host, False) for host in ("0.0.0.0", "10.0.0.1", "localhost.example", "127.example")),
    ],
)
def test_loopback_hosts_are_recognised(host, loopback):
    assert is_loopback(host) is loopback


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://lab:8000/v1/", "http://lab:8000/v1"),
        (" https://x.example/v1/chat/completions ", "https://x.example/v1"),
        ("https://x.example/v1/responses", "https://x.example/v1"),
        ("http://[::1]:80/v1", "http://[::1]:80/v1"),
    ],
)
def test_a_base_url_is_tidied(given, url):
    assert check_url(given) == url


@pytest.mark.parametrize("url", ["lab:8000", "ftp://x/v1", "http://", "", "http://x:port/v1"])
def test_an_invalid_base_url_is_refused(url):
    with pytest.raises(UsageError, match="not a base URL"):
        check_url(url)


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_missing_certificates_name_their_variable(monkeypatch, variable):
    monkeypatch.setenv(variable, "/no/such/file.pem")
    with pytest.raises(UsageError, match=f"{variable} names cannot be read"):
        client.load_certificates()


def test_certificates_of_the_environment_are_used(monkeypatch, tmp_path):
    import certifi

    one = certifi.contents().split("-----END CERTIFICATE-----")[0] + "-----END CERTIFICATE-----\n"
    (tmp_path / "one.pem").write_text(one)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "one.pem"))
    assert len(client.load_certificates().get_ca_certs()) == 1


def test_an_untrusted_certificate_names_the_variables():
    cause = ssl.SSLCertVerificationError("CERTIFICATE_VERIFY_FAILED: self-signed certificate")
    error = httpx.ConnectError("CERTIFICATE_VERIFY_FAILED")
    error.__cause__ = cause
    fault = make_connection_error(error, "lab:443", Timeouts().connect)
    assert "SSL_CERT_FILE (or REQUESTS_CA_BUNDLE)" in str(fault)
    assert (fault.code, fault.retryable) == ("tls", False)


def test_a_server_that_speaks_no_tls_is_named_so():
    error = httpx.ConnectError("WRONG_VERSION_NUMBER")
    error.__cause__ = ssl.SSLError("WRONG_VERSION_NUMBER")
    assert "Does it speak https?" in str(
        make_connection_error(error, "lab:443", Timeouts().connect)
    )


def test_tls_that_breaks_off_later_is_a_broken_connection():
    error = httpx.ReadError("eof")
    error.__cause__ = ssl.SSLEOFError("eof")
    assert make_connection_error(error, "lab:443", Timeouts().connect).code == "cut"


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        (httpx.ConnectTimeout("x"), "connect", True),
        (httpx.ProxyError("x"), "proxy", True),
        (httpx.RemoteProtocolError("x"), "cut", True),
        (httpx.ReadError(""), "cut", True),
        (httpx.LocalProtocolError("Illegal header value b'secret'"), "request", False),
    ],
)
def test_every_fault_of_the_transport_has_its_code(error, code, retryable):
    fault = make_connection_error(error, "lab", Timeouts().connect)
    assert (fault.code, fault.retryable) == (code, retryable)
    assert "secret" not in str(fault)


def test_a_socks_proxy_without_its_support_says_what_to_install(monkeypatch, caught):
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    with pytest.raises(UsageError, match="pip install 'httpx\\[socks\\]'"):
        caught(provider("m", base_url="http://lab.example/v1"))


@pytest.mark.slow
def test_importing_the_models_does_not_import_httpx():
    code = (
        "import sys, agent_nb.models.openai, agent_nb.models.choose; print('httpx' in sys.modules)"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=CHECKOUT
    )
    assert out.stdout.strip() == "False", out.stderr


def test_the_list_of_models_is_read(serve):
    server = serve(
        lambda peer: peer.reply(
            200, '{"object": "list", "data": [{"id": "b"}, {"id": "models/a"}]}'
        )
    )

    async def main():
        model = model_at(server)
        try:
            return await model.models()
        finally:
            await model.aclose()

    assert anyio.run(main) == ["a", "b"]


@pytest.mark.parametrize(
    "behaviour", [lambda peer: peer.reply(200, "<html>"), lambda peer: peer.reply(500, "x")]
)
def test_a_server_without_a_list_of_models_is_a_model_error(serve, behaviour):
    async def main():
        model = model_at(serve(behaviour))
        try:
            await model.models()
        finally:
            await model.aclose()

    with pytest.raises(ModelError):
        anyio.run(main)
