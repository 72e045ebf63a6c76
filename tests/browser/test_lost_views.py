"""A question stays in sight, or is denied: the cell is run again, the page is loaded again, the tab
is closed and opened again, the output is cleared.
"""

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

SETUP = """
%load_ext agent_nb
import json, time
from agent_nb import Agent, Scripted, tool
from agent_nb.view import views

sent = []

@tool(side_effects=True)
def send(text: str) -> str:
    "Send a text."
    sent.append(text)
    return f"sent: {text}"

call = json.dumps([{"name": "send", "args": {"text": "hello"}}])
sending = Scripted([f"<execute>{call}</execute>", "That is all."])
"""
ASK = "%%agent -m sending -t send --live\nSend."
APPS = ["lab", "notebook"]


def asking(opened, app, name, code=ASK):
    front = opened(app, name=f"{name}-{app}", cells=(SETUP, code))
    front.start(0)
    front.wait(0)
    front.start(1)
    try:
        front.button(1, "Approve").wait_for(timeout=15000)
    except Exception:
        front.shot("failed"); print(front.output(1).inner_text(), front.errors()); print((front.server.folder / "server.log").read_text()[-6000:]); raise
    return front


@pytest.mark.parametrize("app", APPS)
def test_a_question_whose_cell_runs_again_is_denied_and_asked_anew(opened, app):
    front = asking(opened, app, "again")
    front.start(1)
    front.button(1, "Approve").wait_for(state="detached")
    front.shot(f"again-gone-{app}")
    front.button(1, "Approve").wait_for()
    front.shot(f"again-{app}")
    front.button(1, "Approve").click()
    front.wait(1)
    front.sees(1, "That is all.")
    front.shot(f"again-end-{app}")
    print(front.save().cells[1].outputs)
    print(front.value("[[ (e.type, getattr(e,'reason',''), getattr(e, 'detail', ''), getattr(e,'status','')) for e in r.log] for r in get_ipython().magics_manager.registry['AgentMagics'].session.runs.popitem()[1]]"))
    print(front.errors())
    print((front.server.folder / "server.log").read_text()[-3000:])


@pytest.mark.parametrize("app", APPS)
def test_a_cleared_question_is_shown_again(opened, app):
    front = asking(opened, app, "cleared")
    front.select(1)
    front.command("notebook:clear-cell-output")
    front.button(1, "Approve").wait_for(state="detached")
    front.button(1, "Approve").wait_for()
    front.shot(f"cleared-{app}")
    front.button(1, "Approve").click()
    front.wait(1)
    front.sees(1, "That is all.")
    print(front.save().cells[1].outputs)
    print((front.server.folder / "server.log").read_text()[-3000:])


@pytest.mark.parametrize("app", APPS)
@pytest.mark.parametrize("way", ["reload", "reopen"])
def test_a_page_that_opens_has_the_question(opened, app, way):
    front = asking(opened, app, way)
    nb = front.save()
    print(nb.cells[1].outputs)
    if way == "reload":
        front.page.reload()
    else:
        front.close()
        front.open(busy=True)
    front.button(1, "Approve").wait_for()
    front.page.wait_for_timeout(1000)
    front.shot(f"{way}-{app}")
    front.button(1, "Approve").click()
    front.sees(1, "That is all.")
    front.shot(f"{way}-end-{app}")
    print("SAVED", front.save().cells[1].outputs)
    print((front.server.folder / "server.log").read_text()[-3000:])
