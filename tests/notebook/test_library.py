"""A kernel knows the records of its notebook's file; a run that stands with several cells was said once."""

import json

import pytest

from agent_nb import events as e
from agent_nb.log import EventLog
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
