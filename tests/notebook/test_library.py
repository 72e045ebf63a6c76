"""A kernel knows the records of its notebook's file; a run that stands with several cells was said once."""

import json

import pytest

from agent_nb import events as e
from agent_nb.log import EventLog
from agent_nb.notebook import library as module
from agent_nb.notebook.cell import Cell
from agent_nb.notebook.library import Library
from agent_nb.record import run_record


def record(run, cell, prompt, started):
    log = EventLog(run)
    for event in (e.RunStart(), e.User(content=prompt), e.Respond(content=f"{prompt}!"), e.End()):
        log.append(event)
    return {**run_record(log, cell=cell), "started": started}


@pytest.fixture
def said(tmp_path, monkeypatch):
    """Return what the cell at the end of a notebook file with these runs hears: `said(order, runs)`."""
    path = tmp_path / "n.ipynb"
    monkeypatch.setenv("AGENT_NB_NOTEBOOK", str(path))

    def hear(order, runs, asks=""):
        cells = [{"cell_type": "code", "id": name, "source": "%%agent\nx", "outputs": []} for name in order]
        path.write_text(json.dumps({"cells": cells, "metadata": {"agent_nb": {"version": 1, "runs": runs}}}))
        asks = asks or order[-1]
        turns = Library({}).before(Cell(key=asks, id=asks), "main")
        return [(turn.cell, next(event.content for event in turn.events if event.type == "user")) for turn in turns]

    return hear


A, B = record("r1", "a", "one", 1.0), record("r2", "b", "two", 2.0)


def test_the_cells_above_are_heard_in_the_order_of_the_notebook(said):
    assert said("bac", {"a": [A], "b": [B]}) == [("b", "two"), ("a", "one")]


def test_a_pasted_cell_says_nothing_a_second_time(said):
    assert said("apc", {"a": [A], "p": [A]}) == [("a", "one")]


def test_a_copy_above_its_original_is_not_heard_by_it(said):
    assert said("pa", {"a": [A], "p": [A]}) == []


def test_a_copy_counts_when_the_cell_it_was_made_in_has_it_no_more(said):
    assert said("pc", {"p": [A]}) == [("p", "one")]


def test_a_pasted_cell_that_was_run_says_its_own(said):
    assert said("apc", {"a": [A], "p": [record("r3", "p", "three", 3.0), A]}) == [("a", "one"), ("p", "three")]


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A kernel that was started for `old.ipynb`, whose server says what stands in `answers`; `answers["asked"]` counts."""
    answers = {"path": tmp_path / "new.ipynb", "asked": 0}
    (tmp_path / "new.ipynb").write_text("{}")

    def ask():
        answers["asked"] += 1
        path = answers["path"]
        return path if path is not None and path.is_file() else None

    monkeypatch.delenv("AGENT_NB_NOTEBOOK", raising=False)
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "old.ipynb"))
    monkeypatch.setattr(module, "served_path", ask)
    return answers


def test_a_renamed_notebook_is_found_although_another_has_its_old_name(served, tmp_path):
    (tmp_path / "old.ipynb").write_text("{}")
    assert Library({}).path(ask=True) == tmp_path / "new.ipynb"
    assert Library({}).path() == tmp_path / "old.ipynb"


def test_a_notebook_renamed_while_its_kernel_runs_is_found_without_being_asked_for(served, tmp_path):
    library = Library({})
    library.path(ask=True)
    served["path"] = (tmp_path / "new.ipynb").rename(tmp_path / "newer.ipynb")
    assert library.path() == tmp_path / "newer.ipynb"


def test_a_server_is_not_asked_for_every_cell(served):
    library = Library({})
    for _ in range(5):
        library.path(ask=True)
    assert served["asked"] == 1


def test_a_server_that_knows_nothing_is_left_alone_and_the_environment_counts(served, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "FRESH", 0.0)
    (tmp_path / "old.ipynb").write_text("{}")
    served["path"] = None
    library = Library({})
    assert [library.path(ask=True) for _ in range(3)] == [tmp_path / "old.ipynb"] * 3
    assert served["asked"] == 1


def test_what_a_runner_has_sent_holds_for_later_cells(served, tmp_path):
    (tmp_path / "sent.ipynb").write_text("{}")
    library = Library({})
    library.path({"notebook": str(tmp_path / "sent.ipynb")})
    assert library.path(ask=True) == tmp_path / "sent.ipynb"
    assert served["asked"] == 0
