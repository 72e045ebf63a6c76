"""A queue of cells that is stopped at its first: one line below its card, and no cell behind it
runs, an `%%agent` cell least of all.
"""

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

SETUP = """
%load_ext agent_nb
from agent_nb import Agent, Scripted

asked = []

class Counted(Scripted):
    "Counts how often it is asked."

    def start(self):
        asked.append(self.identity)
        return super().start()

text = "Tides follow the moon. The sun has a part in it too, though a smaller one.\\n\\n" * 200
talk = Counted([{"text": "<think>Where do I begin?</think>" + text, "chunk": 5, "delay": 0.02}])
"""
LINE = "what is queued behind this cell does not run"
QUEUE = (
    "%%agent -m talk --live\nWrite about tides.",
    "ran = True",
    "%%agent -m talk --live\nWrite about the moon.",
)
AWAITED = ("run = await Agent(talk)('Write about tides.')", *QUEUE[1:])
FRONTS = [
    ("lab", "this", "button"),
    ("lab", "this", "interrupt"),
    ("notebook", "this", "button"),
    ("lab", "7.3", "button"),
    ("lab", "6.31", "interrupt"),
]


def press(front, how):
    if how == "button":
        front.button(1, "■ Stop").click()
    else:
        front.page.locator("[data-command='notebook:interrupt-kernel']:visible").first.click()


@pytest.mark.parametrize("queue", [QUEUE, AWAITED], ids=["agent", "awaited"])
@pytest.mark.parametrize(
    ("app", "kernel", "how"), FRONTS, ids=["-".join(front) for front in FRONTS]
)
def test_a_stop_of_the_first_cell_stops_the_queue(opened, app, kernel, how, queue):
    front = opened(app, kernel, name="queue", cells=(SETUP, *queue))
    front.start(0)
    front.wait(0)
    for index in range(1, 4):
        front.start(index)
    front.sees(1, "Tides follow the moon.")
    press(front, how)
    for index in range(1, 4):
        front.wait(index)
    front.sees(1, LINE)
    shown = front.output(1).inner_text()
    assert "Tides follow the moon." in shown
    assert [line for line in shown.splitlines() if LINE in line] == [
        shown.rstrip().splitlines()[-1]
    ]
    assert "Traceback" not in shown
    assert front.value("[len(asked), 'ran' in globals(), _agent.status]") == [
        1,
        False,
        "interrupted",
    ]
    assert front.output(3).inner_text().strip() == ""
    if (how, queue) == ("button", QUEUE) and kernel == "this":
        front.shot(f"stopped-queue-{app}-light")
        if app == "lab":
            front.theme("JupyterLab Dark")
            front.shot("stopped-queue-lab-dark")
            front.theme("JupyterLab Light")
    front.run("asked.clear()")
    front.start(2)
    front.wait(2)
    assert front.value("ran")
    front.close()
