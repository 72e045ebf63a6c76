"""A model's server on loopback whose answers a test writes byte by byte."""

import json
import socket
import threading
from contextlib import suppress

END = b"0\r\n\r\n"  # of a chunked answer


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

    def send(self, text, end=b""):
        data = text.encode()
        self.connection.sendall(f"{len(data):x}\r\n".encode() + data + b"\r\n" + end)

    def end(self):
        self.connection.sendall(END)

    def stream(self, *chunks, connection="close"):
        """Send a whole answer, its end with the last chunk: a client may not wait for it."""
        texts = [c if isinstance(c, str) else f"data: {json.dumps(c)}\n\n" for c in chunks]
        self.begin(connection=connection)
        for number, text in enumerate(texts, 1):
            self.send(text, END if number == len(texts) else b"")
        if not texts:
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
