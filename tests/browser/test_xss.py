"""The whole corpus of hostile texts, in every place that a model or tool can write to, on the four
surfaces that show a run: live view, static view in a trusted JupyterLab, rendered markdown, and
nbconvert's page (HTML and markdown). Nothing runs, loads or covers anything.

Several texts share a run, so that a surface is a few dozen outputs; a bare page has them one by
one, which tells which text it was.
"""

from __future__ import annotations

import inspect
import json

import pytest
from helpers.paths import DATA
from nbformat.v4 import new_code_cell, new_notebook, new_output

from agent_nb import events as e
from agent_nb.events.log import EventLog
from agent_nb.view.bundle import make_bundle
from agent_nb.view.widgets.keys import KEYS

pytestmark = [pytest.mark.browser, pytest.mark.early, pytest.mark.timeout(600)]

CORPUS = [case["text"] for case in json.loads((DATA / "xss.json").read_text(encoding="utf-8"))]
BATCH = 8
TRACE = 'Traceback (most recent call last):\n  File "a.py", line 2\n'
# what is wrong with a part of a page: things that run, load, cover, or take input. Of the live view
# only the buttons are ours.
CHECK = """([selector, live]) => {
    const bad = [], page = [...document.querySelectorAll(selector)];
    const ours = live ? [] : ['BUTTON', 'INPUT', 'TEXTAREA', 'SELECT', 'STYLE'];
    const never = ['SCRIPT', 'IFRAME', 'OBJECT', 'EMBED', 'FORM', 'META', 'LINK', 'BASE', 'DIALOG', 'VIDEO', 'AUDIO', ...ours];
    for (const root of page) {
        const edge = root.getBoundingClientRect();
        for (const node of [root, ...root.querySelectorAll('*')]) {
            const math = node.closest('mjx-container'), style = getComputedStyle(node);
            if (never.includes(node.tagName) || (!math && node.tagName.toUpperCase() === 'SVG')) bad.push(node.outerHTML.slice(0, 200));
            for (const a of node.attributes) if (a.name.startsWith('on') || a.name === 'popover') bad.push(a.name + '=' + a.value);
            const href = node.getAttribute('href');
            if (href !== null && !/^(https?:|mailto:|#)/i.test(href)) bad.push('href ' + href);
            if (node.currentSrc && !/^data:image\\/(png|jpeg|gif|webp);/.test(node.currentSrc)) bad.push('src ' + node.currentSrc);
            if (math) {  // formulas: what is drawn of them stays in the run
                const box = node.getBoundingClientRect(), drawn = box.width && box.height && !node.closest('mjx-assistive-mml');
                const high = box.top > edge.top - 4 && box.bottom < edge.bottom + 4;
                const wide = box.left > edge.left - 4 && box.right < edge.right + 4;
                if (drawn && !(high && wide)) bad.push('paints outside: ' + math.innerText.slice(0, 100));
                continue;
            }
            if (['fixed', 'sticky', ...(live ? [] : ['absolute'])].includes(style.position)) bad.push(node.outerHTML.slice(0, 200));
            const box = node.getBoundingClientRect();
            if (box.width && (box.top < edge.top - 2 || box.left < edge.left - 30)) bad.push('outside: ' + node.outerHTML.slice(0, 200));
        }
    }
    return [page.length, window.__xss === undefined, [...new Set(bad)]];
}"""
TOPMOST = """selector => [...document.querySelectorAll(selector)].filter(n => n.offsetParent).filter(n => {
    n.scrollIntoView({block: 'nearest'});
    const box = n.getBoundingClientRect(), top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    return !(n.contains(top) || top?.contains(n));
}).length"""


def hurt_log(e, log, texts, trace):
    """Put texts into every place that a model or tool can write to; the last call is left as an
    open question.
    """
    log.append(e.RunStart(model=texts[0], settings={"source": texts[-1]}))
    for n, text in enumerate(texts):
        log.append(
            e.User(
                content=text,
                attachments=(
                    {"media_type": text, "data": text},
                    {"media_type": "image/png", "data": text},
                ),
            )
        )
        log.append(e.Delta(block=f"t{n}", of="think", text=text))
        log.append(e.Think(block=f"t{n}", content=text, attributes={text: text}))
        calls = (
            {"args": {text: text, "code": text}, "content": text},
            {
                "args": {"a": [text, {text: text}]},
                "content": {text: [text]},
                "display": {"text/html": text, "text/plain": text},
            },
            {"content": text, "status": "error", "display": {"text/plain": trace + text}},
            {
                "content": [{text: text, "b": 1}],
                "display": {"text/markdown": text, "image/png": text},
            },
            {"content": "--- a\n+++ b\n@@ -1 +1 @@\n" + text},
        )
        for m, call in enumerate(calls):
            call_id, name = f"k{n}.{m}", text if m == 0 else "x"
            log.append(e.Call(call_id=call_id, name=name, args=call.pop("args", {})))
            log.append(
                e.Progress(
                    call_id=call_id,
                    text=text,
                    message=text,
                    data={"done": 1, "total": 2, "unit": text},
                )
            )
            log.append(e.Result(call_id=call_id, name=name, **call))
        log.append(e.Error(code="retry", message=text, raw=text))
        log.append(e.Error(code=text, message=text, raw=text))
        log.append(e.Node(name=text, phase="enter", span=f"n{n}"))
        log.append(e.Node(name=text, phase="exit", span=f"n{n}", result=text))
        log.append(e.State(kind=text, payload={text: text}))
        log.append(e.Extension(namespace=text, name=text, payload=text))
        log.append(e.Delta(block=f"r{n}", of="respond", text=text))
        log.append(e.Respond(block=f"r{n}", content=text))
        log.append(e.Call(call_id=f"q{n}", name=text, args={"content": text, text: text}))
        log.append(
            e.Approval(
                call_id=f"q{n}",
                stage="requested",
                args={"content": text, text: text},
                extra={"preview": text},
            )
        )
        if n < len(texts) - 1:
            log.append(
                e.Approval(call_id=f"q{n}", stage="decided", decision="deny", by=text, reason=text)
            )
            log.append(e.Result(call_id=f"q{n}", name=text, status="denied", content=text))
    return log


def batches():
    return [CORPUS[n : n + BATCH] for n in range(0, len(CORPUS), BATCH)]


def static(texts, *, opened=True):
    """Return the bundle of a run with these texts, its thoughts and folds open."""
    made = make_bundle(hurt_log(e, EventLog("run000000001"), texts, TRACE), thoughts="show")
    return (
        {**made, "text/html": made["text/html"].replace("<details", "<details open")}
        if opened
        else made
    )


def watched(page):
    """Note what a page asks for and says; return the list of what it must not."""
    wrong = []
    page.on("request", lambda request: "e.example" in request.url and wrong.append(request.url))
    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    return wrong


LISTENER = "onload=" + KEYS.partition('onload="')[2].removesuffix('">')


def harmless(page, selector, *, live=False):
    """Check the parts of a page that a selector names."""
    parts, untouched, bad = page.evaluate(CHECK, [selector, live])
    assert parts > 0
    # the one listener of ours, which is constant, stands in the live view of a question
    assert [text for text in bad if not (live and text == LISTENER)] == []
    assert untouched


SETUP = """
import asyncio, json
from agent_nb import events as e
from agent_nb.events.log import EventLog
from agent_nb.notebook.cell.publish import publish_display as publish
from agent_nb.view.bundle import make_bundle
from agent_nb.view.live import LiveView, ViewOptions
from IPython.display import clear_output
corpus, trace, view = json.load(open("corpus.json")), {trace!r}, None
{hurt}
def show(kind, texts):
    global view
    log = EventLog()
    if kind == "live":
        view = LiveView.open(log, ViewOptions(kind="widgets", thoughts="show", can_click=True), publish=publish)
    hurt_log(e, log, texts, trace)
    if kind == "live":
        view.renderer.stop()
    else:
        made = make_bundle(log, thoughts="show")
        made["text/html"] = made["text/html"].replace("<details", "<details open")
        publish({{kind: made[kind]}}, {{}}, {{}}, False)
def done():
    if view is not None:
        view.close({{"text/plain": ""}})
    clear_output()
"""
OUTPUT = ".jp-OutputArea-output"
WRITE = "([index, source]) => window.jupyterapp.shell.currentWidget.content.widgets[index].model.sharedModel.setSource(source)"


@pytest.fixture(scope="module")
def lab(opened, server):
    """A notebook in JupyterLab whose kernel has the corpus and shows it."""
    (server.root / "corpus.json").write_text(json.dumps(CORPUS))
    notebook = opened(
        "lab", name="hostile", cells=(SETUP.format(trace=TRACE, hurt=inspect.getsource(hurt_log)),)
    )
    notebook.wrong = watched(notebook.page)
    notebook.start(0)
    notebook.wait(0)
    yield notebook
    notebook.close()


@pytest.mark.parametrize("kind", ["live", "text/html", "text/markdown"])
def test_jupyterlab_trusted(lab, kind):
    """Each output is checked and cleared before the next."""
    root = {
        "live": f"{OUTPUT} .agent-nb",
        "text/html": f"{OUTPUT} .agent-nb",
        "text/markdown": f"{OUTPUT}.jp-RenderedMarkdown",
    }[kind]
    lab.command("notebook:clear-all-cell-outputs")  # a first try may have left its own
    cell, done = lab.add(""), lab.add("done()")
    lab.page.bring_to_front()
    for number in range(len(batches())):
        code = f"show({kind!r}, corpus[{number * BATCH}:{(number + 1) * BATCH}]); print('batch {number}')"
        lab.page.evaluate(WRITE, [cell, code])
        lab.start(cell)
        lab.wait(cell)
        lab.sees(cell, f"batch {number}")
        lab.page.locator(root).first.wait_for()
        lab.page.wait_for_function(
            "() => !document.querySelector('.jp-OutputArea-output mjx-container:empty')"
        )
        harmless(lab.page, root, live=kind == "live")
        assert lab.page.evaluate(TOPMOST, ".jp-Toolbar button, .jp-Cell-inputArea .cm-content") == 0
        if kind == "live":
            assert lab.button(cell, "Approve").count() == 1
            lab.start(done)
            lab.wait(done)
    assert lab.wrong == []


@pytest.fixture
def blank(browser_context):
    """A page that may ask for nothing."""
    page = browser_context.new_page()
    page.wrong = watched(page)
    page.route("**", lambda route: route.abort())
    yield page
    page.close()


def test_pages_of_nbconvert(blank):
    from nbconvert import HTMLExporter

    for kind, root in (("text/html", ".agent-nb"), ("text/markdown", ".jp-RenderedMarkdown")):
        for start in range(0, len(batches()), 5):
            shown = [
                new_output("display_data", data={kind: static(texts)[kind]})
                for texts in batches()[start : start + 5]
            ]
            made, _ = HTMLExporter().from_notebook_node(
                new_notebook(cells=[new_code_cell("1", outputs=shown)])
            )
            blank.set_content(made)
            harmless(blank, root)
    assert blank.wrong == []


def test_a_bare_page_with_one_text_at_a_time(blank):
    for text in CORPUS:
        shown = static([text])["text/html"]
        blank.set_content(
            f"<meta charset=utf-8><body><button id=above>above</button>{shown}<button id=below>below</button>"
        )
        harmless(blank, ".agent-nb")
        assert blank.evaluate(TOPMOST, "#above, #below") == 0, text
    assert blank.wrong == []
