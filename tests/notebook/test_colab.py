"""Colab's packages: the oldest IPython, ipykernel and ipywidgets that work.

`AGENT_NB_COLAB` names a Python into which this package was installed under the constraints of
`tests/data/colab-2026-08-19.txt`, the packages of Colab on that day; `.ci/run` makes one. Colab's
own page is not here: `google.colab` is an empty module, and cells have no ids.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest
from helpers.kernels import Kernel
from helpers.paths import CHECKOUT
from helpers.scripts import calling

from agent_nb.record.record import METADATA_KEY, RECORD_MIME

PYTHON = os.environ.get("AGENT_NB_COLAB", "")
pytestmark = [
    pytest.mark.kernel,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not PYTHON, reason="AGENT_NB_COLAB names no Python with Colab's packages"),
]
COMMAND = str(Path(PYTHON).parent / "jupyter-agent-nb")
PINS = {"ipython": "7.34.0", "ipykernel": "6.17.1", "ipywidgets": "7.7.1"}
SETUP = """
import sys, types
sys.modules["google"] = google = types.ModuleType("google")
sys.modules["google.colab"] = google.colab = types.ModuleType("google.colab")
import matplotlib
%matplotlib inline
%load_ext agent_nb
import agent_nb
from agent_nb import Scripted
"""
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module")
def colab(tmp_path_factory):
    kernel = Kernel(PYTHON, tmp_path_factory.mktemp("colab"))
    status, text, _ = kernel.run(SETUP)
    assert status == "ok", text
    yield kernel
    kernel.close()


def script(name, *turns):
    return f"{name} = Scripted({list(turns)!r})"


def page(shown):
    """Return the last bundle with a page."""
    return [c for c in shown.values() if "text/html" in c["data"]][-1]


def displays(kernel, request):
    """Return the bundles of a request in the order in which they came."""
    bundles = []
    while True:
        message = kernel.client.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") != request:
            continue
        if message["msg_type"] in ("display_data", "update_display_data"):
            bundles.append(message["content"]["data"])
        if message["content"].get("execution_state") == "idle":
            return bundles


def test_the_packages_are_colabs():
    ask = f"import importlib.metadata as m; print({{n: m.version(n) for n in {list(PINS)}}})"
    found = subprocess.run([PYTHON, "-c", ask], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str(PINS)


def test_a_run_streams_as_html_and_leaves_its_record(colab):
    colab.run(script("slow", {"chunk": 5, "delay": 0.02, "text": "word " * 60}))
    bundles = displays(colab, colab.send("%%agent -m slow --new\ngo", stdin=True))
    pages = [b["text/html"] for b in bundles if "text/html" in b]
    assert len(pages) > 3, "it is drawn while it streams"
    assert [len(p) for p in pages[:3]] != [len(pages[0])] * 3
    assert not any(WIDGET in b for b in bundles)
    assert bundles[-1][RECORD_MIME]["format"]


def test_a_tool_with_progress_runs(colab):
    colab.run(
        "@agent_nb.tool(effect='none')\n"
        "def count(n: int):\n"
        "    'Count.'\n"
        "    for i in range(n): yield agent_nb.Progress(i / n, f'{i} of {n}')\n"
        "    yield n\n" + script("counting", calling("count", n=3), "It is 3.")
    )
    status, text, shown = colab.run("%%agent -m counting -t count --new\ngo", stdin=True)
    assert status == "ok", text
    assert "It is 3." in page(shown)["data"]["text/html"]


def test_a_question_is_asked_on_the_keyboard_and_its_arguments_edited(colab):
    colab.run(script("asking", calling("python", code="6 * 7"), "Done."))
    request = colab.send("%%agent -m asking -t python --new\ngo", stdin=True)
    question = colab.client.get_stdin_msg(timeout=60)["content"]["prompt"]
    assert "6 * 7" in question
    assert "[e]dit" in question
    colab.client.input("e")
    assert "JSON" in colab.client.get_stdin_msg(timeout=60)["content"]["prompt"]
    colab.client.input('{"code": "answer = 6 * 9"}')
    status, text, _ = colab.finish(request)
    assert status == "ok", text
    assert "54" in colab.run("print(answer)")[1]


def test_a_plot_is_part_of_the_result(colab):
    code = "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()"
    colab.run(script("plotting", calling("python", code=code), "See the plot."))
    status, text, shown = colab.run(
        "%%agent -m plotting -t python --approve auto --new\ngo", stdin=True
    )
    assert status == "ok", text
    assert "image/png" in page(shown)["data"]["text/html"]


def test_an_interrupt_ends_the_run_and_keeps_its_record(colab):
    colab.run(
        script("endless", calling("python", code="open('mark', 'w'); import time; time.sleep(60)"))
    )
    request = colab.send("%%agent -m endless -t python --approve auto --new\ngo", stdin=True)
    colab.marked()
    colab.interrupt()
    status, _, shown = colab.finish(request)
    assert status == "error"
    assert page(shown)["data"][RECORD_MIME]
    assert "1" in colab.run("print(_agent.status, 1)")[1]


def test_a_map_answers_each_row(colab):
    colab.run(
        "import pandas as pd\n"
        "frame = pd.DataFrame({'text': ['a', 'b', 'c']})\n" + script("each", *["seen"] * 3)
    )
    status, text, _ = colab.run("%%agent -m each --map frame -o out\nSay {{ text }}", stdin=True)
    assert status == "ok", text
    assert "3" in colab.run("print(len(out), list(out.columns))")[1]


def test_a_cell_replays_its_record(colab):
    colab.run(script("once", "The first answer."))
    for live in ("", "--rerun replay "):
        status, text, shown = colab.run(
            f"%%agent -m once {live}-c again --new\ngo", cell="c-again", stdin=True
        )
        assert status == "ok", text
        assert "The first answer." in page(shown)["data"]["text/html"]


def test_completion_offers_options_and_choices(colab):
    def offered(line):
        request = colab.client.complete(line, len(line))
        while True:
            reply = colab.client.get_shell_msg(timeout=60)
            if reply["parent_header"].get("msg_id") == request:
                return reply["content"]["matches"]

    assert "--tools" in offered("%%agent --to")
    assert "replay" in offered("%%agent --rerun re")
    assert "doctor" in offered("%agent do")


@pytest.mark.parametrize("name", ["quickstart", "scripted", "map", "tools_and_progress"])
def test_recorded_examples_replay_there(name, tmp_path):
    command = [COMMAND, "test", "--trust-record"]
    done = subprocess.run(
        [*command, str(Path(CHECKOUT) / "examples" / f"{name}.ipynb")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "replayed" in done.stdout


def test_the_embedded_model_answers_there(tmp_path):
    command = [COMMAND, "run", "--live", "-o", str(tmp_path / "q.ipynb")]
    done = subprocess.run(
        [*command, str(Path(CHECKOUT) / "examples" / "quickstart.ipynb")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    cells = json.loads((tmp_path / "q.ipynb").read_text())["cells"]
    outputs = [o for cell in cells for o in cell.get("outputs", ())]
    assert sum(METADATA_KEY in o.get("metadata", {}) for o in outputs) >= 3
