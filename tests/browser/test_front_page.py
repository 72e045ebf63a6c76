"""The pictures on the front page: a question about a DataFrame with the plot that the agent looked
at; a tool that is half done beside a question with its diff; and what stays of a run, in the dark
theme.

`AGENT_NB_SHOTS=examples pytest tests/browser/test_front_page.py` makes `examples/quickstart.png`,
`examples/tools.png` and `examples/finished.png` again.
"""

import json
import shutil

import nbformat
import pytest
from helpers.paths import EXAMPLES
from helpers.scripts import batch
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

GREENHOUSE = '''
import time
from pathlib import Path

import numpy as np
import pandas as pd

hours = pd.date_range("2026-04-01", "2026-04-30 23:00", freq="h", name="time")
rng = np.random.default_rng(4)
house = 19 + 4 * np.sin(2 * np.pi * (hours.hour.to_numpy() - 9) / 24) + rng.normal(0, 0.5, len(hours)).cumsum() * 0.02
drift = 0.09 * np.clip((hours - pd.Timestamp("2026-04-12")) / pd.Timedelta("1D"), 0, None)
readings = pd.DataFrame(
    {name: house + rng.normal(0, 0.15, len(hours)) + (drift if name == "b" else 0) for name in "abc"}, index=hours
).round(2)


def bootstrap(column: str, start: str, rounds: int = 20_000):
    """Estimate by resampling by how much a sensor leaves the others each day.

    column: the sensor
    start: the first day
    rounds: how many resamples
    """
    gap = (readings[column] - readings.drop(columns=column).mean(axis=1))[start:].resample("D").mean()
    days, rng, slopes = np.arange(len(gap)), np.random.default_rng(1), []
    for done in range(1, rounds + 1):
        pick = rng.integers(0, len(gap), len(gap))
        slopes.append(np.polyfit(days[pick], gap.to_numpy()[pick], 1)[0])
        if done % 200 == 0:
            time.sleep(0.05)
            yield {"done": done, "total": rounds, "unit": "resamples"}
        while done == 16_000 and not Path("seen").exists():  # until the picture is taken
            time.sleep(0.02)
        if done % 4000 == 0:
            low, middle, high = np.percentile(slopes, [2.5, 50, 97.5])
            yield f"{done:>6,}  {middle:+.4f} °C a day   95 %: {low:+.4f} … {high:+.4f}\\n"
    return {"slope": round(middle, 4), "low": round(low, 4), "high": round(high, 4)}
'''
COMPARE = """gap = readings.b - readings[['a', 'c']].mean(axis=1)
daily = gap.resample('D').mean()
daily['2026-04-10':'2026-04-14'].round(2)"""
CORRECTION = """def corrected(b):
    return b - 0.09 * (b.index - b.index[264]).days.to_numpy().clip(0)
"""
ANSWER = """Sensor **b** drifts since **12 April**, by **0.09 °C a day**: at the end of the month it reads 1.6 °C too warm.

| sensor | against the others | since |
|---|---|---|
| a, c | none | |
| b | +0.09 °C a day | 12 April |

`corrected(readings.b)` in `correction.py` takes the drift out. Have the sensor looked at before May.
"""


FIRST = "<think>Sensors a and c hang in the same house: I compare b with their mean, day by day.</think>"
SECOND = "<think>Flat until 11 April, then a steady rise. How sure is the slope? I bootstrap it, and write a correction meanwhile.</think>"
BOTH = batch(
    ("bootstrap", {"column": "b", "start": "2026-04-12"}),
    ("write", {"file": "correction.py", "content": CORRECTION}),
)
TURNS = [
    {
        "text": FIRST + batch(("python", {"code": COMPARE})),
        "chunk": 6,
        "delay": 0.05,
        "usage": {"input": 812, "output": 96},
    },
    {"text": SECOND + BOTH, "chunk": 6, "delay": 0.05, "usage": {"input": 1046, "output": 188}},
    {"text": ANSWER, "chunk": 5, "delay": 0.01, "usage": {"input": 1310, "output": 121}},
]
LARGEST = 250_000  # bytes of a picture
POLICY = "rules:\n  - allow: [python, bootstrap]\n  - ask: write\n"
CELLS = [
    new_markdown_cell("### Greenhouse, April: can sensor b be trusted?"),
    new_code_cell(
        "%load_ext agent_nb\nfrom greenhouse import bootstrap, readings  # any function can be a tool"
    ),
    new_code_cell(
        "%%agent -m scripted/drift.json -t python,bootstrap,write --approve policy.yaml\n"
        "Sensor b reads too warm. Since when, and by how much a day? Write a correction."
    ),
]

QUESTION = [
    new_markdown_cell("### Greenhouse, April"),
    new_code_cell(
        "%load_ext agent_nb\n%config AgentMagics.approve = 'auto'\nimport matplotlib.pyplot as plt\nimport pandas as pd\n"
        "readings = pd.read_csv('readings.csv', index_col='time', parse_dates=True)"
    ),
    new_code_cell(
        "%%agent -m scripted/which_sensor.yaml -t python,add_cell\n"
        "Which sensor of `readings` is wrong, and since when? Look at a plot."
    ),
]


@pytest.fixture(scope="module")
def window(browser_context):
    """A window of the size of the pictures."""
    context = browser_context.browser.new_context(
        viewport={"width": 1100, "height": 790}, device_scale_factor=1.5
    )
    yield context
    context.close()


@pytest.fixture(scope="module")
def front(server, window, new_page):
    """The notebook with a tool and a question."""
    folder = server.root / "greenhouse"
    folder.mkdir(exist_ok=True)  # a second try of the test makes it again
    (folder / "greenhouse.py").write_text(GREENHOUSE)
    (folder / "drift.json").write_text(json.dumps(TURNS))
    (folder / "policy.yaml").write_text(POLICY)
    notebook = opened(new_page, window, server, "greenhouse/sensors.ipynb", CELLS)
    notebook.value(
        "__import__('agent_nb.notebook.cell.trusting', fromlist=['']).trust_folder(['policy.yaml'])"
    )
    yield notebook
    notebook.close()
    server.end_kernels()


@pytest.fixture(scope="module")
def question(server, window, new_page):
    """The notebook with a question about a frame."""
    folder = server.root / "april"
    folder.mkdir(exist_ok=True)
    shutil.copy(EXAMPLES / "greenhouse" / "readings.csv", folder)
    shutil.copy(EXAMPLES / "scripts" / "which_sensor.yaml", folder)
    notebook = opened(new_page, window, server, "april/question.ipynb", QUESTION)
    yield notebook
    notebook.close()
    server.end_kernels()


def opened(new_page, window, server, path, cells):
    """Write a notebook and open it, the left side bar closed, its second cell run."""
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": spec}), server.root / path)
    notebook = new_page(window, server, "lab", path)
    notebook.command("application:toggle-left-area")
    if notebook.page.locator("#jp-main-statusbar").is_visible():
        notebook.command("statusbar:toggle")
    notebook.start(1)
    notebook.wait(1)
    return notebook


def test_a_plot_that_the_agent_draws_stands_in_its_card(question):
    cell = 2
    question.start(cell)
    question.wait(cell)
    assert question.value("_agent.status") == "ok"
    assert question.output(cell).locator("img").count() == 1
    question.page.set_viewport_size({"width": 1100, "height": 890})
    question.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.scrollToItem(0)")
    assert question.shot("quickstart").stat().st_size < LARGEST


def test_a_question_can_be_answered_while_another_tool_runs(front):
    cell = 2
    seen = front.server.root / "greenhouse" / "seen"
    seen.unlink(missing_ok=True)
    front.start(cell)
    front.button(cell, "Approve").wait_for()
    front.sees(cell, "12,000  +")
    assert front.output(cell).locator(".progress-bar").count() == 1
    front.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.scrollToItem(0)")
    assert front.shot("tools").stat().st_size < LARGEST
    seen.touch()
    front.button(cell, "Approve").click()
    front.sees(cell, "0.09 °C a day: at the end")
    front.wait(cell)
    assert front.value("_agent.status") == "ok"
    assert (front.server.root / "greenhouse" / "correction.py").read_text() == CORRECTION
    front.theme("JupyterLab Dark")
    front.unfold(cell, "readings.b - readings[")
    front.output(cell).get_by_text("readings.b - readings[").last.wait_for()
    front.page.set_viewport_size({"width": 1100, "height": 890})
    front.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.scrollToItem(0)")
    assert front.shot("finished").stat().st_size < LARGEST
    front.theme("JupyterLab Light")
