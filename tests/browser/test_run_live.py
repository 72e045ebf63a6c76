"""The button of a replayed cell in JupyterLab and Notebook 7: it runs the cell live in its place,
and the saved file never has widgets.
"""

from __future__ import annotations

import json

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]
WIDGET = "application/vnd.jupyter.widget-view+json"
IDLE = "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'"
SETUP = """
%load_ext agent_nb
from agent_nb import Scripted
class Once(Scripted):
    "Goes on where it stopped."
    identity = "once"
    def start(self):
        return self
model = Once(["<think>At first.</think>The **first** answer.", "<think>And then.</think>The **second** answer."])
"""
CELL = "%%agent -m model\nWhat do you say?"


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_replayed_cell_is_run_live_by_its_button(opened, app):
    front = opened(app, name=f"run-live-{app}", cells=(SETUP, CELL))
    for index in (0, 1, 1):
        front.start(index)
        front.wait(index)
    front.sees(1, "replayed")
    front.button(1, "↻ Run live").wait_for()
    front.shot(f"{app}-run-live")
    saved = front.save()
    data = saved["cells"][1]["outputs"][0]["data"]
    assert WIDGET not in data
    assert "first" in "".join(data["text/plain"])
    [first] = saved["metadata"]["agent_nb"]["runs"][saved["cells"][1]["id"]]
    front.button(1, "↻ Run live").click()
    front.sees(1, "second")
    front.output(1).get_by_text("replayed").wait_for(state="detached")
    front.page.wait_for_function(IDLE)
    front.shot(f"{app}-ran-live")
    saved = front.save()
    assert not saved["cells"][1]["outputs"][1:], saved["cells"][1]["outputs"][1:]
    newest, before = saved["metadata"]["agent_nb"]["runs"][saved["cells"][1]["id"]]
    assert before == first
    assert "second" in json.dumps(newest)
    assert not [text for text in front.errors() if not of_others(text)]


def of_others(text):
    """Return whether an error of the console is a missing static file."""
    return "Failed to load resource" in text
