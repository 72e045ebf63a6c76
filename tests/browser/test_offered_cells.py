"""A cell that an agent offers, in JupyterLab and Notebook 7: inserted below after a press, and
never without one.
"""

import pytest

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(240),
    pytest.mark.usefixtures("settled"),
]
CODE = 'town = df.groupby("town")["visitors"].sum()\\ntown.sort_values().plot.barh(title="Visitors by town")'
SETUP = f"""
import asyncio, json
from pathlib import Path
from agent_nb import Agent, Scripted, tool
%load_ext agent_nb

@tool(effect="none")
async def wait() -> str:
    "Wait until the test makes a file."
    while not Path("go").exists():
        await asyncio.sleep(0.05)
    return "waited"

def calling(name, **args):
    return f"<execute>{{json.dumps([{{'name': name, 'args': args}}])}}</execute>"

class Again(Scripted):
    identity = "the same"

model = Again([
    calling("add_cell", code='''{CODE}''', why="Which town has the most visitors, as a chart."),
    calling("add_cell", code="df.describe()", why="The figures behind it."),
    calling("wait"),
    "Hamburg has the most visitors. **Two cells** are offered above.",
])
quick = Scripted([calling("add_cell", code="df.describe()", why="The figures."), "Offered."])
"""
CELL = "%%agent -m model -t add_cell,wait --live\nWhich town has the most visitors?"
SOURCES = "() => window.jupyterapp.shell.currentWidget.content.widgets.map(w => w.model.sharedModel.getSource())"


@pytest.fixture(scope="module", params=["lab", "notebook"])
def front(request, opened):
    notebook = opened(request.param, cells=(SETUP,), name=f"offered-{request.param}")
    notebook.start(0)
    notebook.wait(0)
    yield notebook
    notebook.close()


def sources(front):
    return front.page.evaluate(SOURCES)


def begin(front):
    (front.server.root / "go").unlink(missing_ok=True)
    cell = front.begin(CELL)
    front.sees(cell, "The figures behind it.")
    return cell


def end(front, cell):
    (front.server.root / "go").touch()
    front.wait(cell)


def test_without_a_press_no_cell_is_inserted(front):
    cell = begin(front)
    front.button(cell, "Insert below").nth(1).wait_for()
    before = sources(front)
    end(front, cell)
    assert sources(front) == before


def test_the_cell_that_was_pressed_last_is_inserted_below_and_not_run(front):
    cell = begin(front)
    before = sources(front)
    buttons = front.button(cell, "Insert below")
    buttons.nth(1).click()
    front.button(cell, "✓ Inserted when the run ends").wait_for()
    front.button(cell, "Insert below").first.click()
    front.page.wait_for_function(
        "() => [...document.querySelectorAll('button')].filter(b => b.innerText.startsWith('✓ Inserted')).length === 1"
    )
    front.shot(f"{front.app}-cell-chosen")
    end(front, cell)
    wanted = CODE.replace("\\n", "\n")
    front.page.wait_for_function(f"n => ({SOURCES})().length === n", arg=len(before) + 1)
    assert sources(front) == [*before[: cell + 1], wanted, *before[cell + 1 :]]
    saved = front.save()
    assert saved.cells[cell + 1].source == wanted
    assert saved.cells[cell + 1].execution_count is None
    front.shot(f"{front.app}-cell-inserted")


def test_a_replay_has_no_button_and_inserts_nothing(front):
    cell = front.run("%%agent -m quick -t add_cell -c quick\nOffer.")
    before = sources(front)
    front.start(cell)
    front.wait(cell)
    front.sees(cell, "replayed")
    assert front.button(cell, "Insert below").count() == 0
    assert front.output(cell).get_by_text("A cell for you").count() == 1
    assert sources(front) == before


def test_one_click_selects_the_whole_code(front):
    cell = begin(front)
    end(front, cell)
    front.output(cell).locator("pre", has_text="sort_values").click()
    front.shot(f"{front.app}-cell-selected")
    assert front.page.evaluate("() => String(getSelection()).trim()") == CODE.replace("\\n", "\n")


def test_afterwards_the_command_puts_the_cell_in_its_own_place(front):
    cell = begin(front)
    end(front, cell)
    asked = front.run("%agent cell 2")
    front.page.wait_for_function(f"i => ({SOURCES})()[i] === 'df.describe()'", arg=asked)


def test_a_run_that_a_cell_awaits_inserts_the_chosen_cell(front):
    (front.server.root / "go").unlink(missing_ok=True)
    cell = front.begin("run = await Agent(model, ['add_cell', wait])('Which town?')")
    front.button(cell, "Insert below").nth(1).click()
    front.button(cell, "✓ Inserted when the run ends").wait_for()
    end(front, cell)
    front.page.wait_for_function(f"i => ({SOURCES})()[i] === 'df.describe()'", arg=cell + 1)
