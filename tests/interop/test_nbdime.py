"""Notebooks that nbdime has merged: the records of both sides are there, also where it could not
merge those of one cell.
"""

import json
import os
import subprocess
import sys

import pytest

from agent_nb.cli.main import main
from agent_nb.events import End, Respond, RunStart, User
from agent_nb.events.log import EventLog
from agent_nb.record.ipynb import load_notebook
from agent_nb.record.notebook_file import NotebookRuns
from agent_nb.record.record import RECORD_MIME, run_record

pytestmark = [pytest.mark.extra, pytest.mark.slow]


def record(run, started):
    log = EventLog(run, clock=lambda: started)
    for event in (
        RunStart(model="x"),
        User(content="hi"),
        Respond(content=f"{run} says.", turn=1),
        End(),
    ):
        log.append(event)
    return run_record(log)


def notebook(**runs):
    """Return a saved notebook with these runs, by cell, the newest of which are shown."""
    cells = []
    for name, made in runs.items():
        shown = {
            "output_type": "display_data",
            "data": {"text/plain": made[0]["id"], RECORD_MIME: made[0]},
        }
        shown["metadata"] = {"agent_nb": {"run": made[0]["id"]}}
        made_of = {"cell_type": "code", "id": name, "source": ["%%agent\n", "hi"]}
        cells.append({**made_of, "execution_count": 1, "metadata": {}, "outputs": [shown]})
    nb = {
        "cells": cells,
        "metadata": {"agent_nb": {"version": 1, "runs": runs}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    NotebookRuns(nb).lift()
    return nb


FIRST, MINE, YOURS = record("first", 1.0), record("mine", 2.0), record("yours", 3.0)


@pytest.fixture
def merge(tmp_path):
    """Merge three notebooks; return the file."""
    if os.environ.get("CI") != "true":
        pytest.importorskip("nbdime", reason="nbdime is missing: pip install '.[interop]'")

    def merged(**sides):
        for name, nb in sides.items():
            (tmp_path / f"{name}.ipynb").write_text(json.dumps(nb))
        out = tmp_path / "merged.ipynb"
        paths = [str(tmp_path / f"{name}.ipynb") for name in ("base", "ours", "theirs")]
        subprocess.run(
            [sys.executable, "-m", "nbdime.nbmergeapp", *paths, "--out", str(out)],
            check=False,
            timeout=120,
        )
        return out

    return merged


def ids(path):
    return {
        name: sorted(r["id"] for r in listed)
        for name, listed in NotebookRuns(load_notebook(path)).by_cell().items()
    }


def test_reruns_of_two_cells_are_both_kept(merge):
    base = notebook(a=[FIRST], b=[FIRST])
    path = merge(
        base=base,
        ours=notebook(a=[MINE, FIRST], b=[FIRST]),
        theirs=notebook(a=[FIRST], b=[YOURS, FIRST]),
    )
    assert ids(path) == {"a": ["first", "mine"], "b": ["first", "yours"]}


def both(merge):
    return merge(
        base=notebook(a=[FIRST]), ours=notebook(a=[MINE, FIRST]), theirs=notebook(a=[YOURS, FIRST])
    )


def test_two_reruns_of_one_cell_are_kept_and_end_the_conflict_at_a_save(merge):
    path = both(merge)
    assert "nbdime-conflicts" in load_notebook(path)["metadata"]
    assert ids(path) == {"a": ["first", "mine", "yours"]}
    assert sorted(found.record["id"] for found in NotebookRuns(load_notebook(path)).list_all()) == [
        "first",
        "mine",
        "yours",
    ]
    assert main(["pack", str(path)]) == 0
    assert "nbdime-conflicts" not in load_notebook(path)["metadata"]
    assert [r["id"] for r in load_notebook(path)["metadata"]["agent_nb"]["runs"]["a"]] == [
        "yours",
        "mine",
        "first",
    ]


def test_first_runs_of_both_sides_are_both_kept(merge):
    empty = notebook(a=[FIRST])
    del empty["metadata"]["agent_nb"]
    empty["cells"][0]["outputs"] = []
    path = merge(base=empty, ours=notebook(a=[MINE]), theirs=notebook(a=[YOURS]))
    assert ids(path) == {"a": ["mine", "yours"]}


def test_stripping_takes_them_out_too(merge):
    path = both(merge)
    assert "mine says." in path.read_text()
    assert main(["strip", str(path)]) == 0
    assert "says." not in path.read_text()
