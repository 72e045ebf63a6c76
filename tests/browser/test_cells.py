"""Cells in a real JupyterLab: run again, and their record in the file, also when outputs are
cleared.
"""

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

WIDGET = "application/vnd.jupyter.widget-view+json"
SETUP = """
%load_ext agent_nb
from agent_nb import Scripted
slow = Scripted([{"text": "I am still writing, word after word. " * 200, "chunk": 8, "delay": 0.05}])
"""
SLOW = "%%agent -m slow --live\nWrite."


@pytest.fixture(scope="module")
def notebook(opened):
    """A notebook with the extension and a model in its kernel."""
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


def test_a_rerun_does_not_see_its_own_answer(notebook):
    notebook.run("answers = Scripted(['An answer.'])")
    index = notebook.add("%%agent -m answers -c alone --live\nSay it.")
    sent = []
    for _ in range(2):
        notebook.start(index)
        notebook.wait(index)
        sent.append(next(e for e in notebook.events() if e["type"] == "node")["data"]["messages"])
    assert sent[0] == sent[1]


def test_the_record_survives_cleared_outputs_and_the_view_a_fresh_kernel(opened):
    notebook = opened("lab", name="record", cells=(SETUP,))
    notebook.start(0)
    notebook.wait(0)
    index = stopped(notebook)
    saved = notebook.save()
    cell = saved.cells[index]
    page, stop = cell.outputs
    assert WIDGET not in page.data
    assert "text/html" in page.data
    assert stop.ename == "AgentStopped"
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
