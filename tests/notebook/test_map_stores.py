"""`%agent status` and `%agent forget` with the stored rows of maps."""

import json

import pytest

from agent_nb import Scripted
from agent_nb.notebook.cell.failure import AgentCellError
from agent_nb.record.record import METADATA_KEY
from agent_nb.record.signing import UserKey
from agent_nb.rows.map.known_rows.stored import stores_folder

ASK = "Classify {{ text }}"
TEXTS = ["good", "bad"]


@pytest.fixture
def model():
    return Scripted(["yes"])


def mapped(nb, model, line="", **options):
    nb.cell(ASK, f"-m model --map texts {line}", model=model, texts=TEXTS, **options)
    return [r.origin for r in nb.shell.user_ns["_map"].results]


def files():
    return list(stores_folder().glob("*"))


def said(nb):
    return nb.last[0]["text/plain"]


def test_status_lists_the_stores_of_maps(nb, model):
    mapped(nb, model)
    nb.command("status")
    assert "Classify {{ text }}" in said(nb)
    assert "1 store of maps (" in said(nb)
    assert "%agent forget maps" in said(nb)


def test_status_says_nothing_of_maps_without_one(nb, model):
    nb.cell("hi", model=model)
    nb.command("status")
    assert "maps" not in said(nb)


def test_forgetting_the_cell_of_a_map_removes_its_rows(nb, model):
    mapped(nb, model)
    nb.command("forget c1")
    assert said(nb).startswith("1 run forgotten with 2 stored rows.")
    assert files() == []


def test_the_beginning_of_several_ids_forgets_nothing(nb, model):
    for cell in ("c1", "c2"):
        nb.cell("hi", model=model, cell=cell)
    with pytest.raises(AgentCellError, match="Several cells begin with 'c': c1, c2"):
        nb.command("forget c")


def test_all_cells_that_are_named_are_forgotten(nb, model):
    for cell in ("c1", "c2"):
        nb.cell("hi", model=model, cell=cell)
    nb.command("forget c1 c2")
    assert said(nb).startswith("2 runs forgotten")


def test_forgetting_the_cell_of_a_map_empties_its_store(nb, model, tmp_path):
    path = tmp_path / "rows.sqlite"
    mapped(nb, model, f"--store {path}")
    assert b"Classify good" in path.read_bytes()
    nb.command("forget")
    assert "2 stored rows" in said(nb)
    assert b"Classify good" not in path.read_bytes()


def test_a_store_that_cannot_be_used_is_reported_and_runs_are_forgotten(nb, model, tmp_path):
    path = tmp_path / "rows.sqlite"
    mapped(nb, model, f"--store {path}")
    path.write_bytes(b"broken")
    nb.command("forget all")
    assert "1 run forgotten." in said(nb)
    assert "rows.sqlite cannot be used" in said(nb)
    assert path.read_bytes() == b"broken"


def test_all_stored_rows_are_forgotten_after_a_yes(nb, model, capsys, monkeypatch):
    asked = []
    monkeypatch.setattr("builtins.input", lambda text: asked.append(text) or "y")
    mapped(nb, model)
    nb.command("forget maps")
    assert "Remove 2 rows of 1 map, those of other notebooks too?" in asked[0]
    assert "2 rows of maps forgotten" in capsys.readouterr().out
    assert files() == []
    nb.command("forget maps")
    assert len(asked) == 1  # there is nothing to lose


@pytest.mark.parametrize("said", ["n", "", EOFError])
def test_stored_rows_stay_without_a_yes(nb, model, capsys, monkeypatch, said):
    def answer(_):
        if said is EOFError:
            raise said
        return said

    monkeypatch.setattr("builtins.input", answer)
    mapped(nb, model)
    nb.command("forget maps")
    assert "Nothing was forgotten" in capsys.readouterr().out
    assert len(files()) == 1


def test_status_counts_the_stores_of_other_notebooks_only(nb, model):
    mapped(nb, model)
    nb.restart()
    nb.cell("hi", model=Scripted(["yes"]))
    nb.command("status")
    assert "Classify {{ text }}" not in said(nb)
    assert "1 store of maps (" in said(nb)


def test_a_map_of_rows_that_are_stored_changes_no_byte_of_its_store(nb, model, tmp_path):
    path = tmp_path / "rows.sqlite"
    mapped(nb, model, f"--store {path}")
    before, status = path.read_bytes(), path.stat()
    nb.restart()
    assert mapped(nb, model, f"--store {path}", cell="c2") == ["store"] * 2
    nb.cell(ASK, f"-m model --map texts --store {path} --rerun replay", cell="c2")
    assert path.read_bytes() == before
    assert path.stat().st_mtime_ns == status.st_mtime_ns
    assert path.stat().st_ctime_ns == status.st_ctime_ns
    assert list(tmp_path.glob("*rows*")) == [path]


def test_a_map_that_its_record_cannot_hold_says_that_it_cannot_be_tested(
    nb, model, tmp_path, monkeypatch
):
    monkeypatch.setattr("agent_nb.rows.map.sample.MOST_ROWS", 1)
    words = "jupyter agent-nb test cannot replay it"
    mapped(nb, model)
    assert words in nb.last[0]["text/plain"]
    mapped(nb, model, f"--store {tmp_path / 'rows.sqlite'}", cell="c2")
    assert words not in nb.last[0]["text/plain"]


def test_the_record_of_a_stranger_removes_no_rows(nb, model, tmp_path, monkeypatch):
    mapped(nb, model)
    record = {**nb.record, "id": "foreign", "cell": "c2"}
    nb.restart()
    path = tmp_path / "n.ipynb"
    cell = {"cell_type": "code", "id": "c2", "source": "", "metadata": {}, "outputs": []}
    foreign = {"version": 1, "runs": {"c2": [UserKey(b"a stranger").sign(record)]}}
    path.write_text(
        json.dumps(
            {
                "cells": [cell],
                "metadata": {METADATA_KEY: foreign},
                "nbformat": 4,
                "nbformat_minor": 5,
            }
        )
    )
    monkeypatch.setenv("JPY_SESSION_NAME", str(path))
    nb.command("forget c2")
    assert said(nb).startswith("1 run forgotten. ")
    assert len(files()) == 1
