"""Maps in notebooks: recorded, run again without a request, tested by another user in a clone."""

import json
import shutil

import nbformat
import pytest
from helpers.marks import starts
from helpers.notebooks import write
from nbclient import NotebookClient

from agent_nb.cli.main import main
from agent_nb.record.ipynb import load_notebook
from agent_nb.record.notebook_file import NotebookRuns

pytestmark = pytest.mark.kernel
SETUP = """%load_ext agent_nb
from pathlib import Path
import pandas as pd
from agent_nb import Agent
from agent_nb.models.parts import Text

class Shout:
    "Says the last word aloud, and writes down what it was asked."
    name, dialect, grammar, shots, context = "test/shout", "native", False, False, 0
    def start(self): return self
    async def stream(self, request):
        text = request.messages[-1].text
        with Path("asked.txt").open("a") as file: file.write(text + "\\n")
        yield (Text(text.rpartition(" ")[2].upper()),)
    async def aclose(self): pass

shout = Shout()
df = pd.DataFrame({"text": ["one", "two", "three"]})
"""
MAGIC = "%%agent -m shout --map df -o out\nSay {{ text }}"
SEEN = "assert list(out['answer']) == [t.upper() for t in df['text']]"
AWAITED = "frame = await Agent(shout).map(df, 'Shout {{ text }}')"
SEEN_TOO = "assert list(frame['answer']) == [t.upper() for t in df['text']]"
LARGE = "df = pd.DataFrame({'text': [f'n{n}' for n in range(1010)]})"
STORED = "%%agent -m shout --map df -o out --store rows.sqlite\nSay {{ text }}"
SHARED = "frame = await Agent(shout).map(df, 'Cry {{ text }}', store='cries.sqlite')"
SOURCES = (SETUP, MAGIC, SEEN, AWAITED, SEEN_TOO)


def edit(path, old, new):
    nb = json.loads(path.read_text())
    for cell in nb["cells"]:
        cell["source"] = "".join(cell["source"]).replace(old, new)
    path.write_text(json.dumps(nb, indent=1))


def asked(path):
    file = path.parent / "asked.txt"
    return file.read_text().splitlines() if file.exists() else []


def recorded(path):
    return json.dumps(NotebookRuns(load_notebook(path)).by_cell(), sort_keys=True)


@pytest.fixture(scope="module")
@starts("kernel")
def made(tmp_path_factory):
    """Return a recorded notebook, made once, beside the data folder of the user who made it."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_DATA_DIR", str(folder / "jupyter"))
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        path = write(folder / "n.ipynb", *SOURCES)
        assert main(["run", "--live", "--inplace", str(path)]) == 0
    assert len(asked(path)) == 6
    return path


@pytest.fixture
def own(made, tmp_path, monkeypatch):
    """Return a copy for the user who made it; the store of the maps is empty."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(made.parent / "jupyter"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return shutil.copy(made, tmp_path / "n.ipynb")


@pytest.fixture
def cloned(made, tmp_path, monkeypatch):
    """Return a copy for another user, as after `git clone`."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return shutil.copy(made, tmp_path / "n.ipynb")


def test_run_again_nothing_is_asked(own):
    before = recorded(own)
    assert main(["run", "--inplace", str(own)]) == 0
    assert asked(own) == []
    # the cell with the magic keeps its record; what code awaits is a new run of known rows
    assert json.loads(recorded(own))["cell2"] == json.loads(before)["cell2"]


@pytest.mark.long
def test_only_changed_rows_are_asked(own):
    edit(own, '"three"', '"three", "four"')
    assert main(["run", "--inplace", str(own)]) == 0
    assert sorted(asked(own)) == ["Say four", "Shout four"]


@pytest.mark.few(1)
@pytest.mark.parametrize("options", [(), ("--trust-record",)])
def test_a_clone_is_tested_without_a_request(cloned, capsys, options):
    assert main(["test", *options, str(cloned)]) == 0
    assert "ok, 2 runs replayed" in capsys.readouterr().out
    assert asked(cloned) == []


@pytest.mark.long
def test_a_clone_replays_in_nbclient(cloned, monkeypatch):
    monkeypatch.chdir(cloned.parent)
    monkeypatch.setenv("AGENT_NB_NOTEBOOK", str(cloned))
    nb = nbformat.read(cloned, 4)
    nb.cells = nb.cells[:3]
    NotebookClient(nb, resources={"metadata": {"path": str(cloned.parent)}}).execute()
    assert asked(cloned) == []
    assert "3 of 3 rows answered" in nb.cells[1].outputs[0].data["text/plain"]


@pytest.mark.long
def test_a_test_names_the_rows_without_a_record(cloned, capsys):
    edit(cloned, '"three"', '"3", "four"')
    assert main(["test", "--keep-going", str(cloned)]) == 1
    said = capsys.readouterr().out
    assert "2 of 4 rows have no record: rows 2 and 3 (row 2 asks “Say 3”)" in said
    assert "2 of 4 rows have no record: rows 2 and 3 (row 2 asks “Shout 3”)" in said
    assert asked(cloned) == []


@pytest.mark.long
def test_another_prompt_is_said(cloned, capsys):
    edit(cloned, "Say {{ text }}", "Sing {{ text }}")
    assert main(["test", str(cloned)]) == 1
    said = capsys.readouterr().out
    assert "3 of 3 rows have no record" in said
    assert "+Sing {{ text }}" in said


def test_an_export_shows_the_map(cloned, capsys, tmp_path):
    for ending in ("html", "md"):
        page = tmp_path / f"n.{ending}"
        assert main(["export", str(cloned), "-o", str(page)]) == 0
        assert "3 of 3 rows answered" in page.read_text()


KERNEL = """%load_ext agent_nb
from agent_nb import Scripted
import json
said = [{"calls": [{"name": "python", "args": {"code": "seen.append(len(seen))"}}]}, "Done."]
script = Scripted(said, dialect="native")
seen = []
df = [{"n": 1}, {"n": 2}]"""
CALLING = "%%agent -m script -t python --approve auto --map df --concurrency 1\nGo {{ n }}"


@pytest.mark.long
def test_rows_that_touch_the_kernel_run_again_if_the_record_is_trusted(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = write(tmp_path / "k.ipynb", KERNEL, CALLING, "assert seen == [0, 1]")
    assert main(["run", "--live", "--inplace", str(path)]) == 0
    assert main(["test", str(path)]) == 0
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "another"))
    assert main(["test", "--trust-record", str(path)]) == 0
    capsys.readouterr()
    assert main(["test", str(path)]) == 1
    assert "This code comes from a record that you have not signed" in capsys.readouterr().out


@pytest.mark.long
@pytest.mark.slow
def test_a_large_map_replays_from_the_store_beside_the_notebook(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = write(tmp_path / "large.ipynb", SETUP, LARGE, STORED, SEEN, SHARED, SEEN_TOO)
    assert main(["run", "--live", "--inplace", str(path)]) == 0
    assert len(asked(path)) == 2020
    assert path.stat().st_size < 100_000
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "another"))
    for options in ((), ("--trust-record",)):
        capsys.readouterr()
        assert main(["test", *options, str(path)]) == 0, capsys.readouterr().out
        assert "2 runs replayed" in capsys.readouterr().out
    (tmp_path / "rows.sqlite").unlink()
    (tmp_path / "cries.sqlite").unlink()
    assert main(["test", "--keep-going", str(path)]) == 1
    said = capsys.readouterr().out
    listed = "rows 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 1000 more"
    assert f"1,010 of 1,010 rows have no record: {listed} (row 0 asks “Say n0”)" in said
    assert f"1,010 of 1,010 rows have no record: {listed} (row 0 asks “Cry n0”)" in said
    assert len(asked(path)) == 2020
