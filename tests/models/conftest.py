"""Helpers of the model tests."""

import json
import socket
import threading
from contextlib import suppress

import anyio
import pytest

from agent_nb.errors import ModelError
from agent_nb.models import keys, parts
from agent_nb.models.messages import Request, text_message


class Sum:
    """What the parts of a response add up to."""

    def __init__(self, seen):
        self.parts = list(seen)
        self.text = "".join(p.text for p in self.of(parts.Text))
        self.reasoning = "".join(p.text for p in self.of(parts.Thought))
        self.calls = [(c.call_id, c.name, c.raw_args) for c in self.of(parts.Call)]
        self.finish = next((p.reason for p in reversed(self.of(parts.Finish))), None)
        self.usage = next(iter(reversed(self.of(parts.Usage))), None)
        self.faults = self.of(parts.Fault)
        self.extras = {p.name: p.payload for p in self.of(parts.Extra)}

    def of(self, kind):
        return [p for p in self.parts if isinstance(p, kind)]


@pytest.fixture(scope="session")
def total():
    return Sum


@pytest.fixture(scope="session")
def request_of():
    """Make a request from texts or messages: strings are user messages."""

    def make(*messages, **kw):
        made = tuple(text_message("user", m) if isinstance(m, str) else m for m in messages)
        return Request(messages=made, **kw)

    return make


@pytest.fixture(scope="session")
def caught(request_of):
    """Run a model that fails; return the sum of its parts and the ModelError."""

    def run(model, request=None):
        async def main():
            seen = []
            try:
                async for batch in model.stream(request or request_of("hi")):
                    seen.extend(batch)
            except ModelError as error:
                return Sum(seen), error
            finally:
                await model.aclose()
            raise AssertionError("the request did not fail")

        return anyio.run(main)

    return run


@pytest.fixture(scope="session")
def collect(request_of):
    """Run a model on a request and return the sum of its parts."""

    def run(model, request=None):
        async def main():
            seen = []
            stream = model.stream(request or request_of("hi"))
            try:
                async for batch in stream:
                    seen.extend(batch)
            finally:
                await stream.aclose()
                await model.aclose()
            return Sum(seen)

        return anyio.run(main)

    return run


class Peer:
    """One connection to the server: what was asked, and raw ways to answer it."""

    def __init__(self, connection):
        self.connection = connection
        head, _, body = self._read()
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.path, _ = lines[0].split(" ", 2)
        self.headers = {
            k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])
        }
        self.body = json.loads(body) if body else None

    def _read(self):
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._more()
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(
            (
                int(h.split(b":")[1])
                for h in head.lower().split(b"\r\n")
                if h.startswith(b"content-length:")
            ),
            0,
        )
        while len(body) < length:
            body += self._more()
        return head, b"", body

    def _more(self):
        data = self.connection.recv(65536)
        if not data:
            raise ConnectionError
        return data

    def reply(self, status, body, content_type="application/json", **headers):
        """Answer at once and close."""
        data = body.encode() if isinstance(body, str) else body
        lines = [
            f"HTTP/1.1 {status} X",
            f"content-type: {content_type}",
            f"content-length: {len(data)}",
            "connection: close",
        ]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.connection.sendall("\r\n".join([*lines, "", ""]).encode() + data)

    def begin(self, content_type="text/event-stream", connection="close"):
        """Begin a chunked answer; `connection` says what becomes of the connection after it."""
        lines = [
            "HTTP/1.1 200 OK",
            f"content-type: {content_type}",
            f"connection: {connection}",
            "transfer-encoding: chunked",
        ]
        self.connection.sendall("\r\n".join([*lines, "", ""]).encode())

    def send(self, text):
        data = text.encode()
        self.connection.sendall(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def end(self):
        self.connection.sendall(b"0\r\n\r\n")

    def stream(self, *chunks, connection="close"):
        self.begin(connection=connection)
        for chunk in chunks:
            self.send(chunk if isinstance(chunk, str) else f"data: {json.dumps(chunk)}\n\n")
        self.end()

    def wait_gone(self):
        """Return when the client has closed the connection."""
        self.connection.settimeout(10)
        with suppress(OSError):
            while self.connection.recv(65536):
                pass


class Server:
    """A server on a loopback port; each connection is answered by the next behaviour, the last one
    again and again.
    """

    def __init__(self, *behaviours):
        self.asked = []
        self.gone = threading.Event()
        self._behaviours = list(behaviours)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(0.1)
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()
        self.host = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.url = f"http://{self.host}/v1"

    def _accept(self):
        while not self._stop.is_set():
            try:
                connection, _ = self._socket.accept()
            except TimeoutError:
                continue
            behaviour = (
                self._behaviours.pop(0) if len(self._behaviours) > 1 else self._behaviours[0]
            )
            thread = threading.Thread(target=self._serve, args=(connection, behaviour), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection, behaviour):
        connection.settimeout(10)
        with connection, suppress(OSError):
            peer = Peer(connection)
            self.asked.append(peer)
            behaviour(peer)

    def close(self):
        self._stop.set()
        for thread in self._threads:
            thread.join(12)
        self._socket.close()


@pytest.fixture
def serve():
    """Start servers of given behaviours (functions of the Peer); they are stopped at the end."""
    servers = []

    def start(*behaviours):
        servers.append(Server(*behaviours))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture(autouse=True)
def clean_environment(clean_environment, monkeypatch):
    """No key, proxy, configuration or `.env` of the machine reaches a test either."""
    import os

    for name in list(os.environ):
        if name.upper().endswith(("_PROXY", "_API_KEY", "_BASE_URL")) or name in (
            "HF_TOKEN",
            "AGENT_NB_MODEL",
            "OLLAMA_HOST",
        ):
            monkeypatch.delenv(name)
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "AGENT_NB_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    folder = clean_environment
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    monkeypatch.chdir(folder)
    monkeypatch.setattr(keys, "_from_keyring", lambda provider: "")
