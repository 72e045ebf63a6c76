"""The live and the static view in a real JupyterLab: it moves, its buttons work while the cell
runs, and what stays needs no kernel.
"""

from __future__ import annotations

import pytest
from nbformat.v4 import new_output

from agent_nb import events as e
from agent_nb.events.log import EventLog
from agent_nb.view.bundle import make_bundle

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

SETUP = """
import asyncio, os
from agent_nb import events as e
from agent_nb.events.log import EventLog
from agent_nb.notebook.cell.publish import publish_display as publish
from agent_nb.view.bundle import make_bundle
from agent_nb.view.live import LiveView, ViewOptions
from agent_nb.view.painters import WidgetPainter
from agent_nb.view.saved_page import Recovery
from agent_nb.view.state.fold import RunView
"""
FORMULAS = r"""
log = EventLog()
view = LiveView.open(log, ViewOptions(kind="widgets", can_click=True), publish=publish)
log.append(e.RunStart(model="scripted/test"))
log.append(e.User(content=r"What is $\smash{x}$?"))
log.append(e.Call(call_id="k", name="look", args={"at": "$y$"}))
log.append(e.Result(call_id="k", name="look", content="$z$ and $w$"))
text = r"Here $e^{i\pi}$ is, it costs $5 or \$6. $\raise 60em{\rlap{Approve}}$" + "\n\n$$" + r"\frac{1}{3}" + "$$\n\nend"
log.append(e.Delta(block="r", of="respond", text=text))
log.append(e.Respond(block="r", content=text))
view.renderer.stop()
"""
WAITING = """
log = EventLog()
view = LiveView.open(log, ViewOptions(kind="widgets", can_click=True), publish=publish)
log.append(e.RunStart(model="anthropic/claude-sonnet-test", settings={"limits": {"turns": 20}}))
log.append(e.User(content="Write it."))
log.append(e.Metric(turn=2, total=e.Counts(input=12_300, output=4_567, cost=0.0123)))
log.append(e.Call(call_id="k", name="write", args={"file": "a.txt", "content": "b"}))
log.append(e.Approval(call_id="k", stage="requested", args={"file": "a.txt", "content": "b"}))
view.renderer.stop()
"""
THOUGHT = """
painter = WidgetPainter(lambda *_: None, "collapse", lambda: True)
thinking = RunView().extend([e.RunStart(model="scripted/test"), e.Think(content="A line.\\n\\n" * 9, block="t")])
publish(painter.open(thinking, 0.0, Recovery("")), {}, {"display_id": "thinking"}, False)
"""
# the front end gets all steps of the fold at once
FOLDS = """
thinking.apply(e.Delta(block="r", of="respond", text="A paragraph.\\n\\n" * 20))
for second in range(1, 60):
    painter.paint(thinking, float(second))
"""
# notes the height of the thought before and after its button goes up, before the page is painted
HEIGHTS = """index => {
    const fold = window.jupyterapp.shell.currentWidget.content.widgets[index].node.querySelector('.agent-nb-fold');
    const high = () => fold.querySelector('.agent-nb-body').getBoundingClientRect().height;
    const heights = window.heights = [high()];
    new MutationObserver((_, observer) => {
        if (!fold.querySelector(':scope>.mod-active')) { heights.push(high()); observer.disconnect(); }
    }).observe(fold.querySelector('button'), {attributeFilter: ['class']});
}"""
NARROW = "(output, width) => { output.style.maxWidth = `${width}px`; }"
# lines that the element takes, and whether what stands beside it is in the column
LINES = """(said, column) => [said.getClientRects().length,
    [...said.closest('div').children].every(n => n.getBoundingClientRect().right <= column.getBoundingClientRect().right + 1)]"""
TYPESET = """index => [...window.jupyterapp.shell.currentWidget.content.widgets[index].node.querySelectorAll('mjx-container')].length"""
ASKED = """
log, acts, answered, loop = EventLog(), [], asyncio.Event(), asyncio.get_running_loop()
def act(action, payload):
    acts.append((action, payload))
    loop.call_soon_threadsafe(answered.set)
view = LiveView.open(log, ViewOptions(kind="widgets", can_click=True), actions=act, publish=publish)
log.append(e.RunStart(model="scripted/test"))
log.append(e.User(content="Write it."))
for piece in ("First compare. ", "Then write."):
    log.append(e.Delta(block="t", of="think", text=piece)); await asyncio.sleep(.2)
log.append(e.Think(block="t", content="First compare. Then write."))
log.append(e.Call(call_id="k", name="write", args={"file": "a.txt", "content": "b"}))
log.append(e.Approval(call_id="k", stage="requested", args={"file": "a.txt", "content": "b"}))
for _ in range(6000):
    if answered.is_set(): break
    await asyncio.sleep(.05)
log.append(e.Approval(call_id="k", stage="decided", decision="allow", by="click"))
log.append(e.Result(call_id="k", name="write", content="done"))
for word in "The **answer** is here.".split(" "):
    log.append(e.Delta(block="r", of="respond", text=word + " ")); await asyncio.sleep(.05)
log.append(e.Respond(block="r", content="The **answer** is here. "))
log.append(e.End())
view.close(make_bundle(log))
print("acts:", acts, "fault:", view.renderer.fault)
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
    notebook.button(cell, "■ Stop").click()
    notebook.sees(cell, "acts: [('stop', None)]")
    assert errors(notebook) == []


@pytest.mark.parametrize(
    ("presses", "act"),
    [
        (["Approve"], "acts: [('approve', {'call_id': 'k'})]"),
        (["Deny", "Deny"], "acts: [('deny', {'call_id': 'k'})]"),
        (
            ["Always…", "write in this run"],
            "acts: [('approve', {'call_id': 'k', 'scope': 'tool'})]",
        ),
    ],
)
def test_a_question_is_answered_while_the_cell_runs(notebook, presses, act):
    cell = notebook.begin(ASKED)
    notebook.press(cell, *presses)
    notebook.sees(cell, act)


def test_arguments_are_edited_while_the_cell_runs(notebook):
    cell = notebook.begin(ASKED)
    notebook.press(cell, "Edit")
    notebook.output(cell).get_by_label("file").fill("c.txt")
    notebook.press(cell, "Approve as edited")
    args = {"file": "c.txt", "content": "b"}
    notebook.sees(cell, f"acts: [('approve', {{'call_id': 'k', 'scope': 'once', 'args': {args}}})]")


def test_thoughts_are_open_while_they_grow_and_fold_when_more_has_followed(notebook):
    seen = notebook.server.root / "thought-seen"
    seen.unlink(missing_ok=True)  # of a try before this one: the folder is shared
    held = f"\n    while not os.path.exists({str(seen)!r}): await asyncio.sleep(.05)"
    cell = notebook.begin(ASKED.replace("; await asyncio.sleep(.2)", held))
    thought = notebook.output(cell).locator(".agent-nb-fold").first
    thought.locator(".agent-nb-prose").get_by_text("First compare.").first.wait_for()
    seen.touch()
    thought.get_by_role("button", name="— First compare").wait_for()
    thought.locator(".agent-nb-prose").first.wait_for(state="hidden")
    notebook.button(cell, "■ Stop").click()
    notebook.wait(cell)


@pytest.mark.parametrize(("motion", "smooth"), [("no-preference", True), ("reduce", False)])
def test_a_page_that_gets_all_steps_of_a_fold_at_once_animates_it(notebook, motion, smooth):
    notebook.page.emulate_media(reduced_motion=motion)
    cell = notebook.run(THOUGHT)
    body = notebook.output(cell).locator(".agent-nb-fold>.agent-nb-body")
    body.get_by_text("A line.").first.wait_for()
    notebook.page.evaluate(HEIGHTS, cell)
    notebook.run(FOLDS)
    body.wait_for(state="hidden")
    before, after = notebook.page.evaluate("() => window.heights")
    notebook.page.emulate_media(reduced_motion="no-preference")
    assert before > 150
    assert (after > 150, after > 0) == (smooth, smooth)


def test_the_formulas_of_an_answer_are_typeset_and_nothing_else_is(notebook):
    cell = notebook.run(FORMULAS)
    shown = notebook.output(cell)
    shown.get_by_text("raise 60em").wait_for()
    # the power and the fraction
    notebook.page.wait_for_function(f"index => ({TYPESET})(index) === 2", arg=cell)
    notebook.shot("formulas-live")
    notebook.run("view.close(make_bundle(log))")
    shown.locator(".jupyter-widgets").first.wait_for(state="detached")
    notebook.page.wait_for_function(f"index => ({TYPESET})(index) === 2", arg=cell)
    assert shown.locator("code", has_text="raise 60em").count() == 1
    notebook.shot("formulas-static")
    assert errors(notebook) == []


def test_a_page_that_is_not_trusted_shows_the_same(pages, rich_log):
    html = make_bundle(rich_log)["text/html"]
    notebook, cell = pages("rich")
    notebook.sees(cell, "done")
    output = notebook.output(cell)
    assert output.inner_html().count("<details") == html.count("<details")
    marks = output.get_by_text("✓ done").evaluate("n => getComputedStyle(n).color")
    plain = output.get_by_text("with").first.evaluate("n => getComputedStyle(n).color")
    assert marks != plain


def offered_log():
    log = EventLog("run000000003")
    log.append(e.RunStart(model="scripted/test"))
    log.append(e.Call(call_id="k", name="add_cell", args={"code": "1 + 1", "why": "A sum."}))
    log.append(e.Result(call_id="k", name="add_cell", status="ok", content="Offered as cell 1."))
    log.append(e.End())
    return log


def test_a_page_that_is_not_trusted_keeps_the_room_around_an_offered_cell(pages):
    notebook, cell = pages("offered")
    notebook.sees(cell, "A cell for you")
    row = notebook.output(cell).get_by_text("A cell for you")
    border = row.evaluate("n => n.closest('pre,div').parentElement.getBoundingClientRect().x")
    assert row.evaluate("n => n.getBoundingClientRect().x") - border > 20
    notebook.shot("offered-untrusted")


def shown_at(notebook, cell, words, width):
    """Return the lines of `words` in a column of `width` px, and whether its row fits in."""
    output = notebook.output(cell)
    output.evaluate(NARROW, width)
    said = output.get_by_text(words, exact=True).first
    return said.evaluate(LINES, output.element_handle())


def test_the_live_header_stays_in_words_in_a_narrow_column(notebook):
    cell = notebook.run(WAITING)
    notebook.button(cell, "■ Stop").wait_for()
    for width in (350, 700, 1100):
        assert shown_at(notebook, cell, "? waiting for you", width) == [1, True]
        notebook.shot(f"header-live-{width}")
    notebook.run("log.append(e.End(status='interrupted')); view.close(make_bundle(log))")


def test_the_live_header_is_one_line_in_a_narrow_column_too(notebook):
    cell = notebook.run(WAITING)
    notebook.button(cell, "■ Stop").wait_for()
    output, head = notebook.output(cell), notebook.output(cell).locator(".agent-nb-head").first
    for width, all_figures in ((580, False), (1100, True)):
        output.evaluate(NARROW, width)
        assert head.bounding_box()["height"] < 30
        assert (
            ("12k in" in head.inner_text()) is ("turn 2 of 20" in head.inner_text()) is all_figures
        )
    notebook.run("log.append(e.End(status='interrupted')); view.close(make_bundle(log))")


def long_result_log():
    log = EventLog("run000000004")
    log.append(e.RunStart(model="scripted/test"))
    log.append(e.Call(call_id="k", name="archivist", args={"prompt": "What do you know? " * 4}))
    answer = "The archive has three entries about it, all from March."
    log.append(e.Result(call_id="k", name="archivist", content=answer, duration=7.0))
    log.append(e.End())
    return log


def test_a_call_keeps_its_name_and_status_beside_a_long_result(pages):
    notebook, cell = pages("long result")
    notebook.sees(cell, "archivist")
    output = notebook.output(cell)
    for width in (350, 1100):
        output.evaluate(NARROW, width)
        line = output.locator("summary", has_text="archivist").bounding_box()
        for words in ("archivist", "7.0 s"):
            box = output.get_by_text(words).first.bounding_box()
            assert (
                line["x"]
                <= box["x"]
                < box["x"] + min(box["width"], 40)
                <= line["x"] + line["width"]
            )


def awaiting_log():
    log = EventLog("run000000002")
    log.append(
        e.RunStart(model="anthropic/claude-sonnet-test", settings={"source": "the option -m"})
    )
    log.append(e.User(content="Write it."))
    log.append(e.Metric(turn=2, total=e.Counts(input=12_300, output=4_567, cost=0.0123)))
    log.append(e.End(status="awaiting"))
    return log


def test_the_header_of_an_untrusted_page_stays_in_words_in_a_narrow_column(pages):
    notebook, cell = pages("awaiting")
    notebook.sees(cell, "waits for an answer")
    for width in (350, 700, 1100):
        assert shown_at(notebook, cell, "? waits for an answer", width) == [1, True]
        notebook.shot(f"header-static-{width}")


@pytest.fixture(scope="module")
def pages(opened, rich_log):
    """Show the saved page of a run in a notebook that is not trusted; return notebook and cell."""
    logs = {
        "rich": rich_log,
        "offered": offered_log(),
        "long result": long_result_log(),
        "awaiting": awaiting_log(),
    }
    outputs = {
        cell: [new_output("display_data", data=make_bundle(log))]
        for cell, log in enumerate(logs.values())
    }
    notebook = opened("lab", name="untrusted", cells=("1",) * len(logs), outputs=outputs)

    def page(name):
        cell = list(logs).index(name)
        notebook.select(cell)
        return notebook, cell

    yield page
    notebook.close()


@pytest.fixture(scope="session")
def rich_log() -> EventLog:
    """A finished run with calls that worked and failed."""
    log = EventLog("run000000001")
    log.append(e.RunStart(model="scripted/test"))
    log.append(e.User(content="Go."))
    log.append(e.Think(content="Think first."))
    for number, status in enumerate(("ok", "error", "denied")):
        log.append(e.Call(call_id=f"k{number}", name="tool", args={"n": number}))
        log.append(
            e.Result(
                call_id=f"k{number}",
                name="tool",
                status=status,
                content={"a": [1, 2]} if status == "ok" else "no",
            )
        )
    log.append(
        e.Respond(
            content="# Answer\n\nwith `code` and a [link](https://example.com)\n\n```python\nx = 1\n```\n"
        )
    )
    log.append(e.End())
    return log


def test_a_page_of_the_published_kind_updates_in_place(notebook):
    cell = notebook.run(
        ASKED.replace('kind="widgets"', 'kind="html"').replace("range(6000)", "range(10)")
    )
    notebook.sees(cell, "acts:")
    assert notebook.output(cell).locator(".jp-OutputArea-child").count() == 2
    assert "The answer is here." in notebook.output(cell).inner_text()


def test_what_stays_needs_no_kernel_and_no_widgets(opened):
    notebook = opened("lab", name="stays", cells=(SETUP,))
    notebook.start(0)
    notebook.wait(0)
    cell = notebook.begin(ASKED)
    notebook.button(cell, "■ Stop").click()
    notebook.wait(cell)
    (shown,) = [o for o in notebook.save().cells[cell].outputs if o.output_type == "display_data"]
    assert set(shown.data) == {"text/html", "text/markdown", "text/plain"}
    notebook.close()
    notebook.server.end_kernels()  # that of the other tests too: so this is the last one
    notebook.open()
    notebook.sees(cell, "The answer is here.")
    assert "Error displaying widget" not in notebook.output(cell).inner_text()
