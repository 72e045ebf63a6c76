"""A notebook that asks a host beside the tape."""

import json

import pytest
from helpers.notebooks import write
from tape.test_notebook import LIBRARY, TAPE, printed, record

from agent_nb.runner.client import execute_notebook
from agent_nb.runner.execution_options import ExecutionOptions
from agent_nb.runner.notebook_check import check_notebook

ASK = """\
import socket
for _ in range(2):
    try:
        socket.create_connection(("openrouter.invalid", 443), 1)
    except OSError as fault:
        print(fault)
"""


@pytest.mark.kernel
def test_a_host_that_is_asked_beside_the_tape_is_named_once(provider, tmp_path):
    path = write(tmp_path / "n.ipynb", TAPE, LIBRARY + "ask('hi')", ASK, ASK)
    outcome = record(path)
    cells = [
        "".join(o["text"] for o in c["outputs"] if o.get("name") == "stderr")
        for c in outcome.notebook["cells"]
    ]
    assert cells[0] == cells[1] == cells[3] == ""
    assert cells[2].count("line 4 asks openrouter.invalid beside the tape") == 1
    assert 'base_url=tape.url("https://openrouter.invalid/v1")' in cells[2]
    assert "Traceback" not in json.dumps(outcome.notebook)


CONNECT = """\
import socket
with socket.socket() as client:
    client.settimeout(0.2)
    try:
        client.connect(("203.0.113.5", 443))
    except OSError as fault:
        print(fault)
"""
AWAITED = """\
import asyncio
try:
    await asyncio.open_connection("awaited.invalid", 443)
except OSError:
    pass
"""
DATAGRAM = """\
with socket.socket(type=socket.SOCK_DGRAM) as client:
    try:
        client.sendto(b"secret", ("203.0.113.6", 53))
    except OSError:
        pass
"""
CHILD = """\
import subprocess, sys
code = "import urllib.request; urllib.request.urlopen('{}://child.invalid/x', timeout=5)"
for scheme in ("http", "https"):
    print(subprocess.run([sys.executable, "-c", code.format(scheme)], capture_output=True, text=True).stderr[-900:])
"""
OPENED = """\
os.environ.update(AGENT_NB_STRICT="", no_proxy="*", NO_PROXY="*")
%agent tape off
%agent tape
"""


@pytest.mark.kernel
def test_a_test_of_a_taped_notebook_reaches_no_other_host(provider, tmp_path):
    path = write(
        tmp_path / "n.ipynb", TAPE, LIBRARY + "ask('hi')", ASK, CONNECT, AWAITED, DATAGRAM, CHILD
    )
    record(path)
    texts = [p.text for p in check_notebook(path).problems]
    expected = {
        3: "line 4 asks openrouter.invalid: a test of a notebook with a tape",
        4: "line 5 asks 203.0.113.5:",
        5: "line 3 asks awaited.invalid:",
        6: "line 3 asks 203.0.113.6:",
        7: "line 4 asks child.invalid:",
    }
    assert len(texts) == len(expected), texts
    for text, (number, part) in zip(texts, expected.items(), strict=True):
        assert text.startswith(f"cell {number} ")
        assert part in text
    assert 'allowed_hosts = ["openrouter.invalid"]' in texts[0]
    outcome = execute_notebook(path, ExecutionOptions(rerun="replay", strict=True))
    assert "403" in printed(outcome)[-1]
    assert "child.invalid: a test of a notebook with a tape" in printed(outcome)[-1]


@pytest.mark.kernel
def test_the_project_alone_allows_a_host(provider, tmp_path):
    path = write(tmp_path / "n.ipynb", TAPE, LIBRARY + "ask('hi')", OPENED, ASK)
    nb = json.loads(path.read_text())
    for holder in (nb, *nb["cells"]):
        holder["metadata"]["agent_nb"] = {"allowed_hosts": ["openrouter.invalid"]}
    path.write_text(json.dumps(nb))
    record(path)
    (problem,) = check_notebook(path).problems
    assert "line 4 asks openrouter.invalid" in problem.text
    allowed = '[tool.agent_nb]\nallowed_hosts = ["OpenRouter.invalid"]\n'
    (tmp_path / "pyproject.toml").write_text(allowed)
    assert not check_notebook(path).problems


@pytest.mark.kernel
def test_where_an_allowed_host_leads_a_connection_may_go(provider, tmp_path):
    resolver = (
        "import socket\n"
        "before = socket.getaddrinfo\n"
        "answer = [(socket.AF_INET, socket.SOCK_STREAM, 6, '', ('203.0.113.7', 9))]\n"
        "socket.getaddrinfo = lambda host, *a, **o: answer if host == 'data.invalid' else before(host, *a, **o)\n"
    )
    cell = CONNECT.replace('("203.0.113.5", 443)', "socket.getaddrinfo('data.invalid', 9)[0][4]")
    path = write(tmp_path / "n.ipynb", resolver, TAPE, LIBRARY + "ask('hi')", cell)
    record(path)
    assert "line 5 asks data.invalid" in check_notebook(path).problems[0].text
    (tmp_path / "pyproject.toml").write_text('[tool.agent_nb]\nallowed_hosts = ["data.invalid"]')
    assert not check_notebook(path).problems
