"""A question stays in sight, or is denied: the cell runs again, the page is loaded again, the tab
is closed and opened again, the output is cleared.
"""

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

WIDGET = "application/vnd.jupyter.widget-view+json"
SETUP = """
%load_ext agent_nb
import json
from agent_nb import Agent, Scripted, tool
from agent_nb.view import views

sent = []

@tool(side_effects=True)
def send(text: str) -> str:
    "Send a text."
    sent.append(text)
    return f"sent: {text}"

def calling(name, **args):
    return Scripted([f"<execute>{json.dumps([{'name': name, 'args': args}])}</execute>", "That is all."])

sending = calling("send", text="hello")
helper = Agent(sending, [send], name="helper")
asking = calling("helper", prompt="Send it.")
talk = Scripted([{"text": "I am still writing. " * 2000, "chunk": 5, "delay": 0.02}])
"""
ASK = "%%agent -m sending -t send --live\nSend."
QUESTIONS = {
    "cell": ASK,
    "sub-agent": "%%agent -m asking -t helper --live\nSend.",
    "awaited": "run = await Agent(sending, [send])('Send.')",
    "unrecorded": ASK.replace("--live", "--live --no-record"),
}
APPS = ["lab", "notebook"]
RUNS = "[[r.status, [getattr(e, 'reason', '') for e in r.log if e.type == 'approval']] for r in next(iter(get_ipython().magics_manager.registry['AgentMagics'].session.runs.values()))]"


def begun(opened, app, name, code, shows="Approve"):
    """Open a notebook and run a cell until it shows a button."""
    front = opened(app, name=f"{name}-{app}", cells=(SETUP, code))
    front.start(0)
    front.wait(0)
    front.start(1)
    front.button(1, shows).wait_for()
    return front


@pytest.fixture(scope="module")
def fronts(opened):
    """Give a notebook of a front end, opened once, for the tests that clear an output of it."""
    made = {}

    def front(app):
        if app not in made:
            made[app] = opened(app, name=f"cleared-{app}", cells=(SETUP,))
            made[app].start(0)
            made[app].wait(0)
        return made[app]

    yield front
    for notebook in made.values():
        notebook.close()


@pytest.fixture
def front(request, fronts):
    """The notebook of the front end that the test names, else of JupyterLab; a test that failed
    leaves no cell of it running.
    """
    made = fronts(getattr(request, "param", "lab"))
    made.value("sent.clear()")
    yield made
    made.settle()


def add(front, code, shows="Approve"):
    """Add a cell and run it until it shows a button; return its index."""
    cell = front.begin(code)
    front.button(cell, shows).wait_for()
    return cell


def clear(front, cell, shows="Approve"):
    """Clear the output, and wait until its button is there again."""
    front.select(cell)
    front.command("notebook:clear-cell-output")
    front.button(cell, shows).wait_for(state="detached")
    front.button(cell, shows).wait_for()


def approve(front, cell=1):
    front.button(cell, "Approve").click()
    front.sees(cell, "That is all.")


def widgets(nb, cell=1):
    """Return how often a saved cell has a live view."""
    return sum(WIDGET in output.get("data", {}) for output in nb.cells[cell].outputs)


def save_at_end(front, cell=1):
    """Save once the live view has given its place to the page that stays, and return the notebook.

    The view stays for a moment after the end, until its folding cards have come to rest.
    """
    for _ in range(50):
        nb = front.save()
        if widgets(nb, cell) == 0:
            break
        front.page.wait_for_timeout(200)
    return nb


@pytest.mark.parametrize("app", APPS)
def test_a_question_whose_cell_runs_again_is_denied_and_asked_anew(opened, app):
    front = begun(opened, app, "again", ASK)
    front.start(1)
    front.button(1, "Approve").wait_for(state="detached")
    front.button(1, "Approve").wait_for()
    front.shot(f"again-{app}")
    approve(front)
    front.wait(1)
    assert front.value("sent") == ["hello"]
    [[last, _], [first, reasons]] = front.value(RUNS)
    assert (first, last) == ("interrupted", "ok")
    assert "could not be seen any more" in reasons[-1]
    assert widgets(save_at_end(front)) == 0


@pytest.mark.parametrize("app", APPS)
@pytest.mark.parametrize("way", ["reload", "reopen"])
def test_a_page_that_opens_has_card_stop_and_question(opened, app, way):
    front = begun(opened, app, way, ASK)
    assert widgets(front.save()) == 1
    if way == "reload":
        front.page.reload()
    else:
        front.close()
        front.open(busy=True)
    front.button(1, "Approve").wait_for()
    front.button(1, "■ Stop").wait_for()
    front.shot(f"{way}-{app}")
    approve(front)
    front.shot(f"{way}-end-{app}")
    nb = save_at_end(front)
    assert widgets(nb) == 0
    assert front.button(1, "■ Stop").count() == 0
    assert "That is all." in nb.cells[1].outputs[0].data["text/plain"]
    assert front.value("sent") == ["hello"]


@pytest.mark.parametrize(
    ("front", "question"),
    [
        (app, question)
        for app in APPS
        for question in QUESTIONS
        if app == "lab" or question == "cell"
    ],
    indirect=["front"],
)
def test_a_cleared_question_is_shown_again_and_can_be_answered(front, question):
    cell = add(front, QUESTIONS[question])
    clear(front, cell)
    front.shot(f"cleared-{question}-{front.app}")
    approve(front, cell)
    front.wait(cell)
    assert front.value("sent") == ["hello"]
    assert widgets(save_at_end(front, cell), cell) == 0


def test_a_long_run_that_is_cleared_is_shown_again_with_stop(front):
    cell = add(front, "%%agent -m talk --live\nWrite.", "■ Stop")
    clear(front, cell, "■ Stop")
    front.sees(cell, "I am still writing")
    front.button(cell, "■ Stop").click()
    front.wait(cell)
    front.sees(cell, "Stopped by you")


def test_a_cleared_question_of_run_live_is_shown_again(front):
    cell = add(front, ASK.replace(" --live", ""))
    approve(front, cell)
    front.wait(cell)
    front.start(cell)
    front.wait(cell)
    front.button(cell, "↻ Run live").click()
    front.button(cell, "Approve").wait_for()
    clear(front, cell)
    front.shot("cleared-run-live-lab")
    approve(front, cell)
    assert front.value("[_agent.status, sent]") == ["ok", ["hello", "hello"]]


def test_a_moved_question_stays_where_it_is(opened):
    front = begun(opened, "lab", "moved", ASK)
    front.select(1)
    front.command("notebook:move-cell-up")
    front.page.wait_for_timeout(5000)
    assert front.button(0, "Approve").count() == 1
    front.button(0, "Approve").click()
    front.sees(0, "That is all.")
    assert front.output(0).locator(".jp-OutputArea-child").count() == 1
    assert front.button(0, "■ Stop").count() == 0
    front.shot("moved-end")
    nb = save_at_end(front, 0)
    assert widgets(nb, 0) == 0
    assert "That is all." in nb.cells[0].outputs[0].data["text/plain"]
    assert front.value("sent") == ["hello"]


def test_a_page_that_opens_without_the_question_denies_it_in_the_end(opened):
    front = begun(opened, "lab", "unsaved", f"views.OPENING = 1\n{QUESTIONS['awaited']}")
    front.close()
    front.open(busy=True)
    assert front.button(1, "Approve").count() == 0
    assert front.value("[run.status, sent]") == ["interrupted", []]


@pytest.mark.parametrize("first", [True, False])
def test_of_two_pages_on_one_question_the_first_press_wins(
    opened, new_page, browser_context, server, first
):
    front = begun(opened, "lab", f"two-{first}", ASK)
    front.save()
    other = new_page(browser_context, server, "lab", front.name, busy=True)
    other.button(1, "Approve").wait_for()
    (front if first else other).button(1, "Approve").click()
    for page in (front, other):
        page.sees(1, "That is all.")
        assert page.button(1, "Approve").count() == 0
    front.wait(1)
    assert front.value("sent") == ["hello"]
    other.close()
