"""The live and the static view in a real JupyterLab: it moves, its buttons work while the cell runs, and what stays needs no kernel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from nbformat.v4 import new_output

from agent_nb.log import EventLog
from agent_nb.view.bundle import bundle

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

DATA = Path(__file__).parents[1] / "data"
SETUP = """
import asyncio
from agent_nb import events as e
from agent_nb.log import EventLog
from agent_nb.notebook.publish import publish
from agent_nb.view.bundle import bundle
from agent_nb.view.live import open_view
"""
ASKED = """
log, acts, answered, loop = EventLog(), [], asyncio.Event(), asyncio.get_running_loop()
def act(action, payload):
    acts.append((action, payload))
    loop.call_soon_threadsafe(answered.set)
view = open_view(log, kind="widgets", actions=act, can_click=True, publish=publish)
log.append(e.RunStart(model="scripted/test"))
log.append(e.User(content="Write it."))
for piece in ("First compare. ", "Then write."):
    log.append(e.Delta(block="t", of="think", text=piece)); await asyncio.sleep(.2)
log.append(e.Think(block="t", content="First compare. Then write."))
log.append(e.Call(call_id="k", name="write", args={"file": "a.txt", "content": "b"}))
log.append(e.Approval(call_id="k", stage="requested", args={"file": "a.txt", "content": "b"}))
for _ in range(600):
    if answered.is_set(): break
    await asyncio.sleep(.05)
log.append(e.Approval(call_id="k", stage="decided", decision="allow", by="click"))
log.append(e.Result(call_id="k", name="write", content="done"))
for word in "The **answer** is here.".split(" "):
    log.append(e.Delta(block="r", of="respond", text=word + " ")); await asyncio.sleep(.05)
log.append(e.Respond(block="r", content="The **answer** is here. "))
log.append(e.End())
view.close(bundle(log))
print("acts:", acts, "fault:", view.fault)
"""


@pytest.fixture(scope="module")
def notebook(opened):
    """A notebook in JupyterLab whose kernel has what the cells below use."""
    made = opened("lab", cells=(SETUP,))
    made.start(0)
    made.wait(0)
    yield made
    made.close()


def errors(notebook):
    return [text for kind, text in notebook.console if kind in ("error", "dialog")]


def test_stop_works_while_the_cell_runs(notebook):
    cell = notebook.begin(ASKED)
    notebook.button(cell, "■ Stop").click(timeout=20_000)
    notebook.sees(cell, "acts: [('stop', None)]")
    assert errors(notebook) == []


@pytest.mark.parametrize(
    ("label", "act"),
    [
        ("Approve", "acts: [('approve', {'call_id': 'k'})]"),
        ("Deny", "acts: [('deny', {'call_id': 'k'})]"),
        ("Approve all write calls", "acts: [('approve', {'call_id': 'k', 'scope': 'tool'})]"),
    ],
)
def test_a_question_is_answered_while_the_cell_runs(notebook, label, act):
    cell = notebook.begin(ASKED)
    notebook.button(cell, label).click(timeout=20_000)
    notebook.sees(cell, act)


def test_arguments_are_edited_while_the_cell_runs(notebook):
    cell = notebook.begin(ASKED)
    notebook.button(cell, "Edit…").click(timeout=20_000)
    notebook.output(cell).locator("textarea").fill('{"file": "c.txt"}')
    notebook.button(cell, "Approve as edited").click()
    notebook.sees(cell, "acts: [('approve', {'call_id': 'k', 'scope': 'once', 'args': {'file': 'c.txt'}})]")


def test_thoughts_are_open_while_they_grow_and_closed_after(notebook):
    cell = notebook.begin(ASKED)
    thought = notebook.output(cell).locator(".agent-nb-thought")
    thought.locator(".agent-nb-prose").get_by_text("First compare.").first.wait_for(timeout=20_000)
    thought.locator(".jupyter-widget-Collapse-header").get_by_text("— First compare").wait_for(timeout=20_000)
    thought.locator(".agent-nb-prose").first.wait_for(state="hidden", timeout=20_000)
    notebook.button(cell, "■ Stop").click()
    notebook.wait(cell)


def test_a_page_that_is_not_trusted_shows_the_same(opened, rich_log):
    html = bundle(rich_log)["text/html"]
    notebook = opened("lab", name="untrusted", cells=("1",), outputs={0: [new_output("display_data", data=bundle(rich_log))]})
    notebook.sees(0, "done")
    output = notebook.output(0)
    assert output.inner_html().count("<details") == html.count("<details")
    marks = output.get_by_text("✓ done").evaluate("n => getComputedStyle(n).color")
    plain = output.get_by_text("with").first.evaluate("n => getComputedStyle(n).color")
    assert marks != plain


@pytest.fixture(scope="session")
def rich_log() -> EventLog:
    """A finished run with calls that worked and failed."""
    from agent_nb import events as e

    log = EventLog("run000000001")
    log.append(e.RunStart(model="scripted/test"))
    log.append(e.User(content="Go."))
    log.append(e.Think(content="Think first."))
    for number, status in enumerate(("ok", "error", "denied")):
        log.append(e.Call(call_id=f"k{number}", name="tool", args={"n": number}))
        log.append(e.Result(call_id=f"k{number}", name="tool", status=status, content={"a": [1, 2]} if status == "ok" else "no"))
    log.append(e.Respond(content="# Answer\n\nwith `code` and a [link](https://example.com)\n\n```python\nx = 1\n```\n"))
    log.append(e.End())
    return log


def corpus() -> list[str]:
    return [case["text"] for case in json.loads((DATA / "xss.json").read_text(encoding="utf-8"))]


def hurt_log(text: str) -> EventLog:
    """Put one text into every place that a model or tool can write to."""
    from agent_nb import events as e

    log = EventLog()
    log.append(e.RunStart(model=text, settings={"source": text}))
    log.append(e.User(content=text))
    log.append(e.Think(content=text, attributes={text: text}))
    log.append(e.Call(call_id="k1", name=text, args={text: text}))
    log.append(e.Progress(call_id="k1", text=text, message=text))
    log.append(e.Result(call_id="k1", name=text, content=text, display={"text/html": text, "text/plain": text}))
    log.append(e.Call(call_id="k2", name="x", args={"code": text}))
    log.append(e.Result(call_id="k2", name="x", status="error", content=text))
    log.append(e.Error(code=text, message=text, raw=text))
    log.append(e.Respond(content=text))
    log.append(e.End(status="error"))
    return log


CHECK = """()=>{
  const root = document.querySelector('[data-root]') || document.body;
  const bad = [...root.querySelectorAll('*')].filter(n => ['fixed','absolute','sticky'].includes(getComputedStyle(n).position));
  return [window.__xss === undefined, bad.filter(n => !n.closest('mjx-container')).map(n => n.outerHTML.slice(0, 200))];
}"""


def test_no_hostile_text_runs_loads_or_covers_anything_in_a_page(notebook):
    page = notebook.page.context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    for text in corpus():
        html = bundle(hurt_log(text), thoughts="show")["text/html"].replace("<details", "<details open")
        page.set_content(f"<meta charset=utf-8><body><div data-root>{html}</div></body>")
        safe, covering = page.evaluate(CHECK)
        assert safe, text
        assert covering == [], text
    page.close()
    assert [url for url in asked if not url.startswith(("data:", "about:"))] == []


LIVE = """
import json
from agent_nb.view.live import WidgetPainter
from agent_nb.view.state import RunView
from agent_nb.events import event_from
for events in json.load(open({path!r})):
    log = EventLog()
    view = open_view(log, kind="widgets", thoughts="show", publish=publish)
    for event in events:
        log.append(event_from({{**event, "seq": 0}}))
    view.renderer.stop()
    await asyncio.sleep(0.3)  # the server drops messages above a thousand a second
    publish({{"text/markdown": bundle(log)["text/markdown"]}}, {{}}, {{}}, False)
    publish(bundle(log), {{}}, {{}}, False)
print("all shown")
"""


def test_no_hostile_text_runs_in_jupyterlab_live_static_or_as_markdown(notebook, tmp_path):
    """A trusted notebook: widgets, HTML and markdown of every fifth text, drawn one below the other, a dozen to a cell."""
    asked: list[str] = []
    notebook.page.on("request", lambda request: asked.append(request.url))
    texts = corpus()[::5]
    for start in range(0, len(texts), 12):
        path = tmp_path / f"runs{start}.json"
        path.write_text(json.dumps([hurt_log(text).to_list() for text in texts[start : start + 12]]))
        cell = notebook.begin(LIVE.format(path=str(path)))
        notebook.wait(cell, seconds=120)
        notebook.sees(cell, "all shown")
        covering = notebook.output(cell).evaluate("""o => [...o.querySelectorAll('.jp-OutputArea-output *')]
            .filter(n => ['fixed', 'sticky'].includes(getComputedStyle(n).position)).map(n => n.outerHTML.slice(0, 200))""")
        assert covering == []
    notebook.page.wait_for_timeout(1500)
    assert notebook.page.evaluate("()=>window.__xss") is None
    assert not [text for kind, text in notebook.console if kind == "dialog"]
    assert not [url for url in asked if "e.example" in url]


def test_a_page_of_the_published_kind_updates_in_place(notebook):
    cell = notebook.run(ASKED.replace('kind="widgets"', 'kind="html"').replace("range(600)", "range(10)"))
    notebook.sees(cell, "acts:")
    assert notebook.output(cell).locator(".jp-OutputArea-child").count() == 2
    assert "The answer is here." in notebook.output(cell).inner_text()


def test_what_stays_needs_no_kernel_and_no_widgets(opened):
    notebook = opened("lab", name="stays", cells=(SETUP,))
    notebook.start(0)
    notebook.wait(0)
    cell = notebook.begin(ASKED)
    notebook.button(cell, "■ Stop").click(timeout=20_000)
    notebook.wait(cell)
    (shown,) = [o for o in notebook.save().cells[cell].outputs if o.output_type == "display_data"]
    assert set(shown.data) == {"text/html", "text/markdown", "text/plain"}
    notebook.close()
    notebook.server.end_kernels()  # that of the other tests too: so this is the last one
    notebook.open()
    notebook.sees(cell, "The answer is here.")
    assert "Error displaying widget" not in notebook.output(cell).inner_text()
