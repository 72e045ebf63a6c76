"""Cells of the table of profiles (`tests/profiles/table.py`) in JupyterLab and Notebook 7 that no
other test of a browser shows.
"""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

WIDGET = "application/vnd.jupyter.widget-view+json"
FRONTS = {"lab": "lab", "notebook7": "notebook"}
POLICY = "rules:\n  - allow: send\n    args: {text: hello}\n    reason: greetings are fine\n"
PREPARE = """
import json
from agent_nb import Scripted, tool
from agent_nb.models.parts import Text
%load_ext agent_nb

class Broken:
    name, dialect, grammar, shots, context = "test/broken", "xml", False, False, 0
    def start(self): return self
    async def stream(self, request):
        yield (Text("Half an answer"),)
        raise RuntimeError("the model is on fire")
    async def aclose(self): pass

sent, broken = [], Broken()
talk = Scripted([{"text": "<think>Where do I begin?</think>" + "I am still writing. " * 1000, "chunk": 5, "delay": 0.02}])
sending = Scripted(['<execute>[{"name": "send", "args": {"text": "hello"}}]</execute>', "That is **all**."])

@tool(side_effects=True)
def send(text: str) -> str:
    "Send a text."
    sent.append(text)
    return f"sent: {text}"
"""


ALLOWED = (
    "__import__('agent_nb.notebook.cell.trusting', fromlist=['']).trust_folder(['policy.yaml'])"
)


@pytest.fixture(scope="module", params=FRONTS)
def front(request, opened):
    """A notebook in a Jupyter front end."""
    notebook = opened(FRONTS[request.param], name="profile", cells=(PREPARE,))
    (notebook.server.root / "policy.yaml").write_text(POLICY)
    notebook.start(0)
    notebook.wait(0)
    notebook.value(ALLOWED)
    yield notebook
    notebook.close()


def stop(front, cell):
    front.button(cell, "■ Stop").click()
    front.wait(cell)


def test_live_cards(front):
    cell = front.begin("%%agent -m talk --live\nWrite.")
    front.button(cell, "■ Stop").wait_for()
    front.sees(cell, "I am still writing")
    assert front.output(cell).locator(".jupyter-widgets.agent-nb").count() == 1
    front.sees(cell, "Thought")
    stop(front, cell)
    front.output(cell).locator(".jupyter-widgets").first.wait_for(state="detached")
    assert front.output(cell).locator("details").count() >= 1


def test_the_answer_is_seen_while_it_is_written(front):
    cell = front.begin("%%agent -m talk --live\nWrite.")
    front.sees(cell, "I am still writing. ")
    for _ in range(3):
        seen = front.output(cell).inner_text().count("I am still writing. ")
        front.sees(cell, "I am still writing. " * (seen + 1))
    stop(front, cell)
    [answer] = [e for e in front.events() if e["type"] == "respond"]
    assert answer["incomplete"]


def test_a_run_that_broke_leaves_a_static_page(front):
    cell = front.run("%%agent -m broken --live\nGo.")
    front.sees(cell, "the model is on fire")
    front.sees(cell, "✕ failed")
    front.output(cell).locator(".jupyter-widgets").wait_for(state="detached")
    shown = [o for o in front.save().cells[cell].outputs if o.output_type == "display_data"]
    assert [WIDGET in o.data for o in shown] == [False]
    assert "Half an answer" in shown[0].data["text/html"]
    assert front.value("1 + 1") == 2


def test_what_a_policy_decides_is_an_event(front):
    front.value("sent.clear()")
    cell = front.run("%%agent -m sending -t send --approve policy.yaml --live\nSend.")
    front.sees(cell, "That is all.")
    [decided] = [e for e in front.events() if e["type"] == "approval"]
    assert (decided["stage"], decided["decision"], decided["by"]) == ("decided", "allow", "policy")
    assert "greetings are fine" in decided["reason"]
    assert front.value("sent") == ["hello"]


def test_a_run_at_the_end_of_a_cell_is_its_static_page(front):
    front.run("%%agent -m sending -t send --approve policy.yaml --live\nSend.")
    cell = front.run("_agent")
    front.sees(cell, "That is all.")
    output = front.output(cell)
    assert output.locator(".agent-nb").count() == 1
    assert output.locator(".jupyter-widgets").count() == 0
    assert "sent: hello" in output.inner_text()


def test_a_question_is_typed_where_no_click_arrives(opened):
    """Notebook 7 with ipykernel 6; JupyterLab's is in `test_keyboard.py`."""
    old = opened("notebook", "6.31", name="typed", cells=(PREPARE,))
    old.start(0)
    old.wait(0)
    cell = old.begin("%%agent -m sending -t send --live\nSend.")
    field = old.output(cell).locator("input.jp-Stdin-input")
    field.wait_for()
    old.sees(cell, "Answer in the prompt below")
    field.fill("y")
    field.press("Enter")
    old.wait(cell)
    assert old.value("sent") == ["hello"]
