"""A prompt is not shown again under its own cell; everywhere else a run shows it."""

import pytest

from agent_nb import Scripted
from agent_nb.record.record import RECORD_MIME

pytestmark = pytest.mark.kernel
SETUP = """
%load_ext agent_nb
import json
from agent_nb import Agent, Scripted
model, who = Scripted(["Hello."]), "Ada"
"""
PROMPT = "❯"  # before a prompt, on every page


@pytest.fixture(scope="module")
def ready(kernel):
    status, said, _ = kernel.run(SETUP)
    assert status == "ok", said
    return kernel


def page(ready, code, cell=""):
    status, said, shown = ready.run(code, cell=cell)
    assert status == "ok", said
    (display,) = (d["data"] for d in shown.values() if "text/html" in d["data"])
    return display


@pytest.mark.parametrize("view", ["widgets", "html"])
def test_the_page_below_a_cell_does_not_repeat_its_prompt(ready, view):
    first = page(ready, f"%%agent -m model --view {view}\nGreet\nme.\n", view)
    assert PROMPT not in str(first)
    assert first[RECORD_MIME]["status"] == "ok"
    again = page(ready, f"%%agent -m model --view {view} --rerun replay\nGreet\nme.\n", view)
    assert PROMPT not in again["text/html"]
    assert "replayed" in again["text/html"]


@pytest.mark.parametrize(
    "code",
    [
        "%%agent -m model\nGreet {{ who }}.",
        "await Agent(model)('Greet me.')",
        "_agent.show('html')",
    ],
    ids=["filled in", "awaited", "shown by hand"],
)
def test_a_prompt_that_the_cell_does_not_hold_is_shown(ready, code):
    if "show" in code:
        ready.run("%%agent -m model\nGreet me.")
    assert PROMPT in page(ready, code)["text/html"]


def test_a_prompt_about_the_cell_that_failed_is_shown(ready):
    ready.run("1 / 0")
    shown = page(ready, "%%agent -m model --fix\nWhy?")["text/html"]
    assert PROMPT in shown
    assert "ZeroDivisionError" in shown


def test_exports_of_a_cells_run_have_its_prompt(agent):
    from agent_nb.notebook.files.export import export

    run = agent(body="Greet me.", model=Scripted(["Hello."]))
    for form in ("html", "md", "txt"):
        assert "Greet me." in export([run], form)
