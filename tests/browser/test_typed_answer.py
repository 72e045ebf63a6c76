"""A typed answer in a real JupyterLab: a table in its card, also in a reloaded page."""

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

SETUP = """
%load_ext agent_nb
from pydantic import BaseModel
from agent_nb import Scripted
class Row(BaseModel):
    "A product."
    name: str
    price: float
    stock: int
    organic: bool | None = None
class Order(BaseModel):
    number: int
    customer: str
    rows: list[Row]
    note: str = ""
def final(document, **more):
    return {"calls": [{"name": "final_answer", "args": document}], **more}
tea = dict(name="Darjeeling, second flush", price=14.5, stock=12, organic=True)
oil = dict(name="Olive oil", price=9, stock=0, organic=None)
rows = Scripted([final({"value": [tea, oil]})], dialect="native")
order = Scripted([{"text": "Let me look. ", **final({"number": "17"})},
                  final({"number": 17, "customer": "Ada Lovelace", "rows": [tea, oil], "note": "Please ring."})], dialect="native")
slow = Scripted([{"chunks": ['{"value": [', *['{"name": "tea", "price": 1.5, "stock": 3}, '] * 80, '{"name": "x"}]}'], "delay": 0.2}], dialect="xml")
number = Scripted(["42"], dialect="xml")
"""


@pytest.fixture(scope="module")
def notebook(opened):
    notebook = opened("lab", name="typed", cells=(SETUP,))
    notebook.start(0)
    notebook.wait(0)
    return notebook


def rows_of(notebook, index, number=0):
    table = notebook.output(index).locator("table").nth(number)
    return [row.split("\t") for row in table.inner_text().splitlines() if row.strip()]


def test_rows_are_a_table_also_after_a_reload(notebook):
    index = notebook.begin("%%agent -m rows --output list[Row] --live\nWhich products are there?")
    notebook.wait(index)
    notebook.sees(index, "Olive oil")
    notebook.shot("typed-rows")
    shown = rows_of(notebook, index)
    assert shown[0] == ["name", "price", "stock", "organic"]
    assert shown[1] == ["Darjeeling, second flush", "14.5", "12", "true"]
    assert shown[2] == ["Olive oil", "9", "0", "–"]
    assert notebook.value("_agent.output == [Row(**tea), Row(**oil)]")
    notebook.save()
    notebook.close()
    notebook.open()
    notebook.sees(index, "Olive oil")
    assert rows_of(notebook, index) == shown


def test_an_object_is_fields_and_values_after_a_correction(notebook):
    index = notebook.begin("%%agent -m order --output Order --live\nWhat did Ada order?")
    notebook.wait(index)
    notebook.sees(index, "Ada Lovelace")
    notebook.shot("typed-order")
    notebook.theme("JupyterLab Dark")
    notebook.shot("typed-order-dark")
    notebook.theme("JupyterLab Light")
    assert rows_of(notebook, index)[0] == ["field", "value"]
    assert rows_of(notebook, index, 1)[1][0] == "Darjeeling, second flush"


def test_what_is_being_written_is_json_and_a_scalar_is_its_value(notebook):
    index = notebook.begin("%%agent -m slow --output list[Row] --live\nWrite.")
    notebook.sees(index, '"tea"')
    notebook.shot("typed-writing")
    notebook.button(index, "■ Stop").click()
    notebook.wait(index)
    index = notebook.begin("%%agent -m number --output int --live\nHow many?")
    notebook.wait(index)
    notebook.sees(index, "42")
    notebook.shot("typed-number")
