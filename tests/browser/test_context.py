"""What the model was given about the notebook, in JupyterLab: a line that opens; a changed frame in
the header; the failed cell as a question.
"""

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]
SETUP = """
%load_ext agent_nb
import pandas as pd
from agent_nb import Scripted
def sales(rows):
    return pd.DataFrame({"city": ["Rome", "Oslo"] * (rows // 2), "amount": range(rows)})
df, threshold, names = sales(120), 3.5, ["Ann", "Bob"]
class Once(Scripted):
    "Goes on where it stopped."
    identity = "once"
    def start(self):
        return self
counting = Once(['<execute>[{"name": "python", "args": {"code": "len(df)"}}]</execute>', "There are **120** sales."] * 3)
fixing = Once(["Divide by the number of sales: `total / len(df)`."])
"""
AGENT = "%%agent -m counting -t python --approve auto\nHow many sales are in df?"
LINE = "context: 7 variables"


def test_the_context_is_a_line_that_opens_and_a_change_is_in_the_header(opened):
    front = opened("lab", name="context", cells=(SETUP, AGENT))
    for index in (0, 1):
        front.start(index)
        front.wait(index)
    front.sees(1, LINE)
    shown = front.output(1)
    summary = shown.locator("summary", has_text=LINE)
    assert not shown.get_by_text("threshold: float").is_visible()
    front.shot("context-folded")
    summary.click()
    shown.get_by_text("threshold: float").wait_for()
    front.shot("context-open")
    saved = front.save()
    [record] = saved.metadata.agent_nb.runs[saved.cells[1].id]
    assert "context" in [e.get("kind") for e in record["events"]]
    change = front.run("df = sales(122)")
    front.start(1)
    front.wait(1)
    front.sees(1, "`df` 120×2 → 122×2")
    front.shot("context-changed")
    front.start(1)
    front.wait(1)
    front.sees(1, "replayed")
    front.run("names = {'Ann': 1}")
    front.start(1)
    front.wait(1)
    front.sees(1, "since then `names` list → dict")
    front.shot("context-other-changed")
    assert change
    front.open()
    front.output(1).locator("summary", has_text="context: ").wait_for()


def test_the_failed_cell_is_the_question_and_an_unsaved_cells_tag_counts(opened):
    front = opened(
        "lab", name="context-fix", cells=(SETUP, "total = df.amount.sum()\ntotal / 0.0 / zero")
    )
    for index in (0, 1):
        front.start(index)
        front.wait(index)
    cell = front.run("%%agent -m fixing --fix")
    front.sees(cell, "total / len(df)")
    front.shot("context-fix")
    said = front.value("_agent.prompt")
    assert "NameError: name 'zero' is not defined" in said
    tag = "i => window.jupyterapp.shell.currentWidget.content.widgets[i].model.sharedModel.setMetadata('tags', ['agent-exclude'])"
    hidden = front.add("hidden = 1")
    front.page.evaluate(tag, hidden)
    front.start(hidden)
    front.wait(hidden)
    shown = front.run("%agent context -m fixing --context cells")
    front.sees(shown, "Cells that ran before")
    text = front.output(shown).inner_text()
    assert "total / 0.0 / zero" in text
    assert "hidden = 1" not in text
    front.shot("context-command")
    front.select(1)
    front.command("notebook:delete-cell")
    shown = front.run("%agent context -m fixing --context cells")
    front.sees(shown, "Cells that ran before")
    assert "total / 0.0 / zero" not in front.output(shown).inner_text()
