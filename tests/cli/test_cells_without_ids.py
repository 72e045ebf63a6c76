"""Notebooks of nbformat 4.4 and of Colab: their cells have no ids, and keep their records."""

import json

import nbformat
import pytest

from agent_nb.cli.main import main

pytestmark = pytest.mark.kernel
SETUP = """%load_ext agent_nb
from agent_nb.models.scripted import Scripted
m = Scripted(["One.", "Two.", "Three."], dialect="native")"""
AGENTS = [f"%%agent -m m\n{question}" for question in ("first", "second", "first")]


@pytest.fixture
def recorded(tmp_path):
    """Return a recorded notebook whose cells have ids."""
    cells = [
        nbformat.v4.new_code_cell(source, id=f"c{n}") for n, source in enumerate([SETUP, *AGENTS])
    ]
    path = tmp_path / "n.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    assert main(["run", "--live", "--inplace", str(path)]) == 0
    return path


def without_ids(path, *, minor=4, colab=False):
    nb = json.loads(path.read_text())
    for n, cell in enumerate(nb["cells"]):
        cell.pop("id")
        if colab:
            cell["metadata"]["id"] = f"Colab{n}"
    path.write_text(json.dumps({**nb, "nbformat_minor": minor}))


@pytest.mark.few(1)
@pytest.mark.parametrize("form", [{}, {"minor": 0, "colab": True}, {"minor": 5}])
def test_cells_without_ids_are_replayed(recorded, capsys, form):
    without_ids(recorded, **form)
    before = recorded.read_bytes()
    capsys.readouterr()
    assert main(["test", str(recorded)]) == 0
    assert "ok, 3 runs replayed" in capsys.readouterr().out
    assert main(["run", "--rerun", "replay", "--inplace", str(recorded)]) == 0
    assert recorded.read_bytes() == before


@pytest.mark.long
def test_a_cell_above_the_others_does_not_move_their_records(recorded, capsys):
    without_ids(recorded)
    nb = json.loads(recorded.read_text())
    nb["cells"].insert(0, {**nb["cells"][0], "source": "1 + 1", "outputs": []})
    recorded.write_text(json.dumps(nb))
    assert main(["test", str(recorded)]) == 0


@pytest.mark.long
def test_records_in_outputs_of_cells_without_ids_are_replayed(recorded, capsys):
    """A notebook that came from a front end without our server hook, and was not packed."""
    nb = json.loads(recorded.read_text())
    runs = nb["metadata"].pop("agent_nb")["runs"]
    for cell in nb["cells"][1:]:
        output = next(o for o in cell["outputs"] if "agent_nb" in o.get("metadata", {}))
        output["data"]["application/vnd.agent-nb.run+json"] = runs[cell["id"]][0]
    recorded.write_text(json.dumps(nb))
    without_ids(recorded)
    assert main(["test", str(recorded)]) == 0
    assert main(["pack", str(recorded)]) == 0
    nb = json.loads(recorded.read_text())
    assert not any("id" in cell for cell in nb["cells"])
    assert list(nb["metadata"]["agent_nb"]["runs"]) == ["cell-2", "cell-3", "cell-4"]
    assert main(["test", str(recorded)]) == 0


def test_the_readers_name_cells_without_ids_by_their_place(recorded, capsys):
    without_ids(recorded)
    capsys.readouterr()
    assert main(["git-text", str(recorded)]) == 0
    shown = capsys.readouterr().out
    assert "of a cell that is gone" not in shown
    two = shown.index("=== code cell cell-2")
    assert two < shown.index("    One.", two) < shown.index("=== code cell cell-3")
