"""What is left of a run: after a reload with a fresh kernel, beside another run, and when the page
was closed while it went on.
"""

import json

import nbformat
import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

WIDGET = "application/vnd.jupyter.widget-view+json"
PREPARE = """
import asyncio, time
from pathlib import Path
from agent_nb import Scripted, tool
%load_ext agent_nb

talk = Scripted([{"text": "<think>Where do I begin?</think>" + "I am still writing. " * 1000, "chunk": 5, "delay": 0.02}])

class Held(Scripted):
    "Begins, and ends when the test makes a file."

    def start(self):
        return Held(self.turns)

    async def stream(self, request):
        async for parts in super().stream(request):
            yield parts
            while not Path("saved").exists():
                await asyncio.sleep(0.02)

short = Held([{"chunks": ["<think>Where do I begin?</think>I am still writing. ", "The end."]}])
work = Scripted([
    '<think>Dig first.</think><execute>[{"name": "dig", "args": {"depth": 8}}, {"name": "nothing", "args": {}}]</execute>',
    "<think>It is done.</think>There is a **hole** of 8 metres:\\n\\n```python\\ndepth = 8\\n```\\n",
])

@tool
def dig(depth: int):
    "Dig, metre by metre."
    for metre in range(depth):
        time.sleep(0.02)
        yield (metre + 1) / depth
        yield f"metre {metre}\\n"
    return {"depth": depth}
"""


def no_widget_is_missed(notebook, cell):
    text = notebook.output(cell).inner_text()
    assert "Error displaying widget" not in text
    assert "Loading widget" not in text


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_saved_run_is_static_and_reads_the_same_with_a_fresh_kernel(opened, app):
    notebook = opened(app, name="reload", cells=(PREPARE,))
    notebook.start(0)
    notebook.wait(0)
    cell = notebook.run("%%agent -m work -t dig\nDig a hole.")
    notebook.sees(cell, "hole")
    before = notebook.output(cell).inner_text()
    saved = notebook.save()
    nbformat.validate(saved)
    [output] = saved.cells[cell].outputs
    assert {"text/html", "text/markdown", "text/plain"} <= set(output.data)
    assert WIDGET not in output.data
    assert "widgets" not in saved.metadata
    [record] = saved.metadata.agent_nb.runs[saved.cells[cell].id]
    assert [e.get("status", "ok") for e in record["events"] if e["type"] == "result"] == [
        "ok",
        "error",
    ]
    notebook.close()
    notebook.server.end_kernels()
    notebook.open()
    notebook.sees(cell, "hole")
    assert notebook.value("'_agent' in globals()") is False
    no_widget_is_missed(notebook, cell)
    assert notebook.output(cell).inner_text() == before
    assert notebook.output(cell).locator("details").count() >= 4
    notebook.shot(f"reloaded-{app}")


def test_two_notebooks_run_at_once_and_each_keeps_to_itself(opened):
    one, two = (
        opened("lab", name="one", cells=(PREPARE,)),
        opened("lab", name="two", cells=(PREPARE,)),
    )
    for notebook in (one, two):
        notebook.page.bring_to_front()
        notebook.start(0)
        notebook.wait(0)
    cells = []
    for notebook, prompt in ((one, "The first."), (two, "The second.")):
        notebook.page.bring_to_front()
        cells.append(notebook.begin(f"%%agent -m talk\n{prompt}"))
        notebook.sees(cells[-1], "I am still writing")
    one.page.bring_to_front()
    one.button(cells[0], "■ Stop").click()
    one.wait(cells[0])
    two.page.bring_to_front()
    assert two.button(cells[1], "■ Stop").is_enabled()
    assert one.events()[-1]["status"] == "interrupted"
    two.button(cells[1], "■ Stop").click()
    two.wait(cells[1])
    for notebook, cell, prompt in ((one, cells[0], "The first."), (two, cells[1], "The second.")):
        [record] = notebook.save().metadata.agent_nb.runs.values()
        assert [e["content"] for e in record[0]["events"] if e["type"] == "user"] == [prompt]
        notebook.sees(cell, "Stopped")


def test_a_page_closed_while_a_run_goes_on_loses_nothing(opened):
    """It is saved in mid-run (as autosave does) and closed; the run ends; the page comes back and
    the record with it.
    """
    notebook = opened("lab", name="closed", cells=(PREPARE,))
    notebook.start(0)
    notebook.wait(0)
    gate = notebook.server.root / "saved"
    gate.unlink(missing_ok=True)  # of a try before this one: the folder is shared
    cell = notebook.begin("%%agent -m short\nWrite.")
    notebook.sees(cell, "I am still writing")
    saved = notebook.save()
    nbformat.validate(saved)
    page, live = saved.cells[cell].outputs
    assert WIDGET in live.data
    assert WIDGET not in page.data
    notebook.close()
    gate.touch()
    notebook.server.idle()
    notebook.open()
    notebook.sees(cell, "If it has ended since")
    notebook.sees(cell, "%agent recover")
    assert notebook.value("_agent.status") == "ok"
    run = notebook.value("_agent.id")
    assert run in notebook.output(cell).inner_text()
    back = notebook.run(f"%agent recover {run}")
    notebook.sees(back, "The end.")
    saved = notebook.save()
    nbformat.validate(saved)
    found = [
        record
        for listed in saved.metadata.agent_nb.runs.values()
        for record in listed
        if record["id"] == run
    ]
    assert [e["type"] for e in found[0]["events"]][-1] == "end"
    assert json.dumps(found[0]["events"]).count("The end.") == 1


def test_a_page_that_comes_back_during_the_run_lets_run_and_kernel_go_on(opened):
    notebook = opened("lab", name="back", cells=(PREPARE,))
    notebook.start(0)
    notebook.wait(0)
    cell = notebook.begin("%%agent -m talk\nWrite.")
    notebook.sees(cell, "I am still writing")
    notebook.close()
    notebook.open(busy=True)
    notebook.command("notebook:interrupt-kernel")
    notebook.server.idle()
    assert notebook.events()[-1]["status"] == "interrupted"
    again = notebook.run("%%agent -m work -t dig\nDig a hole.")
    notebook.sees(again, "hole")
    assert notebook.events()[-1]["status"] == "ok"
