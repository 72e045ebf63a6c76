"""Runs of Python code in a real JupyterLab: `await agent(…)` and `run.show()` have cards whose
buttons work.
"""

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

SETUP = """
%load_ext agent_nb
import asyncio
from agent_nb import Agent, Scripted, tool

@tool(effect="outside")
def touch(name: str) -> str:
    "Touch a thing."
    return f"touched {name}"

def asking():
    return Agent(Scripted(['<execute>[{"name": "touch", "args": {"name": "a"}}]</execute>', "It is **done**."]), [touch])

def talking():
    return Agent(Scripted([{"text": "I am still writing. " * 1000, "chunk": 5, "delay": 0.02}]))
"""


@pytest.fixture(scope="module", params=["this", "7.3"])
def notebook(request, opened):
    """A notebook in JupyterLab, whose kernel is of this Python or another that clicks reach in
    their own way.
    """
    made = opened("lab", request.param, name="awaited")
    made.run(SETUP)
    yield made
    made.close()


def test_an_awaited_run_is_stopped_by_its_button_and_the_cell_with_it(notebook):
    cell = notebook.begin("run = await talking()('Talk.')\nprint('then:', run.status)")
    notebook.sees(cell, "I am still writing.")
    notebook.button(cell, "■ Stop").click()
    notebook.wait(cell)
    notebook.sees(cell, "agent: stopped (stop button)")
    assert "then:" not in notebook.output(cell).inner_text()
    assert notebook.value("_agent.status") == "interrupted"
    assert notebook.output(cell).get_by_role("button").count() == 0


def test_an_awaited_run_is_answered_by_its_buttons(notebook):
    cell = notebook.begin("run = await asking()('Go.')\nprint(run.log.of('approval')[1].by)\nrun")
    notebook.button(cell, "Approve").click()
    notebook.wait(cell)
    notebook.sees(cell, "It is done.")
    notebook.sees(cell, "click")
    assert notebook.output(cell).inner_text().count("It is done.") == 1
    assert notebook.output(cell).get_by_text("<Run ").count() == 1


def test_arguments_are_edited_in_an_awaited_run(notebook):
    cell = notebook.begin("run = await asking()('Go.')\nprint(run.log.of('result')[0].content)")
    notebook.press(cell, "Edit")
    notebook.output(cell).get_by_label("name").fill("b")
    notebook.press(cell, "Approve as edited")
    notebook.wait(cell)
    notebook.sees(cell, "touched b")


def test_a_run_in_the_background_is_shown_live_and_stopped_there(notebook):
    notebook.run("stream = talking()('Talk.').start()")
    cell = notebook.run("stream.run.show()")
    notebook.sees(cell, "I am still writing.")
    notebook.button(cell, "■ Stop").click()
    notebook.sees(cell, "ℹ")
    assert notebook.output(cell).get_by_role("button").count() == 0
    assert notebook.value("stream.run.status") == "interrupted"
