"""A server with a relay before it, for tests of what passes."""

import http.client
import threading
from urllib.parse import urlsplit

from helpers.model_server import Server

from agent_nb.tape.providers import BY_NAME
from agent_nb.tape.relay import Live, Relay

OPENAI = BY_NAME["openai"]


class TapedServer:
    """A relay before a server; `sent` are the exchanges."""

    def __init__(self, behaviour, decide=None):
        self.server, self.sent, self.over = Server(behaviour), [], threading.Event()
        self.relay = Relay(dict.fromkeys(BY_NAME, self.server.url), decide or self._live)
        self.relay.start()
        self.connections = []
        self.url = urlsplit(self.relay.address(OPENAI))

    def _live(self, request, headers):
        return Live(self.finish)

    def finish(self, sent):
        self.sent.append(sent)
        self.over.set()

    def connect(self):
        connection = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=10)
        self.connections.append(connection)
        return connection

    def ask(self, path="/chat/completions", body=b'{"model": "m"}', method="POST", **headers):
        connection = self.connect()
        connection.request(
            method, self.url.path + path, body, {"content-type": "application/json", **headers}
        )
        answer = connection.getresponse()
        return answer, answer.read()

    def close(self):
        for connection in self.connections:
            connection.close()
        self.relay.stop()
        self.server.close()
