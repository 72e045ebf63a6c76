"""Whatever a model server answers, the cell ends with a clear message and a valid log."""

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from agent_nb.models.http import retry
from agent_nb.notebook.cell.failure import AgentCellError

HTML = b"<html><body><h1>It works!</h1></body></html>"


class Handler(BaseHTTPRequestHandler):
    """Answers every request with the server's one answer."""

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        status, kind, body = self.server.answer
        if status == 0:
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        if status < 0:
            self.server.over.wait(20)
            return
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    """A server on the loopback whose address is that of the `openai` provider."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.over = threading.Event()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "test-key-for-loopback")
    monkeypatch.setattr(retry.Failures, "choose_delay", lambda fault, attempt: None)
    yield server
    server.over.set()
    server.shutdown()
    server.server_close()
    thread.join()


ANSWERS = {
    "401": (
        (401, "application/json", b'{"error": {"message": "Incorrect API key provided"}}'),
        "(?i)key",
    ),
    "404": (
        (404, "application/json", b'{"error": {"message": "The model gone does not exist"}}'),
        "does not exist",
    ),
    "500": ((500, "application/json", b"{}"), "500"),
    "a web page": ((200, "text/html", HTML), "(?i)html|web page"),
    "garbage": ((200, "text/event-stream", b"data: {]\n\n"), "(?i)json|understood|read"),
    "nothing": ((200, "text/event-stream", b""), "."),
    "a closed connection": ((0, "", b""), "127.0.0.1"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_bad_answer_fails_the_cell_in_words(agent, loaded, server, name):
    server.answer, named = ANSWERS[name]
    with pytest.raises(AgentCellError, match=named) as failure:
        agent("-m openai/gone")
    run = loaded.user_ns["_agent"]
    print(f"{name}: {failure.value}")
    assert [e.type for e in run.events][-1] == "end"
    assert run.status == "error"
    assert [e.seq for e in run.events] == list(range(1, len(run.events) + 1))


def test_no_answer_at_all_ends_at_the_time_limit(agent, server):
    server.answer = (-1, "", b"")
    run = agent("-m openai/gone --time 0.5")
    assert run.status == "limit"
    assert [e.type for e in run.events][-2:] == ["interrupt", "end"]


def test_nobody_listening_fails_the_cell_in_words(agent, loaded, monkeypatch):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{unused.getsockname()[1]}/v1")
    monkeypatch.setattr(retry.Failures, "choose_delay", lambda fault, attempt: None)
    with pytest.raises(AgentCellError, match=r"127\.0\.0\.1"):
        agent("-m openai/gone")
    assert loaded.user_ns["_agent"].status == "error"
