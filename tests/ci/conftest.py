"""The corpus, recorded once for all tests and workers, and a provider that counts its requests.

`jupyter agent-nb run --live` records each notebook when a test first needs it; the tests have the
key that signed it. Meanwhile every provider is a server of this module that would answer: a test
that went live would pass, so the server counts, and must count nothing.
"""

import json
import os
import shutil
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agent_nb.cli.main import main
from agent_nb.record import file_lock

sys.path.insert(0, str(Path(__file__).parent))
from recipes import RECIPES

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
        """Print nothing."""

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
        super().__init__(("127.0.0.1", 0), _Answers)
        self.connections = 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def get_request(self):
        self.connections += 1
        return super().get_request()

    def route(self, patch):
        """Point every provider to this server."""
        url = f"http://127.0.0.1:{self.server_port}"
        patch.setenv("OPENAI_BASE_URL", f"{url}/v1")
        patch.setenv("ANTHROPIC_BASE_URL", url)
        patch.setenv("OLLAMA_HOST", url)
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
            patch.setenv(name, "sk-corpus-0123456789abcdef0123456789")


@pytest.fixture(scope="session")
def _providers():
    made = Provider(), Provider()
    yield made
    for provider in made:
        provider.shutdown()
        provider.server_close()
    assert made[1].connections == 0


@pytest.fixture(scope="session")
def _corpus(tmp_path_factory):
    """The folder of the corpus, one for all workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "corpus"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def provider(_providers, _corpus, monkeypatch):
    """Route every provider to the server; assert that nothing asked it."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(_corpus / "jupyter"))
    _providers[1].route(monkeypatch)
    yield _providers[1]
    assert _providers[1].connections == 0


@pytest.fixture
def recorded(_providers, _corpus, provider):
    """Return a recorded notebook by the name of its recipe, where it was recorded."""

    def recorded(name):
        for module in RECIPES[name].needs:
            pytest.importorskip(module)
        folder = _corpus / name
        with _locked(_corpus / "lock"):
            secret = _corpus / "jupyter" / "notebook_secret"
            secret.parent.mkdir(exist_ok=True)
            secret.exists() or secret.write_bytes(os.urandom(64))
        with _locked(_corpus / f"{name}.lock"):
            if not (folder / "done").exists():
                _record(RECIPES[name], folder, _providers[0])
                (folder / "done").touch()
        return folder / f"{name}.ipynb"

    return recorded


@pytest.fixture
def copied(recorded, tmp_path):
    """Return a copy of a recorded notebook, and of the files beside it, in another folder."""

    def copied(name):
        folder = shutil.copytree(recorded(name).parent, tmp_path / "copied" / name)
        return folder / f"{name}.ipynb"

    return copied


@pytest.fixture
def check(capsys):
    """Run `jupyter agent-nb test`; return its exit code and output lines, without the path."""

    def check(path, *options):
        trust = ["--trust-folder"] if RECIPES[path.stem].trusts else []
        capsys.readouterr()
        code = main(["test", "--timeout", "60", *trust, *options, str(path)])
        return code, [
            line.removeprefix(f"{path}: ").strip() for line in capsys.readouterr().out.splitlines()
        ]

    return check


def _record(recipe, folder, provider):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    path = recipe.write(folder)
    trust = ["--trust-folder"] if recipe.trusts else []
    with pytest.MonkeyPatch.context() as patch:
        provider.route(patch)
        assert main(["run", "--live", "--inplace", *trust, str(path)]) == 0, recipe.name


class _locked:
    """Hold the lock of a file; wait while another process has it."""

    def __init__(self, path):
        self._path = path

    def __enter__(self):
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT)
        while True:
            try:
                return file_lock.take(self._file)
            except BlockingIOError:
                time.sleep(0.05)

    def __exit__(self, *_):
        os.close(self._file)
