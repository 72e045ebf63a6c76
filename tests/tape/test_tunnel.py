"""Child processes of a test without a tape: they reach their data, and no model."""

import http.client
import json
import socket
import struct
from urllib.parse import urlsplit

import pytest
from helpers.model_server import Server
from helpers.notebooks import write
from tape.test_notebook import printed

from agent_nb.runner.client import execute_notebook
from agent_nb.runner.execution_options import ExecutionOptions
from agent_nb.runner.notebook_check import check_notebook
from agent_nb.tape.tunnel import Tunnel


@pytest.fixture
def server():
    made = Server(lambda peer: peer.reply(200, json.dumps([peer.method, peer.path, peer.body])))
    yield made
    made.close()


@pytest.fixture
def tunnel():
    """Yield the address of a tunnel that refuses one host."""
    return urlsplit(Tunnel(lambda target: "no: é\nyes" if "refused" in target else "").start())


def connect(address):
    return http.client.HTTPConnection(address.hostname, address.port, timeout=10)


@pytest.mark.parametrize("target", ["/v1/a?b=1", "/a//b", "?b=1", ""])
def test_a_plain_request_passes_with_its_body(server, tunnel, target):
    client = connect(tunnel)
    client.request("POST", f"http://{server.host}{target}", b'{"a": 1}', {"x-own": "1"})
    answer = client.getresponse()
    assert json.loads(answer.read()) == [
        "POST",
        target if target[:1] == "/" else f"/{target}",
        {"a": 1},
    ]
    (peer,) = server.asked
    assert peer.headers["host"] == server.host
    assert (peer.headers["x-own"], peer.headers["connection"]) == ("1", "close")


def test_a_connection_through_the_tunnel_passes_unaltered(server, tunnel):
    client = connect(tunnel)
    host, _, port = server.host.partition(":")
    client.set_tunnel(host, int(port))
    client.request("POST", "/v1/a", b'{"a": 2}')
    assert json.loads(client.getresponse().read()) == ["POST", "/v1/a", {"a": 2}]


def test_a_refused_target_gets_the_reason(server, tunnel):
    client = connect(tunnel)
    client.request("GET", "http://refused.invalid/")
    answer = client.getresponse()
    assert (answer.status, answer.reason) == (403, "no: ? yes")
    client = connect(tunnel)
    client.set_tunnel("refused.invalid", 443)
    with pytest.raises(OSError, match="403"):
        client.request("GET", "/")


@pytest.mark.parametrize("head", [b"nonsense\r\n\r\n", b"CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n"])
def test_what_cannot_be_passed_is_answered(tunnel, head):
    with socket.create_connection((tunnel.hostname, tunnel.port), 10) as raw:
        raw.sendall(head)
        assert raw.recv(100).startswith(b"HTTP/1.1 502")


def test_a_client_that_resets_its_connection_ends_that_to_the_server(tunnel):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection((tunnel.hostname, tunnel.port), 10)
        client.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % listening.getsockname()[1])
        assert client.recv(100).startswith(b"HTTP/1.1 200")
        peer, _ = listening.accept()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()  # with a reset
        with peer:
            peer.settimeout(10)
            assert peer.recv(1) == b""


CHILD = """\
import os, subprocess, sys
code = '''
import os, urllib.request
os.environ["no_proxy"] = os.environ["NO_PROXY"] = ""
try:
    print(urllib.request.urlopen("{}", timeout=9).read().decode())
except OSError as fault:
    print(fault)
'''
def fetch(url):
    child = [sys.executable, "-c", code.format(url)]
    print(subprocess.run(child, capture_output=True, text=True).stdout)
"""


@pytest.mark.few("https")
@pytest.mark.kernel
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_child_process_asks_no_model_and_gets_its_data(server, scheme, tmp_path):
    ask = f"fetch({server.url!r})\n\nfetch('{scheme}://api.openai.com/v1')"
    path = write(tmp_path / "n.ipynb", CHILD, ask, "print(os.environ.get('http_proxy'))")
    (problem,) = check_notebook(path).problems
    assert problem.text.startswith("cell 2 ")
    assert "line 12 asks api.openai.com: a test asks no model." in problem.text
    outcome = execute_notebook(path, ExecutionOptions(rerun="replay", strict=True))
    shown = printed(outcome)
    assert '["GET", "/v1", null]' in shown[0]
    assert "403" in shown[0]
    assert shown[-1] == "None\n"  # what this process asks takes no detour


@pytest.mark.kernel
def test_the_project_allows_a_child_process_a_host_of_models(tmp_path):
    path = write(tmp_path / "n.ipynb", CHILD, "fetch('https://lab.openai.azure.com:1/')")
    assert len(check_notebook(path).problems) == 1
    allowed = '[tool.agent_nb]\nallowed_hosts = ["lab.openai.azure.com"]\n'
    (tmp_path / "pyproject.toml").write_text(allowed)
    assert not check_notebook(path).problems


@pytest.mark.kernel
def test_behind_a_proxy_of_the_user_child_processes_keep_it(tmp_path, monkeypatch):
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    code = "import subprocess\nprint(subprocess.getoutput('echo $https_proxy'))"
    path = write(tmp_path / "n.ipynb", code)
    outcome = execute_notebook(path, ExecutionOptions(rerun="replay", strict=True))
    assert printed(outcome)[-1] == "http://127.0.0.1:9\n"
