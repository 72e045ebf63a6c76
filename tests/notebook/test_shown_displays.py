"""Displays of a kernel beside text: in the card of their call, and beside it in the cell."""

import json

import nbformat
import pytest
from helpers.paths import python_path
from helpers.scripts import calling
from nbformat.v4 import new_code_cell, new_notebook

from agent_nb.cli.main import main

pytest.importorskip("pandas")
pytestmark = pytest.mark.kernel

AGENT = "%%agent -m scripted/script.json -t python --approve auto --new\nShow it."
FRAME = "import pandas as pd\nframe = pd.DataFrame({'a': [1, 2], 'b': [3, {value}]})\n"
PLOTLY = """import json
import plotly.express as px
chart = json.loads(px.bar(x=[1, 2], y=[3, {value}]).to_json())
display({'application/vnd.plotly.v1+json': chart, 'text/plain': 'a chart'}, raw=True)"""
# code, the libraries that it needs, and the words of the difference of another value
SHOWN = {
    "a styled table": (f"{FRAME}frame.style.hide(axis=0).highlight_max()", ["jinja2"], "its HTML differs"),
    "a displayed table": (
        f"{FRAME}display(frame.style.highlight_max())",
        ["jinja2"],
        "display 1: its HTML differs",
    ),
    "a chart of Altair": (
        f"import altair\n{FRAME}altair.Chart(frame).mark_bar().encode(x='a', y='b')",
        ["altair"],
        "display 1: its vegalite chart differs",
    ),
    "a chart of Plotly": (
        PLOTLY,
        ["plotly"],
        "display 1: its plotly chart differs",
    ),
    "an SVG": (
        "from IPython.display import SVG\nSVG('<svg xmlns=\"http://www.w3.org/2000/svg\"><text>{value}</text></svg>')",
        [],
        "its SVG differs",
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def reachable(monkeypatch, tmp_path):
    """Let kernels find this checkout, whether it is installed or not."""
    monkeypatch.setenv("PYTHONPATH", python_path())
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))


def record(folder, code, before):
    (folder / "script.json").write_text(
        json.dumps({"turns": [calling("python", code=code), "Done."]})
    )
    cells = [
        new_code_cell(f"%load_ext agent_nb\n{before}", id="load"),
        new_code_cell(AGENT, id="asks"),
    ]
    path = folder / "n.ipynb"
    nbformat.write(new_notebook(cells=cells), path)
    assert main(["run", "--live", "--inplace", str(path)]) == 0
    return path


@pytest.mark.few(1)
@pytest.mark.parametrize("name", SHOWN)
def test_a_display_is_compared_without_its_ids(name, tmp_path, capsys):
    code, needed, words = SHOWN[name]
    for library in needed:
        pytest.importorskip(library)
    body = code.replace("{value}", "5")
    # the code stays, and what it reads changes
    path = record(tmp_path, "show()", before=shows(body))
    assert main(["test", str(path)]) == 0
    nb = nbformat.read(path, as_version=4)
    nb.cells[0].source = f"%load_ext agent_nb\n{shows(code.replace('{value}', '6'))}"
    nbformat.write(nb, path)
    capsys.readouterr()
    assert main(["test", str(path)]) == 1
    assert words in capsys.readouterr().out


def shows(body):
    *lines, last = body.splitlines()
    inner = "\n".join(f"    {line}" for line in [*lines, f"return {last}"])
    return f"def show():\n{inner}"


@pytest.mark.long
def test_a_display_that_is_not_compared_is_named(tmp_path, capsys):
    code = "display({'application/vnd.other+json': {}, 'text/plain': 'x'}, raw=True)"
    path = record(tmp_path, code, before="")
    assert main(["test", "-v", str(path)]) == 0
    assert "not seen: what cell 2 displays as application/vnd.other+json" in capsys.readouterr().out
