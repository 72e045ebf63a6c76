"""A notebook with charts: the parts of a page are one run, whatever is done with the file."""

import copy
import json
import shutil
from pathlib import Path

import nbformat
import pytest
from helpers.paths import python_path
from helpers.scripts import calling
from nbformat.v4 import new_code_cell, new_notebook

from agent_nb.cli.main import main
from agent_nb.notebook.files.git import diff_text, merge_files
from agent_nb.notebook.presave import before_save
from agent_nb.record.forgotten import erase_forgotten
from agent_nb.record.notebook_file import NotebookRuns
from agent_nb.record.record import RECORD_MIME, events_of
from agent_nb.runner.quiet import restore_unchanged

pytest.importorskip("pandas")
pytestmark = pytest.mark.kernel

PLOTLY = "application/vnd.plotly.v1+json"
VEGA_LITE = "application/vnd.vegalite.v5+json"
BEFORE = Path(__file__).with_name("before")
AGENT = "%%agent -m scripted/script.json -t python -t sketch --approve auto\nDraw."
LOAD = """%load_ext agent_nb
from agent_nb import tool
import pandas as pd
frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
chart = {"data": [{"type": "bar", "y": [1, 2]}], "layout": {}}
bars = {"mark": "bar", "data": {"values": [{"a": 1}]}, "encoding": {"x": {"field": "a"}}}

@tool(effect="kernel")
def sketch():
    "Display a table."
    display(frame)
    return "drawn"
"""
CODES = (
    "display({'application/vnd.plotly.v1+json': chart, 'text/plain': 'a figure'}, raw=True)\n'done'",
    "display({'application/vnd.vegalite.v6.json': bars, 'text/plain': 'alt'}, raw=True)\n1 / 0",
    "import ipywidgets\nipywidgets.IntSlider(7)",
    "frame",
    "frame;",
)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The folder of a notebook whose agent has drawn charts, as it is saved."""
    folder = tmp_path_factory.mktemp("charts")
    with pytest.MonkeyPatch.context() as patch:
        reach(patch, folder)
        turns = [*(calling("python", code=code) for code in CODES), calling("sketch"), "Done."]
        (folder / "script.json").write_text(json.dumps({"turns": turns}))
        cells = [new_code_cell(LOAD, id="load"), new_code_cell(AGENT, id="asks")]
        nbformat.write(new_notebook(cells=cells), folder / "n.ipynb")
        assert main(["run", "--live", "--inplace", str(folder / "n.ipynb")]) == 0
    return folder


def reach(patch, folder):
    """Let kernels find this checkout, whether it is installed or not."""
    patch.setenv("PYTHONPATH", python_path())
    patch.setenv("IPYTHONDIR", str(folder / "ipython"))


@pytest.fixture
def folder(recorded, tmp_path, monkeypatch):
    """A copy of that folder."""
    reach(monkeypatch, tmp_path)
    return Path(shutil.copytree(recorded, tmp_path / "copy"))


def read(folder):
    return json.loads((folder / "n.ipynb").read_text(encoding="utf-8"))


def outputs(nb):
    return nb["cells"][1]["outputs"]


def kinds(nb):
    """Return what each output of the cell is: the type of a chart, or a part of the page."""
    charts = (PLOTLY, VEGA_LITE)
    return [next((k for k in charts if k in o["data"]), "page") for o in outputs(nb)]


def run_ids(nb):
    """Return the id of the run that each output of the agent's cell shows."""
    numbers = [o["metadata"]["agent_nb"] for o in outputs(nb)]
    return [n.get("run") or n.get("part") for n in numbers]


def results(nb):
    ((_, record),) = NotebookRuns(nb).list_all()
    return [e for e in events_of(record) if e.type == "result"]


def test_each_chart_is_an_output_between_the_parts_of_its_page(recorded):
    nb = read(recorded)
    assert kinds(nb) == ["page", PLOTLY, "page", VEGA_LITE, "page", "page", "page"]
    assert len(set(run_ids(nb))) == 1
    assert [RECORD_MIME in o["data"] for o in outputs(nb)] == [True, *[False] * 6]


def test_the_record_has_charts_as_json_and_no_widget(recorded):
    plotly, vega, slider, frame, ended, sketch = results(read(recorded))
    assert plotly.attachments[0]["display"][PLOTLY]["data"] == [{"type": "bar", "y": [1, 2]}]
    assert vega.status == "error"  # a chart before an error stays
    assert VEGA_LITE in vega.attachments[0]["display"]
    assert slider.attachments[0]["display"] == {"text/plain": "IntSlider(value=7)"}
    assert "<table" in frame.display["text/html"]
    assert ended.content == frame.content
    assert not ended.display  # `;` shows nothing, as in any cell
    assert "<table" in sketch.attachments[0]["display"]["text/html"]
    text = (recorded / "n.ipynb").read_text()
    assert "model_id" not in text
    assert "widget-view" not in text


def test_a_replay_in_place_leaves_the_file_as_it_was(folder):
    before = (folder / "n.ipynb").read_bytes()
    assert main(["run", "--trust-record", "--inplace", str(folder / "n.ipynb")]) == 0
    assert (folder / "n.ipynb").read_bytes() == before
    assert main(["test", "--trust-record", str(folder / "n.ipynb")]) == 0


@pytest.mark.long  # test_displays has changed displays of every kind
def test_a_changed_chart_is_a_difference(folder, capsys):
    nb = read(folder)
    nb["cells"][0]["source"] = LOAD.replace('"y": [1, 2]', '"y": [1, 3]')
    (folder / "n.ipynb").write_text(json.dumps(nb))
    assert main(["test", "--trust-record", str(folder / "n.ipynb")]) == 1
    assert "its plotly chart differs" in capsys.readouterr().out


@pytest.mark.long
def test_a_live_rerun_with_the_same_answers_keeps_all_parts(folder):
    for _ in range(2):  # the first record is one of this user, which the second may repeat
        before = read(folder)
        assert main(["run", "--live", "--inplace", str(folder / "n.ipynb")]) == 0
    assert outputs(read(folder)) == outputs(before)
    assert len(kinds(before)) == 7


def test_what_a_replay_restores_has_each_part_once(recorded):
    before, now = read(recorded), read(recorded)
    now["cells"][1]["source"] = "await agent('Draw.')"
    for output in outputs(now):
        numbers = output["metadata"]["agent_nb"]
        numbers |= {"replayed": True} if "run" in numbers else {}
        output["data"]["text/plain"] = "as executed"
    outputs(now).append({"output_type": "stream", "name": "stdout", "text": "printed"})
    restore_unchanged(now, before)
    assert outputs(now)[:-1] == outputs(before)
    assert outputs(now)[-1]["text"] == "printed"


def test_a_save_lifts_the_record_and_leaves_the_parts(recorded):
    nb = read(recorded)
    record = NotebookRuns(nb).list_all()[0].record
    outputs(nb)[0]["data"][RECORD_MIME] = record
    outputs(nb)[5]["data"]["application/vnd.jupyter.widget-view+json"] = {"model_id": "gone"}
    del nb["metadata"]["agent_nb"]
    assert before_save({"type": "notebook", "content": nb}, "n.ipynb", None)
    assert [r.record["id"] for r in NotebookRuns(nb).list_all()] == [record["id"]]
    assert kinds(nb) == kinds(read(recorded))
    assert "widget-view" not in json.dumps(nb)


def test_a_forgotten_run_leaves_its_charts_as_outputs_without_a_record(recorded):
    nb = read(recorded)
    run = run_ids(nb)[0]
    outputs(nb).append(
        {"output_type": "display_data", "data": {}, "metadata": {"agent_nb": {"forget": [run]}}}
    )
    NotebookRuns(nb).lift()
    assert erase_forgotten(nb, nb["metadata"]["agent_nb"])
    assert NotebookRuns(nb).list_all() == []
    assert PLOTLY in outputs(nb)[1]["data"]


def test_strip_leaves_displays_and_no_mark_of_ours(recorded):
    nb = read(recorded)
    NotebookRuns(nb).strip()
    assert "agent_nb" not in json.dumps([o["metadata"] for o in outputs(nb)])
    assert PLOTLY in outputs(nb)[1]["data"]


def test_cleared_outputs_take_all_parts_and_the_record_stays(recorded):
    nb = read(recorded)
    nb["cells"][1]["outputs"] = []
    NotebookRuns(nb).lift()
    assert NotebookRuns(nb).cleared_cells() == ["asks"]
    assert len(NotebookRuns(nb).list_all()) == 1


def test_the_text_for_git_has_the_run_once(recorded):
    text = diff_text(read(recorded))
    assert text.count("--- run, ok") == 1
    assert "[figure 1: a Plotly chart]" in text
    assert text.count(PLOTLY) == 1  # in the code of the call


def test_a_merge_takes_all_parts_from_one_side(recorded, tmp_path):
    theirs = read(recorded)
    base, ours = copy.deepcopy(theirs), copy.deepcopy(theirs)
    for nb in (base, ours):
        nb["cells"][1]["outputs"] = []
        nb["metadata"].pop("agent_nb")
    ours["cells"][0]["source"] += "\n# more"
    paths = [tmp_path / f"{name}.ipynb" for name in ("base", "ours", "theirs")]
    for path, nb in zip(paths, (base, ours, theirs), strict=True):
        path.write_text(json.dumps(nb))
    assert merge_files(*paths)
    merged = json.loads(paths[1].read_text())
    assert outputs(merged) == outputs(theirs)
    assert len(NotebookRuns(merged).list_all()) == 1


def test_an_export_has_the_parts_as_one_page_and_no_display_twice(folder):
    page = folder / "page.html"
    assert main(["export", str(folder / "n.ipynb"), "-o", str(page)]) == 0
    html = page.read_text(encoding="utf-8")
    assert "figure 1 of python: a Plotly chart" in html
    assert html.count("Done.") == 1
    assert "Displayed in the cell" not in html
    text = folder / "page.md"
    assert main(["export", str(folder / "n.ipynb"), "-o", str(text)]) == 0
    assert "figure 1 of python: a Plotly chart" in text.read_text(encoding="utf-8")


@pytest.mark.extra
def test_displays_of_older_records_are_shown_below_as_then(tmp_path, monkeypatch):
    for library in ("plotly", "altair", "PIL"):
        pytest.importorskip(library)
    reach(monkeypatch, tmp_path)
    for name in ("charts.ipynb", "charts.json"):
        shutil.copy(BEFORE / name, tmp_path / name)
    path = tmp_path / "charts.ipynb"
    before = path.read_bytes()
    assert main(["test", "--trust-record", str(path)]) == 0
    assert main(["run", "--trust-record", "--inplace", str(path)]) == 0
    assert path.read_bytes() == before
