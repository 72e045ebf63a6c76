"""An OpenAI-compatible server that counts who asks it."""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Linux accepts all of 127.0.0.0/8, other systems only 127.0.0.1. A client that still tries the port
# of an earlier test on 127.0.0.1 does not reach this address, so it is not counted.
OWN_ADDRESS = "127.71.0.1" if sys.platform == "linux" else "127.0.0.1"
CHUNKS = (
    {"delta": {"content": "Hello."}, "index": 0},
    {"delta": {}, "index": 0, "finish_reason": "stop"},
)


class _Answers(BaseHTTPRequestHandler):
    def do_GET(self):
        self._send(
            b'{"object": "list", "data": [{"id": "small", "object": "model"}]}', "application/json"
        )

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        lines = [
            json.dumps(
                {"id": "1", "object": "chat.completion.chunk", "model": "small", "choices": [c]}
            )
            for c in CHUNKS
        ]
        self._send(
            "".join(f"data: {line}\n\n" for line in (*lines, "[DONE]")).encode(),
            "text/event-stream",
        )

    def log_message(self, *_):
        """Nothing is printed."""

    def _send(self, body, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Provider(ThreadingHTTPServer):
    """An OpenAI-compatible server on this machine; `connections` counts."""

    daemon_threads = True

    def __init__(self):
        super().__init__((OWN_ADDRESS, 0), _Answers)
        self.connections = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def get_request(self):
        self.connections += 1
        return super().get_request()

    def route(self, patch):
        """Have every provider be this one."""
        url = f"http://{OWN_ADDRESS}:{self.server_port}"
        patch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        patch.setenv("ANTHROPIC_BASE_URL", url)
        patch.setenv("OLLAMA_HOST", url)
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
            patch.setenv(name, "sk-corpus-0123456789abcdef0123456789")
