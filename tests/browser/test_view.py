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
import asyncio
from agent_nb import events as e
from agent_nb.events.log import EventLog
from agent_nb.notebook.cell.publish import publish_display as publish
from agent_nb.view.bundle import make_bundle
from agent_nb.view.live import LiveView, ViewOptions
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
for _ in range(600):
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
    # open for long enough to be seen anywhere
    cell = notebook.begin(ASKED.replace("asyncio.sleep(.2)", "asyncio.sleep(3)"))
    thought = notebook.output(cell).locator(".agent-nb-fold").first
    thought.locator(".agent-nb-prose").get_by_text("First compare.").first.wait_for()
    thought.get_by_role("button", name="— First compare").wait_for()
    thought.locator(".agent-nb-prose").first.wait_for(state="hidden")
    notebook.button(cell, "■ Stop").click()
    notebook.wait(cell)


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


def test_a_page_that_is_not_trusted_shows_the_same(opened, rich_log):
    html = make_bundle(rich_log)["text/html"]
    notebook = opened(
        "lab",
        name="untrusted",
        cells=("1",),
        outputs={0: [new_output("display_data", data=make_bundle(rich_log))]},
    )
    notebook.sees(0, "done")
    output = notebook.output(0)
    assert output.inner_html().count("<details") == html.count("<details")
    marks = output.get_by_text("✓ done").evaluate("n => getComputedStyle(n).color")
    plain = output.get_by_text("with").first.evaluate("n => getComputedStyle(n).color")
    assert marks != plain


def test_a_page_that_is_not_trusted_keeps_the_room_around_an_offered_cell(opened):
    log = EventLog("run000000003")
    log.append(e.RunStart(model="scripted/test"))
    log.append(e.Call(call_id="k", name="add_cell", args={"code": "1 + 1", "why": "A sum."}))
    log.append(e.Result(call_id="k", name="add_cell", status="ok", content="Offered as cell 1."))
    log.append(e.End())
    outputs = {0: [new_output("display_data", data=make_bundle(log))]}
    notebook = opened("lab", name="offered", cells=("1",), outputs=outputs)
    notebook.sees(0, "A cell for you")
    row = notebook.output(0).get_by_text("A cell for you")
    border = row.evaluate("n => n.closest('pre,div').parentElement.getBoundingClientRect().x")
    assert row.evaluate("n => n.getBoundingClientRect().x") - border > 20
    notebook.shot("offered-untrusted")
    notebook.close()


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


def test_a_call_keeps_its_name_and_status_beside_a_long_result(opened):
    log = EventLog("run000000003")
    log.append(e.RunStart(model="scripted/test"))
    log.append(e.Call(call_id="k", name="archivist", args={"prompt": "What do you know? " * 4}))
    answer = "The archive has three entries about it, all from March."
    log.append(e.Result(call_id="k", name="archivist", content=answer, duration=7.0))
    log.append(e.End())
    outputs = {0: [new_output("display_data", data=make_bundle(log))]}
    notebook = opened("lab", name="long-result", cells=("1",), outputs=outputs)
    notebook.sees(0, "archivist")
    for width in (350, 1100):
        notebook.output(0).evaluate(NARROW, width)
        line = notebook.output(0).locator("summary", has_text="archivist").bounding_box()
        for words in ("archivist", "7.0 s"):
            box = notebook.output(0).get_by_text(words).first.bounding_box()
            assert (
                line["x"]
                <= box["x"]
                < box["x"] + min(box["width"], 40)
                <= line["x"] + line["width"]
            )
    notebook.close()


def test_the_header_of_an_untrusted_page_stays_in_words_in_a_narrow_column(opened):
    log = EventLog("run000000002")
    log.append(
        e.RunStart(model="anthropic/claude-sonnet-test", settings={"source": "the option -m"})
    )
    log.append(e.User(content="Write it."))
    log.append(e.Metric(turn=2, total=e.Counts(input=12_300, output=4_567, cost=0.0123)))
    log.append(e.End(status="awaiting"))
    outputs = {0: [new_output("display_data", data=make_bundle(log))]}
    notebook = opened("lab", name="narrow", cells=("1",), outputs=outputs)
    notebook.sees(0, "waits for an answer")
    for width in (350, 700, 1100):
        assert shown_at(notebook, 0, "? waits for an answer", width) == [1, True]
        notebook.shot(f"header-static-{width}")
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
        ASKED.replace('kind="widgets"', 'kind="html"').replace("range(600)", "range(10)")
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
