"""What JupyterLab and Notebook 7 offer while an agent's line is typed."""

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]
SETUP = """
%load_ext agent_nb
from agent_nb import Scripted, tool
model = Scripted(["Hello."])
reviews = [1, 2]
open("remarks.md", "w").write("Good.")

@tool
def visitors(town: str) -> int:
    "Return how many people visited a town."
    return len(town)
"""
ITEMS = ".jp-Completer-item"


@pytest.fixture(scope="module", params=["lab", "notebook"])
def front(request, opened):
    notebook = opened(request.param, cells=(SETUP,), name=f"completion-{request.param}")
    notebook.start(0)
    notebook.wait(0)
    yield notebook
    notebook.close()


def offered(front, text, name=""):
    """Type a text into a new cell, ask for completions, and return what is offered."""
    cell = front.add("")
    front.select(cell, column=0)
    front.page.keyboard.type(text)
    front.page.keyboard.press("Tab")
    front.page.locator(ITEMS).first.wait_for()
    if name:
        front.shot(f"{front.app}-{name}")
    found = front.page.locator(f"{ITEMS} .jp-Completer-match").all_inner_texts()
    front.page.keyboard.press("Escape")
    return found


def test_options_are_offered(front):
    assert {"--model", "--tools", "--approve"} <= set(offered(front, "%%agent --", "options"))


def test_a_model_is_offered_as_a_variable_or_a_provider(front):
    found = offered(front, "%%agent -m ", "models")
    assert found[0] == "model"
    assert "openai/" in found


def test_tools_are_offered_after_the_last_comma(front):
    found = offered(front, "%%agent -t list,", "tools")
    assert found[0] == "visitors"
    assert not {"list", "tool"} & set(found)


def test_commands_are_offered(front):
    assert "status" in offered(front, "%agent ", "commands")


def test_variables_cells_and_files_are_offered_in_the_prompt(front):
    found = offered(front, "%%agent -m model\nWhat do @re", "mentions")
    assert {"reviews", "remarks.md"} <= set(found)  # other tests save files beside them
    assert "cell:1" in offered(front, "%%agent -m model\nExplain @ce")


def test_a_chosen_name_goes_on_with_the_prompt(front):
    cell = front.add("")
    front.select(cell, column=0)
    for text in ("%%agent -m model\nWhat do @rem", " and @rev"):
        front.page.keyboard.type(text)
        front.page.keyboard.press("Tab")
        front.page.locator(ITEMS).first.wait_for()
        front.page.keyboard.press("Enter")
        front.page.locator(ITEMS).first.wait_for(state="hidden")
    front.page.keyboard.type(" say?")
    front.page.wait_for_function(
        "i => window.jupyterapp.shell.currentWidget.content.widgets[i].model.sharedModel.getSource().endsWith('What do @remarks.md and @reviews say?')",
        arg=cell,
    )
    front.start(cell)
    front.wait(cell)
    front.sees(cell, " variables, 1 file, ")
    front.output(cell).locator("summary", has_text="context: ").click()
    front.output(cell).get_by_text("File remarks.md, 1 line").wait_for()
    front.shot(f"{front.app}-mentions-card")
    front.theme("JupyterLab Dark")
    front.shot(f"{front.app}-mentions-card-dark")
    offered(front, "%%agent -m model\n@", "mentions-dark")
    front.theme("JupyterLab Light")


def test_what_is_chosen_is_put_in(front):
    cell = front.add("")
    front.select(cell, column=0)
    front.page.keyboard.type("%%agent -m model -t vis")
    front.page.keyboard.press("Tab")
    front.page.locator(ITEMS).first.wait_for()
    front.page.keyboard.press("Enter")
    front.page.wait_for_function(
        "i => window.jupyterapp.shell.currentWidget.content.widgets[i].model.sharedModel.getSource().endsWith('-t visitors')",
        arg=cell,
    )
