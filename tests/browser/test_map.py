"""The card of a map in a front end: its bar moves, Stop stops it, what stays needs no kernel."""

import nbformat
import pytest

from tests.browser.test_accessibility import THEMES, found

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

WIDGET = "application/vnd.jupyter.widget-view+json"
ROWS, HELD = 60, 24  # rows from HELD on wait for the file `go`
PREPARE = f"""
import asyncio
from pathlib import Path
import pandas as pd
from agent_nb import Agent
from agent_nb.errors import ModelError
from agent_nb.models.parts import Text
%load_ext agent_nb

class Gate:
    name, dialect, grammar, shots, context = "test/gate", "native", False, False, 0
    def start(self): return self
    async def stream(self, request):
        place = int(request.messages[-1].text.rpartition("#")[2])
        while place >= {HELD} and not Path("go").exists():
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.02)
        if place % 20 == 7:
            raise ModelError("This row is too hot for the model.", code="invalid_request", status=400)
        yield (Text(("positive", "negative", "neither: *it* is | about shipping")[place % 3]),)
    async def aclose(self): pass

gate = Gate()
said = ["Lovely shoes, they fit like a glove and look great.", "Came broken, no reply from the shop.", "It is <b>fine</b> | I *guess*."]
reviews = pd.DataFrame({{"text": [f"{{said[n % 3]}} #{{n}}" for n in range({ROWS})]}})
Path("go").unlink(missing_ok=True)
"""
CELL = "%%agent -m gate --map reviews --concurrency 6 -o labels\nIs this review of our shop positive or negative? {{ text }}"
SMALL = CELL.replace("--map reviews", "--map reviews.head(6)")  # whose rows are all answered
VALUE = "output => output.querySelector('.agent-nb .progress-bar').getBoundingClientRect().width"
DONE = "Path('go').touch()"


@pytest.fixture(scope="module")
def notebook(opened):
    made = opened("lab", name="map", cells=(PREPARE,))
    made.start(0)
    made.wait(0)
    return made


@pytest.fixture
def held(notebook):
    """A notebook whose newest cell runs a map that waits in its middle, and that cell."""
    notebook.value("Path('go').unlink(missing_ok=True)")
    cell = notebook.begin(CELL.replace("%%agent", "%%agent --live"))
    notebook.sees(cell, f"{HELD} of {ROWS} rows")
    yield notebook, cell
    notebook.settle()


def open_gate(notebook):
    (notebook.server.root / "go").touch()


def test_the_bar_moves_and_what_stays_at_the_end_is_static(held, browser_context):
    notebook, cell = held
    output = notebook.output(cell)
    widths = [output.evaluate(VALUE)]
    notebook.sees(cell, "asking 6 rows")  # the next ones start after the count of those answered
    assert "1 invalid request" in output.inner_text()
    notebook.shots("map-midway-1000")
    open_gate(notebook)
    notebook.wait(cell)
    notebook.sees(cell, f"57 of {ROWS} rows answered")
    assert widths[0] > 0
    assert output.locator(".progress-bar").count() == 0
    assert output.get_by_role("progressbar").get_attribute("aria-valuenow") == "95"
    assert "3 failed" in output.inner_text()
    notebook.shots("map-end-1000")
    assert notebook.value("list(labels.columns)")[:2] == ["text", "answer"]
    assert notebook.value("len(_map.results)") == ROWS


def test_stop_stops_the_map_and_keeps_the_rows_so_far(held):
    notebook, cell = held
    notebook.button(cell, "■ Stop").click()
    notebook.wait(cell)
    notebook.sees(cell, "not asked")
    shown = notebook.output(cell).inner_text()
    assert "Stopped by you" in shown
    assert "agent: stopped (stop button)" in shown
    notebook.shots("map-stopped-1000")
    states = notebook.value("[r.status for r in _map.results]")
    assert states.count("ok") == HELD - 1
    assert notebook.value("list(labels['_status'])") == states


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_axe_finds_nothing_in_the_card(held, axe, theme):
    notebook, cell = held
    notebook.theme(theme)
    assert found(notebook.page, axe, ".jp-OutputArea-output .agent-nb") == []
    open_gate(notebook)
    notebook.wait(cell)
    assert found(notebook.page, axe, ".jp-OutputArea-output .agent-nb") == []
    notebook.theme(THEMES["light"])


def test_a_narrow_window_shows_everything(held, axe):
    notebook, cell = held
    notebook.page.set_viewport_size({"width": 560, "height": 1100})
    notebook.command("application:toggle-left-area")
    try:
        notebook.output(cell).locator("table").scroll_into_view_if_needed()
        notebook.shots("map-midway-400")
        assert found(notebook.page, axe, ".jp-OutputArea-output .agent-nb") == []
        open_gate(notebook)
        notebook.wait(cell)
        notebook.output(cell).locator("table").scroll_into_view_if_needed()
        notebook.shots("map-end-400")
        assert found(notebook.page, axe, ".jp-OutputArea-output .agent-nb") == []
    finally:
        notebook.command("application:toggle-left-area")
        notebook.page.set_viewport_size({"width": 1200, "height": 1500})


def test_a_reload_shows_the_same_and_so_does_an_export(opened, server):
    from nbconvert import HTMLExporter

    notebook = opened("lab", name="map-saved", cells=(PREPARE, CELL))
    notebook.start(0)
    notebook.wait(0)
    open_gate(notebook)
    notebook.start(1)
    notebook.wait(1)
    notebook.sees(1, "57 of 60 rows answered")
    before = notebook.output(1).inner_text()
    saved = notebook.save()
    nbformat.validate(saved)
    [output] = saved.cells[1].outputs
    assert WIDGET not in output.data
    notebook.close()
    notebook.open()
    notebook.sees(1, "57 of 60 rows answered")
    assert notebook.output(1).inner_text() == before
    notebook.shots("map-reload")
    page, _ = HTMLExporter().from_notebook_node(saved)
    assert "57 of 60 rows" in page
    notebook.page.set_content(page)
    notebook.shot("map-export")


def test_a_replayed_map_shows_the_same_and_its_button_runs_it_live(notebook):
    open_gate(notebook)
    cell = notebook.run(SMALL)
    notebook.sees(cell, "6 of 6 rows answered")
    table = notebook.output(cell).locator("table").inner_text()
    first = notebook.value("_agent.id")
    notebook.start(cell)
    notebook.wait(cell)
    notebook.sees(cell, "replayed")
    assert notebook.output(cell).locator("table").inner_text() == table
    assert notebook.value("[_agent.id, _map.results[0].origin]") == [first, "record"]
    notebook.shots("map-replayed")
    notebook.button(cell, "↻ Run live").click()
    notebook.page.wait_for_function(
        "([i]) => !window.jupyterapp.shell.currentWidget.content.widgets[i].node.innerText.includes('replayed')",
        arg=[cell],
    )
    notebook.sees(cell, "6 of 6 rows answered")
    assert notebook.value(f"[_agent.id == {first!r}, _map.results[0].origin]") == [False, "live"]
