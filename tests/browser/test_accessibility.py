"""axe-core finds nothing in what we draw: every example as static HTML and as nbconvert's page, and
the live view, in light and dark.

What is checked is our part of a page alone; what axe says about a whole page (landmarks, headings,
titles) is its host's.
"""

from __future__ import annotations

import nbformat
import pytest
from helpers.paths import EXAMPLES
from nbformat.v4 import new_code_cell, new_notebook, new_output

from agent_nb.record.notebook_file import NotebookRuns
from agent_nb.record.record import log_of
from agent_nb.view.bundle import make_bundle
from agent_nb.view.timeline import timeline_html

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
BARE = """<!doctype html><html lang="en"><title>Runs</title><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<style>body {{ font: 14px/1.5 sans-serif; background: Canvas; color: CanvasText }}</style><main>{}</main>"""
AXE = """async root => {
    document.querySelectorAll(root + ' details').forEach(d => { d.open = true; });
    const options = {resultTypes: ['violations'], rules: {region: {enabled: false}}};
    const found = await window.axe.run({include: [[root]]}, options);
    return found.violations.flatMap(v => v.nodes.map(n => `${v.id}: ${n.failureSummary} ${n.html.slice(0, 300)}`));
}"""
PREPARE = """
import asyncio, json
from agent_nb import Scripted, tool
%load_ext agent_nb

@tool
async def dig(depth: int):
    "Dig, metre by metre."
    for metre in range(depth):
        yield {"done": metre, "total": 2 * depth, "unit": "metres"}
        yield f"metre {metre}\\n"
    await asyncio.sleep(120)

@tool(side_effects=True)
def send(text: str) -> str:
    "Send a text."

calls = json.dumps([{"name": "dig", "args": {"depth": 8}}, {"name": "send", "args": {"text": "hello"}}])
both = Scripted(["<think>Dig **and** tell.</think><execute>" + calls + "</execute>", "Done."])
"""


@pytest.fixture
def page(browser_context):
    """Open a page that loads nothing from elsewhere, with a colour scheme: `page(html, scheme)`."""
    opened = []

    def page(html, scheme="light"):
        made = browser_context.new_page()
        made.route("**", lambda route: route.abort())
        made.emulate_media(color_scheme=scheme)
        made.set_content(html)
        opened.append(made)
        return made

    yield page
    for made in opened:
        made.close()


def found(page, axe, root):
    """Return what axe-core objects to in the parts of a page that a selector names."""
    assert page.locator(root).count() > 0
    page.evaluate(axe)
    return page.evaluate(AXE, root)


def logs(path):
    """Return the newest recorded run of every cell of a notebook."""
    return [
        log_of(recorded[0]) for recorded in NotebookRuns(nbformat.read(path, 4)).by_cell().values()
    ]


@pytest.mark.parametrize("scheme", THEMES)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_static_html_of_an_example(page, axe, path, scheme):
    runs = logs(path)
    assert runs
    shown = "".join(
        make_bundle(log, thoughts="show")["text/html"] + timeline_html(log) for log in runs
    )
    assert found(page(BARE.format(shown), scheme), axe, "main") == []


@pytest.mark.parametrize("theme", THEMES)
def test_our_part_of_a_page_of_nbconvert(page, axe, theme):
    from nbconvert import HTMLExporter

    shown = [
        new_output("display_data", data=make_bundle(log))
        for path in NOTEBOOKS
        for log in logs(path)
    ]
    made, _ = HTMLExporter(theme=theme).from_notebook_node(
        new_notebook(cells=[new_code_cell("%%agent", outputs=shown)])
    )
    assert found(page(made), axe, ".agent-nb") == []


@pytest.fixture(scope="module")
def waiting(opened):
    """A notebook with a run in its middle: a thought, a tool with progress and output, a question
    with its buttons.
    """
    notebook = opened("lab", name="accessible", cells=(PREPARE,))
    notebook.start(0)
    notebook.wait(0)
    cell = notebook.begin("%%agent -m both -t dig,send --live\nDig and tell.")
    notebook.button(cell, "Approve").wait_for()
    notebook.sees(cell, "7 of 16 metres")
    yield notebook
    notebook.button(cell, "■ Stop").click()
    notebook.wait(cell)
    notebook.close()


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
@pytest.mark.parametrize("part", ["", "Edit", "Deny", "Always…"])
def test_the_live_view_in_jupyterlab(waiting, axe, theme, part):
    """Also with what a question opens."""
    waiting.theme(theme)
    if part:
        waiting.button(1, part).click()
        waiting.button(1, "Back").wait_for()
    assert found(waiting.page, axe, ".jp-OutputArea-output .agent-nb") == []
    if part:
        waiting.button(1, "Back").click()
        waiting.button(1, "Approve").wait_for()


def test_the_state_of_a_run_is_a_polite_live_region(waiting):
    [spoken] = waiting.page.locator(
        ".jp-OutputArea-output .agent-nb [aria-live=polite]"
    ).all_inner_texts()
    assert "waiting for you" in spoken


def test_everything_that_can_be_done_is_reached_with_the_tabulator(waiting):
    output = waiting.page.locator(".jp-OutputArea-output .agent-nb")
    waiting.page.bring_to_front()
    output.get_by_role("button", name="■ Stop").focus()
    reached = []
    for _ in range(12):
        reached.append(waiting.page.evaluate("document.activeElement.innerText.trim()"))
        waiting.page.keyboard.press("Tab")
    assert {"■ Stop", "Approve", "Deny", "Edit", "Always…"} <= set(reached)
