"""The first cell of a new notebook, without an option but the model: it sees the frame's columns,
and its code asks before it runs.
"""

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]
SETUP = """
%load_ext agent_nb
import pandas as pd
from agent_nb import Scripted
reviews = pd.DataFrame({"text": ["Quick and kind.", "Never again."], "stars": [5, 1]})
class Keeping(Scripted):
    "Keeps the texts that it is sent, and goes on where it stopped."
    identity, sent = "keeping", []
    def start(self):
        return self
    def stream(self, request):
        self.sent.append(([m.text for m in request.messages], [t.name for t in request.tools]))
        return super().stream(request)
model = Keeping([
    "`reviews` has two columns: `text` and `stars`.",
    '<execute>[{"name": "python", "args": {"code": "reviews.stars.mean()"}}]</execute>',
    "The mean is **3.0** stars.",
])
"""
COLUMNS = "%%agent -m model\nWhat columns does reviews have?"
MEAN = "%%agent -m model\nHow many stars on average?"


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_the_first_cell_sees_the_columns_and_asks_before_code(opened, app):
    front = opened(app, name=f"first-{app}", cells=(SETUP, COLUMNS, MEAN))
    for index in (0, 1):
        front.start(index)
        front.wait(index)
    front.sees(1, "reviews has two columns")
    messages, tools = front.value("model.sent[0]")
    assert "reviews: pandas.DataFrame 2×2 (text: " in messages[-1]
    assert "Never again" not in str(messages)
    assert tools == ["python", "add_cell"]
    front.output(1).locator("summary", has_text="context: 3 variables").click()
    front.output(1).get_by_text("stars: int64").wait_for()
    front.start(2)
    front.button(2, "Approve").wait_for()
    front.shot(f"first-{app}-asks")
    front.button(2, "Approve").click()
    front.wait(2)
    front.sees(2, "The mean is 3.0 stars.")
    front.shot(f"first-{app}")
    assert front.errors() == []
