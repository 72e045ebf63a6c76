"""A real Jupyter Server, configured as by the wheel, lifts records on save."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from helpers.paths import CHECKOUT, python_path

pytest.importorskip("jupyter_server", reason="jupyter_server is not installed (extra lab)")

MIME = "application/vnd.agent-nb.run+json"


class Server:
    """A Jupyter Server over one folder."""

    def __init__(self, folder, config):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{s.getsockname()[1]}"
        env = {
            **os.environ,
            "PYTHONPATH": python_path(),
            "JUPYTER_CONFIG_PATH": str(config),
            **{
                name: str(config / name.lower())
                for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
            },
        }
        command = [
            sys.executable,
            "-m",
            "jupyter_server",
            "--no-browser",
            "--allow-root",
            f"--port={self.url.rsplit(':', 1)[1]}",
            f"--ServerApp.root_dir={folder}",
            "--IdentityProvider.token=",
            "--ServerApp.disable_check_xsrf=True",
        ]
        self.process = subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def ready(self):
        for _ in range(200):
            try:
                return self.ask("GET", "/api")
            except OSError:  # refused, or reset while it begins
                assert self.process.poll() is None, (
                    "the server ended: " + self.process.stdout.read()
                )
                time.sleep(0.1)
        raise AssertionError("the server did not answer")

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self.url + path, data, {"Content-Type": "application/json"}, method=method
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=20) as answer:
            return json.load(answer)

    def save(self, nb):
        return self.ask(
            "PUT", "/api/contents/n.ipynb", {"type": "notebook", "format": "json", "content": nb}
        )

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(20)
        self.process.stdout.close()


@pytest.fixture
def server(tmp_path):
    config = tmp_path / "config"
    (config / "jupyter_server_config.d").mkdir(parents=True)
    shutil.copy(
        CHECKOUT / "agent_nb/notebook/jupyter_server_config.json",
        config / "jupyter_server_config.d/agent_nb.json",
    )
    (tmp_path / "work").mkdir()
    server = Server(tmp_path / "work", config)
    try:
        server.ready()
        yield server
    finally:
        server.close()


def notebook(*outputs):
    cell = {
        "cell_type": "code",
        "id": "a",
        "execution_count": 1,
        "metadata": {},
        "source": "%%agent\nhi",
        "outputs": list(outputs),
    }
    return {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def test_saving_lifts_the_record_and_clearing_outputs_keeps_it(server, tmp_path):
    record = {"format": 1, "id": "r1", "started": 1.0, "events": [{"type": "end", "status": "ok"}]}
    shown = {"data": {"text/plain": "x", MIME: record}, "metadata": {"agent_nb": {"run": "r1"}}}
    server.save(notebook({"output_type": "display_data", **shown}))
    saved = json.loads((tmp_path / "work/n.ipynb").read_text())
    assert saved["metadata"]["agent_nb"]["runs"] == {"a": [record]}
    assert saved["cells"][0]["outputs"][0]["data"][MIME] == {"version": 1, "ref": "r1"}
    server.save(notebook())
    saved = json.loads((tmp_path / "work/n.ipynb").read_text())
    assert saved["metadata"]["agent_nb"]["runs"] == {"a": [record]}
    assert saved["cells"][0]["outputs"] == []
    server.process.terminate()
    assert (
        "outputs of n.ipynb are cleared; the record of 1 cell remains"
        in server.process.stdout.read()
    )
