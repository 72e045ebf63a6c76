"""Plots in the card of their call: while the run goes on, after its end, after a reload, exported;
on light and on dark ground.
"""

import json

import pytest

from agent_nb.cli.main import main

pytest.importorskip("matplotlib")
pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

PLOT = """
import matplotlib.pyplot as plt
fig, ax = plt.subplots(figsize=(7, 3))
ax.plot(prices, color="tab:blue")
ax.axhline(sum(prices) / len(prices), color="tab:red", linestyle="--")
ax.set_title("Price per day")
ax.set_xlabel("day")
plt.show()
import time
while not Path("plot-drawn").exists():
    time.sleep(0.02)
print("mean", sum(prices) / len(prices))
"""
BARS = """
fig, ax = plt.subplots(figsize=(4, 3))
ax.bar(["oak", "elm", "ash"], [62, 41, 17])
ax.set_title("Trees")
fig
"""
PREPARE = f"""
import json, math
from pathlib import Path
from agent_nb import Scripted, tool
%load_ext agent_nb
prices = [10 + 3 * math.sin(n / 5) + (n % 7) / 4 for n in range(90)]

@tool
def pause():
    "Wait."
    import time
    while not Path("plot-seen").exists():
        time.sleep(0.02)
    return "on"

def call(name, **args):
    return "<execute>" + json.dumps([{{"name": name, "args": args}}]) + "</execute>"

work = Scripted([
    "<think>I look at the prices.</think>" + call("python", code={PLOT!r}),
    call("pause"),
    "<think>And at the trees.</think>" + call("python", code={BARS!r}),
    "Prices swing around **11**; there is most *oak*.",
])
"""
ASK = "%%agent -m work -t python -t pause --approve auto\nWhat do the prices do?"
DRAWN = """index => {
    const cell = window.jupyterapp.shell.currentWidget.content.widgets[index].node;
    const found = [...cell.querySelectorAll('.jp-Cell-outputWrapper img')];
    return found.map(i => ({width: i.naturalWidth, shown: Math.round(i.getBoundingClientRect().width), alt: i.alt, done: i.complete,
                            live: Boolean(i.closest('.jupyter-widgets'))}));
}"""


def drawn(notebook, cell):
    """Return the pictures that the output of a cell shows."""
    return notebook.page.evaluate(DRAWN, cell)


def sees_pictures(notebook, cell, number):
    """Wait until the output of a cell shows so many pictures, whole; return them."""
    notebook.page.wait_for_function(
        f"([i, n]) => {{ const found = ({DRAWN})(i); return found.length === n && found.every(p => p.width); }}",
        arg=[cell, number],
    )
    return drawn(notebook, cell)


def test_a_plot_stands_in_the_card_of_its_call_from_the_first_moment_on(opened, tmp_path):
    notebook = opened("lab", name="plots", cells=(PREPARE,))
    for name in ("plot-drawn", "plot-seen"):  # of a try before this one: the folder is shared
        (notebook.server.root / name).unlink(missing_ok=True)
    notebook.start(0)
    notebook.wait(0)
    cell = notebook.begin(ASK)
    (begun,) = sees_pictures(notebook, cell, 1)  # the code that drew it still runs
    notebook.shot("plot-while-its-code-runs")
    (notebook.server.root / "plot-drawn").touch()
    notebook.sees(cell, "running pause")
    (plot,) = sees_pictures(notebook, cell, 1)
    assert plot == begun
    assert plot["live"]
    assert plot["alt"].startswith("figure 1 of python")
    assert plot["shown"] <= plot["width"]
    notebook.shot("plot-while-it-runs")
    (notebook.server.root / "plot-seen").touch()
    notebook.wait(cell)
    first, second = sees_pictures(notebook, cell, 2)
    assert not first["live"]
    assert not second["live"]
    assert notebook.output(cell).locator(".jp-RenderedImage").count() == 0
    notebook.shot("plot-after-the-end", full_page=True)
    notebook.theme("JupyterLab Dark")
    notebook.shot("plot-on-dark", full_page=True)
    notebook.theme("JupyterLab Light")
    saved = notebook.save()
    assert len(saved.cells[cell].outputs) == 1
    notebook.close()
    notebook.server.end_kernels()
    notebook.open()
    again = sees_pictures(notebook, cell, 2)
    assert [p["width"] for p in again] == [first["width"], second["width"]]
    notebook.shot("plot-after-a-reload", full_page=True)
    page = tmp_path / "page.html"
    assert main(["export", str(notebook.server.root / notebook.name), "-o", str(page)]) == 0
    notebook.page.goto(page.as_uri())
    widths = notebook.page.evaluate("() => [...document.images].map(i => i.naturalWidth)")
    assert widths == [first["width"], second["width"]]
    notebook.shot("plot-exported", full_page=True)
    assert json.dumps(saved).count("image/png;base64") == 2
