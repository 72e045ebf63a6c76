"""Runs of Python code that end elsewhere: in a thread, a task, a tool, or after their cell."""

import json
import threading

import nbformat
import pytest

from agent_nb.cli.main import main
from agent_nb.notebook.cell.executions import install_executions, uninstall_executions
from agent_nb.record.ipynb import load_notebook
from agent_nb.tools.capture import OutputCapture

pytestmark = pytest.mark.kernel
SETUP = """%load_ext agent_nb
import asyncio, threading, time
from agent_nb import Agent
from agent_nb.models.scripted import Scripted
m = Scripted(["Hello."], delay=0.2)"""
THREAD = "thread = threading.Thread(target=Agent(m).run_sync, args=['two'])\nthread.start()"
TOOL = """async def ask(q: str) -> str:
    return (await Agent(m)(q, view=None)).answer
o = Scripted([{'calls': [{'name': 'ask', 'args': {'q': 'six'}}]}, 'End.'], dialect='native')"""


@pytest.fixture
def write(tmp_path):
    def write(*cells):
        nb = nbformat.v4.new_notebook()
        nb.cells = [
            nbformat.v4.new_code_cell(source, id=f"c{n}")
            for n, source in enumerate((SETUP, *cells))
        ]
        path = tmp_path / "n.ipynb"
        nbformat.write(nb, path)
        return path

    return write


def recorded(path):
    """Return the places of the recorded runs, by cell."""
    assert main(["run", "--live", "--inplace", str(path)]) == 0
    runs = load_notebook(path)["metadata"]["agent_nb"]["runs"]
    return {cell: sorted(r.get("ordinal", 0) for r in listed) for cell, listed in runs.items()}


def change(path, old, new):
    nb = json.loads(path.read_text())
    for cell in nb["cells"]:
        cell["source"] = "".join(cell["source"]).replace(old, new)
    path.write_text(json.dumps(nb))


@pytest.mark.long
def test_a_run_that_ends_while_a_later_cell_runs_belongs_to_its_own(write, capsys):
    path = write(
        "stream = Agent(m)('one', view=None).start()",
        THREAD,
        "await asyncio.sleep(1)\nthread.join()",
    )
    assert recorded(path) == {"c1": [1], "c2": [1]}
    assert main(["test", str(path)]) == 0
    assert "2 runs replayed" in capsys.readouterr().out


@pytest.mark.long
def test_runs_are_numbered_in_the_order_in_which_they_begin(write, capsys):
    path = write(
        "a, b = await asyncio.gather(Agent(m)('four'), Agent(m)('five'))\nasync for _ in Agent(m)('six'): pass"
    )
    assert recorded(path) == {"c1": [1, 2, 3]}
    assert main(["test", str(path)]) == 0
    assert "3 runs replayed" in capsys.readouterr().out


def test_a_run_inside_a_tool_plays_the_record_of_that_call(write, capsys):
    path = write(TOOL, "%%agent -m o -t ask\nGo on.")
    assert recorded(path) == {"c2": [0, 1]}
    assert main(["test", str(path)]) == 0
    assert "2 runs replayed" in capsys.readouterr().out


def test_a_cell_that_raises_the_error_of_its_replayed_run_fails(write, capsys):
    failing = "Scripted([{'error': {'status': 401, 'message': 'boom'}}])"
    path = write(
        f"try:\n    await Agent({failing})('one')\nexcept Exception as fault:\n    print(fault)"
    )
    assert recorded(path) == {"c1": [1]}
    assert main(["test", str(path)]) == 0
    change(path, "print(fault)", "raise")
    capsys.readouterr()
    assert main(["test", str(path)]) == 1
    assert "RunFailed: The run failed: " in capsys.readouterr().out


@pytest.mark.long
def test_three_executions_are_kept_with_all_their_runs(write):
    path = write("for n in range(4):\n    await Agent(m)(f'run {n} at {time.time()}', view=None)")
    for kept in (4, 8, 12, 12):
        assert len(recorded(path)["c1"]) == kept


@pytest.mark.long
def test_a_new_recording_drops_the_runs_of_code_that_begins_none(write, capsys):
    path = write("await Agent(m)('one', view=None)", "await Agent(m)('two', view=None)")
    assert recorded(path) == {"c1": [1], "c2": [1]}
    change(path, "await Agent(m)('one', view=None)", "1 + 1")
    assert main(["test", str(path)]) == 1
    assert "cell 2 (c1): 1 of 1 recorded runs did not begin" in capsys.readouterr().out
    assert recorded(path).keys() == {"c2"}
    assert main(["test", str(path)]) == 0


def test_prints_of_threads_stay_with_a_tool_when_the_extension_is_unloaded(shell):
    said = []
    with OutputCapture(said.append):
        for begin_or_end in (install_executions, uninstall_executions):
            begin_or_end(shell)
            thread = threading.Thread(target=print, args=["from a thread"])
            thread.start()
            thread.join()
    assert "".join(said) == "from a thread\n" * 2
