"""Charts, tables and widgets that a tool displays: at their call while the run goes on, after its
end, in an untrusted notebook; in JupyterLab and Notebook 7, on light and on dark ground.
"""

import nbformat
import pytest
from helpers.pictures import base64_of, png

pytest.importorskip("plotly")
pytest.importorskip("altair")
pytest.importorskip("pandas")
pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

PREPARE = """
import json
from pathlib import Path
import pandas as pd
from agent_nb import Scripted, tool
%load_ext agent_nb
trips = pd.DataFrame({"minutes": [4, 9, 9, 12, 15, 22, 31], "line": list("ABABABA")})

@tool
def pause():
    "Wait."
    import time
    while not Path("charts-seen").exists():
        time.sleep(0.02)
    return "on"

@tool
def sketch():
    "Display a table."
    display(trips.head(2))
    return "drawn"

def call(name, **args):
    return "<execute>" + json.dumps([{"name": name, "args": args}]) + "</execute>"

work = Scripted([
    "I draw the minutes." + call("python", code="import plotly.express as px\\npx.histogram(trips, x='minutes', height=260)"),
    "Now by line." + call("python", code="import altair as alt\\nalt.Chart(trips).mark_bar().encode(x='line', y='mean(minutes)')"),
    call("sketch"),
    call("python", code="import ipywidgets\\nipywidgets.IntSlider(7, description='bins')"),
    call("pause"),
    "Most trips take **nine** minutes.",
])
"""
ASK = "%%agent -m work -t python -t sketch -t pause --approve auto\nHow long are the trips?"
PICTURE = base64_of(png(300, 200))
# what stands in the output of a cell, from top to bottom
ORDER = """index => {
    const cell = window.jupyterapp.shell.currentWidget.content.widgets[index].node;
    const kinds = {plotly: '.js-plotly-plot, .jp-RenderedPlotly', altair: '.vega-embed', table: 'table', slider: '.widget-slider, .jupyter-widget-slider, .widget-hslider',
                   picture: '.jp-RenderedImage img'};
    const found = Object.entries(kinds).flatMap(([kind, select]) => [...cell.querySelectorAll(select)]
        .filter(node => node.getBoundingClientRect().height > 20).map(node => [kind, node.getBoundingClientRect().top]));
    const texts = ['I draw the minutes', 'Now by line', 'Most trips take'];
    const walk = document.createTreeWalker(cell.querySelector('.jp-Cell-outputWrapper'), NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const text = texts.find(t => walk.currentNode.data.includes(t));
        const box = walk.currentNode.parentElement.getBoundingClientRect();
        if (text && box.height) found.push([text, box.top]);
    }
    const kept = found.sort((a, b) => a[1] - b[1]).map(([kind]) => kind);
    return kept.filter((kind, n) => kind !== kept[n - 1]);
}"""
DRAWN = ["I draw the minutes", "plotly", "Now by line", "altair", "table", "slider"]
ENDED = [*DRAWN, "Most trips take"]


def stands(notebook, cell, order):
    """Wait until the output of a cell has these, from top to bottom."""
    wait = f"([i, order]) => JSON.stringify(({ORDER})(i)) === JSON.stringify(order)"
    try:
        notebook.page.wait_for_function(wait, arg=[cell, order])
    except Exception:
        assert notebook.page.evaluate(ORDER, cell) == order


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_charts_stand_at_their_call_live_and_after(opened, app):
    notebook = opened(app, name="charts", cells=(PREPARE,))
    (notebook.server.root / "charts-seen").unlink(missing_ok=True)
    notebook.start(0)
    notebook.wait(0)
    cell = notebook.begin(ASK)
    notebook.sees(cell, "running pause")
    stands(notebook, cell, DRAWN)
    notebook.shot(f"charts-live-{app}", full_page=True)
    (notebook.server.root / "charts-seen").touch()
    notebook.wait(cell)
    stands(notebook, cell, ENDED)
    notebook.page.set_viewport_size({"width": 1200, "height": 2600})
    notebook.shot(f"charts-after-{app}", full_page=True)
    if app == "lab":
        notebook.theme("JupyterLab Dark")
        notebook.shot("charts-dark", full_page=True)
        notebook.theme("JupyterLab Light")
    saved = notebook.save()
    run = saved.cells[cell].outputs[0].metadata["agent_nb"]["run"]
    parts = [o.metadata["agent_nb"] for o in saved.cells[cell].outputs[1:]]
    assert parts == [{"part": run}] * 6
    assert "<script" not in str(saved.cells[cell].outputs)
    assert not any("widget-view" in str(o.data.keys()) for o in saved.cells[cell].outputs)
    notebook.close()
    notebook.server.end_kernels()
    notebook.open()
    still = [kind for kind in ENDED if kind != "slider"]
    stands(notebook, cell, still)
    notebook.shot(f"charts-reopened-{app}", full_page=True)
    notebook.close()
    notebook.server.end_kernels()
    saved.cells[0].source += "# changed by another program, so that the notebook is not trusted"
    chart = saved.cells[cell].outputs[1]
    chart.data["image/png"] = PICTURE  # as with kaleido
    nbformat.write(saved, notebook.server.root / notebook.name)
    notebook.open()
    stands(notebook, cell, still)
    trusted = "() => window.jupyterapp.shell.currentWidget.content.model.cells.get(1).trusted"
    assert notebook.page.evaluate(trusted) is False
    notebook.shot(f"charts-untrusted-{app}", full_page=True)
