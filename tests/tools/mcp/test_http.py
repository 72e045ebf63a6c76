"""MCP over HTTP, on a small real server on loopback."""

import http.server
import os
import socket
import subprocess
import threading
import time

import pytest
from helpers.ports import take_port

from agent_nb import mcp_server

pytestmark = pytest.mark.slow


@pytest.fixture
def port():
    return take_port()


class Process:
    """The small server on a port, which may be ended and started again."""

    def __init__(self, program, port):
        self._command = [*program, "http", str(port)]
        self._port = port
        self.start()

    def start(self):
        self._process = subprocess.Popen(
            self._command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONWARNINGS": ""},
        )
        end = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), 1).close()
            except OSError:
                assert time.monotonic() < end
                time.sleep(0.05)
            else:
                return

    def stop(self):
        self._process.kill()
        self._process.wait()


@pytest.fixture
def process(program, port):
    made = Process(program, port)
    yield made
    made.stop()


@pytest.fixture
def small(process, port):
    return mcp_server("small", url=f"http://127.0.0.1:{port}/mcp")


def test_a_server_at_an_address_is_used_as_one_behind_pipes(ask, small):
    run = ask([small], ("echo", {"text": "hi"}), ("steps", {"count": 2}), ("picture", {}))
    echo, _, picture = run.log.of("result")
    assert echo.content == "hi"
    assert run.log.of("progress")[-1].data == {"done": 2, "total": 2}
    assert len(picture.attachments) == 1


@pytest.mark.long
def test_a_server_that_was_restarted_is_found_again(one, small, process):
    assert one([small], "echo", {"text": "hi"}).content == "hi"
    process.stop()
    process.start()
    assert one([small], "echo", {"text": "again"}).content == "again"


def test_a_server_that_has_gone_is_an_error_that_says_so(one, ask, small, process):
    assert one([small], "echo", {"text": "hi"}).content == "hi"
    process.stop()
    run = ask([small], ("echo", {"text": "again"}))
    assert run.status == "error" or run.log.of("result")[0].status == "error"


def test_an_address_where_nobody_listens_is_an_error_that_names_the_server(ask, port):
    run = ask([mcp_server("gone", url=f"http://127.0.0.1:{port}/mcp")])
    assert run.status == "error"
    assert 'The MCP server "gone" could not be started' in run.log.of("error")[0].message


class Answering:
    """A server on loopback that answers every request with one status."""

    def __init__(self, status):
        self.headers = seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                seen.append(dict(self.headers))
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/mcp"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.mark.parametrize(
    ("status", "words"), [(401, "wants a sign-in"), (403, "wants a sign-in"), (404, "its address")]
)
def test_a_refusal_says_what_to_do(ask, status, words):
    server = Answering(status)
    try:
        run = ask([mcp_server("closed", url=server.url)])
    finally:
        server.close()
    assert words in run.log.of("error")[0].message


def test_a_refusal_names_the_address_without_its_query(ask):
    server = Answering(404)
    try:
        run = ask([mcp_server("closed", url=f"{server.url}?key=quite-secret-value")])
    finally:
        server.close()
    message = run.log.of("error")[0].message
    assert f'is "{server.url}?***" its address?' in message
    assert "quite-secret-value" not in message


def test_the_headers_of_the_entry_are_sent_and_kept_out_of_messages(ask, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "quite-secret-value")
    server = Answering(500)
    try:
        made = mcp_server("s", url=server.url, headers={"Authorization": "Bearer ${MY_TOKEN}"})
        message = ask([made]).log.of("error")[0].message
    finally:
        server.close()
    assert server.headers[0]["Authorization"] == "Bearer quite-secret-value"
    assert "quite-secret-value" not in message
