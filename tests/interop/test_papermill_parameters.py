"""papermill with parameters: a run per set of values, recorded in the output, replayed from there,
and lifted by `pack`.

papermill clears the outputs of its input, and writes the output after each cell. Records that were
lifted stay (they are metadata); a record that stands only in an output of the input is not in
papermill's output: pack the file first, or let `AGENT_NB_NOTEBOOK` name it.
"""

import json

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from agent_nb.rows.recorded_runs import runs

pytestmark = [
    pytest.mark.usefixtures("others"),
    pytest.mark.kernel,
    pytest.mark.extra,
    pytest.mark.timeout(300),
]

PROMPT = (
    "%%agent -m scripted/script.json -t python --approve auto --new\nHow many cups of {{ drink }}?"
)
SCRIPT = [
    '<think>I count.</think><execute>[{"name": "python", "args": {"code": "cups = len(drink)\\ncups"}}]</execute>',
    "That many.",
]


@pytest.fixture
def notebook(tmp_path):
    """A notebook with parameters, an agent cell whose prompt uses them, and a cell that uses what
    the agent did.
    """
    (tmp_path / "script.json").write_text(json.dumps({"turns": SCRIPT}))
    parameters = new_code_cell('drink = "water"', id="values", metadata={"tags": ["parameters"]})
    others = [
        new_code_cell(source, id=f"cell{n}")
        for n, source in enumerate(("%load_ext agent_nb", PROMPT, "print('cups:', cups)"))
    ]
    path = tmp_path / "n.ipynb"
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(new_notebook(cells=[parameters, *others], metadata=kernel), path)
    return path


@pytest.fixture
def papermill(tool, tmp_path):
    """Execute one file into another: `papermill(source, target, drink)`."""

    def papermill(source, target, drink, rerun="replay", **options):
        command = (
            "papermill",
            source,
            tmp_path / target,
            "-p",
            "drink",
            drink,
            "--no-progress-bar",
        )
        done = tool(
            *command, cwd=tmp_path, AGENT_NB_NOTEBOOK=str(source), AGENT_NB_RERUN=rerun, **options
        )
        return tmp_path / target, done

    return papermill


def outputs(path):
    return [
        "".join(o.get("text", ""))
        for c in json.loads(path.read_text())["cells"]
        for o in c.get("outputs", [])
    ]


def test_a_run_with_parameters_is_recorded_replayed_and_its_own_test(
    notebook, papermill, tool, tmp_path
):
    recorded, _ = papermill(notebook, "tea.ipynb", "tea", rerun="live")
    assert "cups: 3\n" in outputs(recorded)
    (run,) = runs(recorded)
    assert (run.prompt, run.answer) == ("How many cups of tea?", "That many.")

    again, _ = papermill(recorded, "again.ipynb", "tea")
    assert "cups: 3\n" in outputs(again)
    assert [(r.id, r.cell) for r in runs(again)] == [(run.id, "cell1")]

    tool("agent_nb", "pack", again, cwd=tmp_path)
    assert [(r.id, r.cell) for r in runs(again)] == [(run.id, "cell1")]
    tool("agent_nb", "test", "--trust-record", again, cwd=tmp_path)


@pytest.mark.long
def test_other_values_do_not_replay_and_the_message_says_what_changed(notebook, papermill):
    recorded, _ = papermill(notebook, "tea.ipynb", "tea", rerun="live")
    _, done = papermill(recorded, "milk.ipynb", "milk", check=False)
    assert done.returncode != 0
    assert "stale (prompt changed)" in done.stdout


@pytest.mark.long
def test_other_values_run_live_where_allowed_and_both_runs_are_kept(
    notebook, papermill, tool, tmp_path
):
    recorded, _ = papermill(notebook, "tea.ipynb", "tea", rerun="live")
    tool("agent_nb", "pack", recorded, cwd=tmp_path)
    other, _ = papermill(recorded, "milk.ipynb", "milk", rerun="auto")
    assert "cups: 4\n" in outputs(other)
    assert [r.prompt for r in runs(other)] == ["How many cups of tea?", "How many cups of milk?"]
