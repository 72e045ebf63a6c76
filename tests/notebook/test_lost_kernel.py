"""A kernel that is killed in the middle of a run: the next one brings the run back."""

import json
import os
import signal
import sys
import time

import pytest

from agent_nb import journal

pytestmark = [pytest.mark.kernel, pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9 on Windows")]

SETUP = """%load_ext agent_nb
from agent_nb import Scripted
model = Scripted([{"text": "word " * 2000, "chunk": 5, "delay": 0.005}])"""


@pytest.fixture(params=[0.3, 0.7])
def lost(request, kernel_type, tmp_path):
    """Kill a kernel some time after its run has begun; return how many characters it had logged 100 ms before."""
    kernel = kernel_type(sys.executable, tmp_path)
    try:
        assert kernel.run(SETUP)[0] == "ok"
        kernel.send("%%agent -m model\ngo on", cell="c1")
        until = time.monotonic() + 30
        while not journal.journals():
            assert time.monotonic() < until, "no journal was begun"
            time.sleep(0.01)
        time.sleep(request.param)
        known = written()
        time.sleep(0.1)
        os.kill(kernel.manager.provisioner.pid, signal.SIGKILL)
    finally:
        kernel.close()
    return known


def written():
    """The characters of the answer that are in the journal now."""
    (path,) = journal.journals()
    return sum(len(e.text) for e in journal.read(path)[1] if e.type == "delta")


def test_the_next_kernel_recovers_the_run(lost, kernel_type, tmp_path):
    kernel = kernel_type(sys.executable, tmp_path)
    try:
        assert kernel.run("%load_ext agent_nb")[0] == "ok"
        assert "lost" in kernel.run("%agent recover")[1]
        assert kernel.run("%agent recover all")[0] == "ok"
        events = [json.loads(line) for line in kernel.run("print(_agent.events.to_ndjson())")[1].splitlines() if line]
    finally:
        kernel.close()
    (answer,) = [e for e in events if e["type"] == "respond"]
    assert answer["incomplete"]
    assert len(answer["content"]) >= lost > 0
    assert events[-1] == {**events[-1], "type": "end", "status": "interrupted"}
