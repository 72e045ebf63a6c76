"""Notebooks that nbstripout has stripped without `--keep-id`: all cells have other ids, and replay
from their records all the same.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent_nb.cli.main import main
from agent_nb.record.ipynb import load_notebook

pytestmark = [pytest.mark.kernel, pytest.mark.extra, pytest.mark.timeout(300)]

SETUP = "%load_ext agent_nb\nfrom agent_nb import Scripted\none, two = Scripted(['First.']), Scripted(['Second.'])"
CELLS = {
    "setup-1": SETUP, "aaaa-1": "%%agent -m one\nSay it.", "bbbb-2": "%%agent -m two\nAnd now?",
    "cccc-3": "assert _agent.answer == 'Second.'",
}  # fmt: skip


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A recorded notebook, made once."""
    path = tmp_path_factory.mktemp("stripped") / "n.ipynb"
    save(path, [code(name, source) for name, source in CELLS.items()], {})
    assert main(["run", "--live", "--inplace", str(path)]) == 0
    return path


@pytest.fixture
def notebook(recorded, tmp_path):
    """The recorded notebook after one commit through nbstripout."""
    path = Path(shutil.copy(recorded, tmp_path / "n.ipynb"))
    strip(path)
    assert [c["id"] for c in load_notebook(path)["cells"]] == ["0", "1", "2", "3"]
    assert set(load_notebook(path)["metadata"]["agent_nb"]["runs"]) == {"aaaa-1", "bbbb-2"}
    return path


def code(name, source):
    return {
        "cell_type": "code",
        "id": name,
        "source": source,
        "metadata": {},
        "outputs": [],
        "execution_count": None,
    }


def save(path, cells, metadata):
    path.write_text(
        json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})
    )


def strip(path):
    """Do what git does with a notebook on its way into a commit."""
    if os.environ.get("CI") != "true":
        pytest.importorskip("nbstripout", reason="nbstripout is missing: pip install '.[interop]'")
    subprocess.run([sys.executable, "-m", "nbstripout", str(path)], check=True, timeout=60)


def insert(path, source):
    """Put a cell above the first one, as a front end does."""
    nb = load_notebook(path)
    save(path, [code("f00d", source), *nb["cells"]], nb["metadata"])


def test_a_stripped_notebook_passes_its_test(notebook, capsys):
    assert main(["test", str(notebook)]) == 0
    assert "ok, 2 runs replayed" in capsys.readouterr().out


@pytest.mark.long
def test_it_still_does_when_a_cell_was_inserted_above_and_stripped_again(notebook, capsys):
    # its records stand under the new ids from here on
    assert main(["run", "--inplace", str(notebook)]) == 0
    assert set(load_notebook(notebook)["metadata"]["agent_nb"]["runs"]) == {"1", "2"}
    insert(notebook, "x = 1")
    strip(notebook)
    assert [c["id"] for c in load_notebook(notebook)["cells"]] == ["0", "1", "2", "3", "4"]
    assert main(["test", str(notebook)]) == 0
    capsys.readouterr()
    assert main(["run", "--inplace", str(notebook)]) == 0
    assert capsys.readouterr().out.count("ok, replayed") == 2
    assert set(load_notebook(notebook)["metadata"]["agent_nb"]["runs"]) == {"2", "3"}


def test_saving_again_and_again_loses_no_record(notebook):
    before = [
        r["id"]
        for listed in load_notebook(notebook)["metadata"]["agent_nb"]["runs"].values()
        for r in listed
    ]
    for _ in range(4):
        assert main(["pack", str(notebook)]) == 0
    runs = load_notebook(notebook)["metadata"]["agent_nb"]["runs"]
    assert set(runs) == {"1", "2"}
    assert sorted(r["id"] for listed in runs.values() for r in listed) == sorted(before)


@pytest.mark.long
def test_a_kernel_finds_the_records_of_a_stripped_file_and_says_so(notebook, tmp_path):
    insert(notebook, "%agent status")
    nb = load_notebook(notebook)
    save(
        notebook,
        [nb["cells"][1], *nb["cells"][2:4], nb["cells"][0], nb["cells"][4]],
        nb["metadata"],
    )
    environment = {**os.environ, "AGENT_NB_NOTEBOOK": str(notebook), "AGENT_NB_RERUN": "replay"}
    command = [
        sys.executable,
        "-m",
        "nbconvert",
        "--execute",
        "--to",
        "notebook",
        "--output",
        "out",
        str(notebook),
    ]
    done = subprocess.run(
        command,
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    outputs = [o for c in load_notebook(tmp_path / "out.ipynb")["cells"] for o in c["outputs"]]
    (said,) = (
        text
        for o in outputs
        if (text := "".join(o.get("data", {}).get("text/plain", ""))).startswith("cell ")
    )
    assert said.count(" recorded ") == 2 + 1  # a line each, and the head of the table
    assert "stale" not in said
    assert "unrecorded" not in said
