"""Notebooks replayed by tools that know nothing of this package: no key, no network, and the record
neither lost nor doubled.

What each tool does with the file: `jupyter execute --inplace` and `nbmake --overwrite` write the
notebook they read, with new outputs; papermill writes another one, with the metadata of the first.
None of them lifts, so the runs stand in the outputs (and, for a replay, still in the metadata);
readers count each once, and `jupyter agent-nb pack FILE` moves them.
"""

import shutil

import nbformat
import pytest

from agent_nb.record.agent_cells import agent_cell
from agent_nb.record.notebook_file import NotebookRuns
from agent_nb.record.outputs import RunNumbers
from agent_nb.record.record import METADATA_KEY, RECORD_MIME
from agent_nb.rows.recorded_runs import runs

pytestmark = [
    pytest.mark.usefixtures("others"),
    pytest.mark.kernel,
    pytest.mark.early,
    pytest.mark.extra,
    pytest.mark.timeout(300),
]

LOOK = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=20)"


@pytest.fixture
def replayed(read):
    """Assert that a tool has replayed an example: every agent cell, without drift, with the record
    as it was.
    """

    def replayed(path, original):
        nb = read(path)
        nbformat.validate(nbformat.from_dict(nb))
        agents = [
            c["id"]
            for c in nb["cells"]
            if c["cell_type"] == "code" and agent_cell("".join(c["source"])) is not None
        ]
        agents = agents or list(NotebookRuns(read(original)).by_cell())  # runs of Python code alone
        shown = dict(RunNumbers.list_all(nb))
        assert agents
        assert set(agents) <= set(shown)
        assert all(shown[cell]["replayed"] and "drift" not in shown[cell] for cell in agents)
        before = read(original)
        assert {cell: NotebookRuns(nb).by_cell()[cell] for cell in agents} == {
            cell: NotebookRuns(before).by_cell()[cell] for cell in agents
        }
        assert [(run.cell, run.id) for run in runs(path)] == [
            (run.cell, run.id) for run in runs(original)
        ]
        assert "application/vnd.jupyter.widget-view+json" not in str(nb["cells"])
        assert "widgets" not in nb["metadata"]
        return nb

    return replayed


def test_there_is_no_network_but_loopback(closed, tool, tmp_path):
    (tmp_path / "look.py").write_text(LOOK)
    done = tool("look", cwd=tmp_path, check=False)
    assert "Network is unreachable" in done.stdout or "the network is closed" in done.stdout


@pytest.mark.few(1)
def test_jupyter_execute_in_place(example, examples, tool, replayed, read, original):
    path = examples / example
    recorded = read(path)["metadata"][METADATA_KEY]
    for _ in range(2):
        tool(
            "jupyter",
            "execute",
            "--inplace",
            path.name,
            cwd=path.parent,
            AGENT_NB_NOTEBOOK=str(path),
        )
        replayed(path, original(example))
    tool("agent_nb", "pack", path, cwd=path.parent)
    nb = replayed(path, original(example))
    assert nb["metadata"][METADATA_KEY] == recorded
    assert all(
        set(o["data"][RECORD_MIME]) == {"version", "ref"}
        for c in nb["cells"]
        for o in c.get("outputs", [])
        if RECORD_MIME in o.get("data", {})
    )


@pytest.mark.few(1)
def test_papermill(example, examples, tool, replayed, original):
    path = examples / example
    before = path.read_bytes()
    tool(
        "papermill",
        path,
        examples / "out.ipynb",
        "--cwd",
        path.parent,
        cwd=path.parent,
        AGENT_NB_NOTEBOOK=str(path),
    )
    replayed(examples / "out.ipynb", original(example))
    assert path.read_bytes() == before


@pytest.mark.long
def test_papermill_over_its_own_input(examples, tool, replayed, original):
    path = examples / "scripted.ipynb"
    tool("papermill", path, path, cwd=examples, AGENT_NB_NOTEBOOK=str(path))
    replayed(path, original("scripted.ipynb"))


@pytest.mark.long
def test_nbmake_needs_no_variable_for_the_file(examples, names, tool, replayed, original):
    done = tool(
        "pytest", "--nbmake", "--overwrite", "-q", "-p", "no:cacheprovider", ".", cwd=examples
    )
    assert f"{len(names)} passed" in done.stdout
    for name in names:
        replayed(examples / name, original(name))


def test_nbconvert_executes_a_copy(examples, tool, replayed, original):
    path = examples / "scripted.ipynb"
    tool(
        "nbconvert",
        "--execute",
        "--to",
        "notebook",
        "--output",
        "out.ipynb",
        path,
        cwd=examples,
        AGENT_NB_NOTEBOOK=str(path),
    )
    replayed(examples / "out.ipynb", original("scripted.ipynb"))


@pytest.mark.few(1)
@pytest.mark.parametrize("runner", ["jupyter execute", "papermill", "nbconvert"])
def test_a_notebook_in_the_kernels_folder_needs_no_variable(
    examples, tool, replayed, original, runner
):
    commands = {
        "jupyter execute": [
            "jupyter",
            "execute",
            "--output",
            examples / "out.ipynb",
            "scripted.ipynb",
        ],
        "papermill": ["papermill", "scripted.ipynb", "out.ipynb"],
        "nbconvert": [
            "nbconvert",
            "--execute",
            "--to",
            "notebook",
            "--output",
            "out.ipynb",
            "scripted.ipynb",
        ],
    }
    for _ in range(2):  # what the first round wrote is in nobody's way
        tool(*commands[runner], cwd=examples)
        replayed(examples / "out.ipynb", original("scripted.ipynb"))


@pytest.mark.long
def test_nbval_passes_where_it_does_not_compare_outputs(examples, tool):
    pytest.importorskip("nbval")
    tool("pytest", "--nbval-lax", "-q", "-p", "no:cacheprovider", "scripted.ipynb", cwd=examples)


@pytest.mark.long
def test_with_two_such_files_the_message_names_them_and_the_variable(examples, tool):
    shutil.copy(examples / "scripted.ipynb", examples / "another.ipynb")
    done = tool(
        "jupyter",
        "execute",
        "--output",
        examples / "out.ipynb",
        "scripted.ipynb",
        cwd=examples,
        check=False,
    )
    assert done.returncode != 0
    assert "another.ipynb and scripted.ipynb: name the file in AGENT_NB_NOTEBOOK" in done.stdout
