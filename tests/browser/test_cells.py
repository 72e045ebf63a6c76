"""Cells in a real JupyterLab: stopped and approved while they run, and their record in the file afterwards."""

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

WIDGET = "application/vnd.jupyter.widget-view+json"
SETUP = """
%load_ext agent_nb
from agent_nb import Scripted
slow = Scripted([{"text": "I am still writing, word after word. " * 200, "chunk": 8, "delay": 0.05}])
asks = Scripted(['<execute>[{"name": "python", "args": {"code": "answered = 6 * 7"}}]</execute>', "There is an **answer**."])
"""
SLOW = "%%agent -m slow --live\nWrite."
ASKS = "%%agent -m asks -t python --live\nCompute."


@pytest.fixture(scope="module")
def notebook(opened):
    """A notebook with the extension and two models in its kernel."""
    notebook = opened("lab", cells=(SETUP,))
    notebook.start(0)
    notebook.wait(0)
    return notebook


def stopped(notebook):
    """Run the slow cell, stop it by its button while it writes, and return its index."""
    index = notebook.begin(SLOW)
    notebook.sees(index, "word after word")
    notebook.button(index, "■ Stop").click()
    notebook.wait(index)
    return index


def test_stop_ends_a_streaming_cell_and_the_next_works(notebook):
    index = stopped(notebook)
    notebook.sees(index, "Stopped")
    assert [e["type"] for e in notebook.events()[-2:]] == ["interrupt", "end"]
    notebook.sees(notebook.run("print('next', 6 * 7)"), "next 42")


def test_the_kernels_interrupt_ends_a_streaming_cell(notebook):
    index = notebook.begin(SLOW)
    notebook.sees(index, "word after word")
    notebook.command("notebook:interrupt-kernel")
    notebook.wait(index)
    assert notebook.events()[-1]["status"] == "interrupted"


@pytest.mark.parametrize(("button", "decision", "status"), [("Approve", "allow", "ok"), ("Deny", "deny", "denied")])
def test_a_call_is_decided_by_a_click_while_the_cell_runs(notebook, button, decision, status):
    index = notebook.begin(ASKS)
    notebook.button(index, button).click(timeout=20_000)
    notebook.wait(index)
    events = notebook.events()
    decided = [(e["decision"], e["by"]) for e in events if e["type"] == "approval" and e.get("stage") == "decided"]
    assert decided == [(decision, "click")]
    assert [e.get("status", "ok") for e in events if e["type"] == "result"] == [status]


def test_a_rerun_does_not_see_its_own_answer(notebook):
    notebook.run("answers = Scripted(['An answer.'])")
    index = notebook.add("%%agent -m answers -c alone --live\nSay it.")
    sent = []
    for _ in range(2):
        notebook.start(index)
        notebook.wait(index)
        sent.append(next(e for e in notebook.events() if e["type"] == "node")["data"]["messages"])
    assert sent[0] == sent[1]


def test_the_record_is_saved_survives_cleared_outputs_and_the_view_a_fresh_kernel(opened):
    notebook = opened("lab", name="record", cells=(SETUP,))
    notebook.start(0)
    notebook.wait(0)
    index = stopped(notebook)
    saved = notebook.save()
    cell = saved.cells[index]
    [output] = cell.outputs
    assert WIDGET not in output.data
    assert "text/html" in output.data
    [record] = saved.metadata.agent_nb.runs[cell.id]
    notebook.close()
    notebook.server.end_kernels()
    notebook.open()
    notebook.sees(index, "word after word")
    assert "Error displaying widget" not in notebook.output(index).inner_text()
    notebook.command("notebook:clear-all-cell-outputs")
    cleared = notebook.save()
    assert cleared.cells[index].outputs == []
    assert cleared.metadata.agent_nb.runs[cell.id] == [record]
