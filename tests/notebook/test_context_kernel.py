"""Context in a real kernel: Run All twice asks the model once, and what changes that."""

import asyncio
import json

import nbformat
import pytest
from helpers.model_server import Server
from helpers.paths import python_path
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from agent_nb.cli.main import main
from agent_nb.runner.cell_client import Client

pytestmark = pytest.mark.kernel

CODE = "total = int(df.n.sum())\nbig = df[df.n > 1]\ntotal"
AGENT = "%%agent -m openai/m -t python --approve auto\nSum up df."
MAKE = "import pandas as pd\nrows = 3\ndf = pd.DataFrame({'n': range(rows), 'city': 'Rome'})"


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A model's server that calls `python` and then answers; it counts."""

    def answer(peer):
        if peer.body["messages"][-1]["role"] == "tool" or "tools" not in peer.body:
            peer.stream({"choices": [{"delta": {"content": "Three."}}]}, _end("stop"))
            return
        call = {"name": "python", "arguments": json.dumps({"code": CODE})}
        delta = {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": call}]}
        peer.stream({"choices": [{"delta": delta}]}, _end("tool_calls"))

    server = Server(answer)
    monkeypatch.setenv("PYTHONPATH", python_path())
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-corpus-0123456789abcdef0123456789")
    yield server
    server.close()


def _end(reason):
    return {"choices": [{"delta": {}, "finish_reason": reason}]}


def notebook(*sources):
    cells = [new_code_cell(s, id=f"cell{n}") for n, s in enumerate(sources)]
    return new_notebook(cells=[new_code_cell("%load_ext agent_nb", id="load"), *cells])


def test_run_all_twice_in_one_kernel_asks_the_model_in_the_first_pass_only(server, tmp_path):
    """What the run made in the first pass, and what stands below, is there in the second."""
    nb = notebook(
        MAKE, AGENT, "below = (total, len(big))\nlater = df.copy()", AGENT.replace("df", "later")
    )
    resources = {"metadata": {"path": str(tmp_path)}}
    client = Client(nb, {}, lambda *_: None, resources=resources, timeout=60)

    @pytest.mark.long
    async def run_all_twice():
        client.reset_execution_trackers()
        async with client.async_setup_kernel():
            for _ in range(2):
                for index, cell in enumerate(nb.cells):
                    await client.async_execute_cell(cell, index)
                assert len(server.asked) == 4

    asyncio.run(run_all_twice())
    assert "df: pandas.DataFrame 3×2" in server.asked[0].body["messages"][-1]["content"]
    assert client.failures == []


@pytest.mark.long
def test_a_changed_frame_goes_live_in_the_kernel_and_fails_the_test(server, tmp_path, capsys):
    path = tmp_path / "n.ipynb"
    nbformat.write(notebook(MAKE, AGENT), path)
    assert main(["run", "--inplace", "--live", str(path)]) == 0
    assert len(server.asked) == 2
    assert main(["test", str(path)]) == 0
    nb = nbformat.read(path, 4)
    nb.cells[1].source = MAKE.replace("rows = 3", "rows = 4")
    nbformat.write(nb, path)
    capsys.readouterr()
    assert main(["test", str(path)]) == 1
    out = capsys.readouterr().out
    assert "`df` 3×2 → 4×2" in out
    assert len(server.asked) == 2
    assert main(["run", "--inplace", str(path)]) == 0
    assert len(server.asked) == 4
    page = json.dumps(nbformat.read(path, 4).cells[2].outputs, ensure_ascii=False)
    assert "`df` 3×2 → 4×2" in page


@pytest.mark.long
def test_plain_nbclient_gives_the_context_too(server, tmp_path):
    nb = notebook(MAKE, "1 / 0", "%%agent -m openai/m -t none --context cells\nWhy?")
    nb.cells[2].metadata["tags"] = ["raises-exception"]
    NotebookClient(nb, resources={"metadata": {"path": str(tmp_path)}}, timeout=60).execute()
    prompt = server.asked[-1].body["messages"][-1]["content"]
    assert "ZeroDivisionError" in prompt
    assert prompt.index("1 / 0") < prompt.index("import pandas as pd")


@pytest.mark.long
def test_fix_in_a_kernel_replays_with_the_same_traceback(server, tmp_path, capsys):
    nb = notebook("x = 1", "def f():\n    return 1 / 0\nf()", "%%agent -m openai/m --fix")
    nb.cells[2].metadata["tags"] = ["raises-exception"]
    path = tmp_path / "n.ipynb"
    nbformat.write(nb, path)
    assert main(["run", "--inplace", "--live", str(path)]) == 0
    prompt = server.asked[0].body["messages"][-1]["content"]
    assert "return 1 / 0" in prompt
    assert "ZeroDivisionError: division by zero" in prompt
    assert main(["test", str(path)]) == 0
    asked = len(server.asked)
    nb = nbformat.read(path, 4)
    nb.cells[2].source = "f = 1"
    nbformat.write(nb, path)
    capsys.readouterr()
    assert main(["run", "--inplace", str(path)]) == 0
    assert len(server.asked) == asked
    assert "ok, replayed" in capsys.readouterr().out
