"""Without clicks (ipykernel 6.31) the front end's own means do: its interrupt button, and a
question under the card. ■ works everywhere.
"""

import time

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

# s, for the busiest machine: left alone the runs here go on for ten minutes; each test prints what
# it took (wanted: 1 s)
BOUND = 90.0
OLD = ("lab", "6.31")
FRONTS = [("lab", "this"), ("notebook", "this"), ("lab", "7.3"), OLD]
PREPARE = """
import json, time
from agent_nb import Scripted, tool
%load_ext agent_nb

def calling(name, **args):
    return Scripted([f"<execute>{json.dumps([{'name': name, 'args': args}])}</execute>", "That is all."])

sent = []
talk = Scripted([{"text": "<think>Where do I begin?</think>" + "I am still writing. " * 7500, "chunk": 5, "delay": 0.02}])
blocking = calling("python", code="print('begun')\\ntime.sleep(600)")
sending = calling("send", text="hello")

@tool(side_effects=True)
def send(text: str) -> str:
    "Send a text."
    sent.append(text)
    return f"sent: {text}"
"""


@pytest.fixture(scope="module")
def fronts(opened):
    """Give a notebook of a front end, opened once."""
    made = {}

    def front(app, kernel):
        if (app, kernel) not in made:
            made[app, kernel] = opened(app, kernel)
            made[app, kernel].run(PREPARE)
        return made[app, kernel]

    return front


@pytest.fixture
def old(fronts):
    """A notebook whose kernel hears no click before the cell has ended."""
    return fronts(*OLD)


def interrupt(front, cell):
    """Press the button of the front end's toolbar; the cell ends soon."""
    start = time.monotonic()
    front.page.locator("[data-command='notebook:interrupt-kernel']:visible").first.click()
    front.wait(cell, BOUND)
    took = time.monotonic() - start
    print(f"{front.app}: the cell ended {1000 * took:.0f} ms after the interrupt button")
    assert took < BOUND
    events = front.events()
    assert [e["type"] for e in events[-2:]] == ["interrupt", "end"]
    assert events[-2]["detail"] == "kernel interrupt"
    return events


@pytest.mark.parametrize("front", FRONTS, ids="-".join)
def test_the_interrupt_button_ends_a_run_and_keeps_the_kernel(fronts, front):
    front = fronts(*front)
    cell = front.begin("%%agent -m talk --live\nWrite.")
    front.sees(cell, "I am still writing")
    events = interrupt(front, cell)
    assert [e["incomplete"] for e in events if e["type"] == "respond"] == [True]
    cell = front.begin("%%agent -m blocking -t python --approve auto --live\nCompute.")
    front.sees(cell, "begun")
    interrupt(front, cell)
    assert front.value("1 + 1") == 2


def test_the_stop_button_says_what_to_use_instead(old):
    cell = old.begin("%%agent -m talk --live\nWrite.")
    old.sees(cell, "I am still writing")
    assert old.button(cell, "use ■ to stop").is_disabled()
    interrupt(old, cell)


def ask(front):
    """Begin a run that asks, and return its cell and the field for the answer."""
    front.value("sent.clear()")
    cell = front.begin("%%agent -m sending -t send --live\nSend.")
    field = front.output(cell).locator("input.jp-Stdin-input")
    field.wait_for()
    return cell, field


@pytest.mark.parametrize(
    ("answer", "sent", "decision"), [("y", ["hello"], "allow"), ("n", [], "deny")]
)
def test_a_question_is_answered_by_typing_under_the_card(old, answer, sent, decision):
    cell, field = ask(old)
    old.sees(cell, "Answer in the prompt below")
    card = old.output(cell).get_by_text("Answer in the prompt below").bounding_box()
    assert field.bounding_box()["y"] > card["y"]
    assert "text = hello" in old.output(cell).inner_text()
    start = time.monotonic()
    field.fill(answer)
    field.press("Enter")
    old.wait(cell, BOUND)
    print(f"{old.app}: decided {1000 * (time.monotonic() - start):.0f} ms after the answer")
    assert old.value("sent") == sent
    assert [
        (e["decision"], e["by"]) for e in old.events() if e["type"] == "approval" and e["decision"]
    ] == [(decision, "stdin")]


def test_an_interrupt_instead_of_an_answer_runs_nothing(old):
    cell, _ = ask(old)
    events = interrupt(old, cell)
    assert old.value("sent") == []
    assert [e["status"] for e in events if e["type"] == "result"] == ["cancelled"]
