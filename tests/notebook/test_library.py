"""A kernel knows the records of its notebook's file; a run of several cells counts once."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from agent_nb import events as e
from agent_nb.events.log import EventLog
from agent_nb.notebook.files import notebook_finder as module
from agent_nb.notebook.files.library import Library
from agent_nb.notebook.identity import Cell
from agent_nb.record import CellRecords
from agent_nb.record.record import Provenance, record_hash, run_record
from agent_nb.record.signing import UserKey


def record(run, cell, prompt, started, **provenance):
    log = EventLog(run)
    for event in (e.RunStart(), e.User(content=prompt), e.Respond(content=f"{prompt}!"), e.End()):
        log.append(event)
    made = {**run_record(log, Provenance(cell=cell, **provenance)), "started": started}
    return {**made, "hash": record_hash(made)}


@pytest.fixture
def said(tmp_path, monkeypatch):
    """Return the turns before the last cell of a file: `said(order, runs)`."""
    path = tmp_path / "n.ipynb"
    monkeypatch.setenv("AGENT_NB_NOTEBOOK", str(path))

    def hear(order, runs, asks="", foreign=False):
        cells = [
            {"cell_type": "code", "id": name, "source": "%%agent\nx", "outputs": []}
            for name in order
        ]
        path.write_text(
            json.dumps({"cells": cells, "metadata": {"agent_nb": {"version": 1, "runs": runs}}})
        )
        asks = asks or order[-1]
        turns = Library({}).recorded_turns(Cell(key=asks, id=asks), "main")
        said = [
            (
                turn.cell,
                next(event.content for event in turn.events if event.type == "user"),
                turn.foreign,
            )
            for turn in turns
        ]
        return said if foreign else [turn[:2] for turn in said]

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
    assert said("apc", {"a": [A], "p": [record("r3", "p", "three", 3.0), A]}) == [
        ("a", "one"),
        ("p", "three"),
    ]


SECRET = UserKey(b"the secret of the user")


@pytest.fixture
def secret(tmp_path, monkeypatch):
    """Return the user's secret."""
    (tmp_path / "jupyter").mkdir()
    (tmp_path / "jupyter" / "notebook_secret").write_bytes(SECRET)
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    return SECRET


def test_a_turn_says_whether_the_user_signed_its_record(said, secret):
    runs = {
        "a": [secret.sign(A)],
        "b": [B],
        "c": [UserKey(b"another user").sign(record("r3", "c", "three", 3.0))],
    }
    assert said("abcd", runs, foreign=True) == [
        ("a", "one", False),
        ("b", "two", True),
        ("c", "three", True),
    ]


@pytest.mark.parametrize("started", [3.0, 9e9, float("nan"), "9e9", True, 10**400])
def test_a_record_of_the_user_counts_before_newer_ones_of_others(said, secret, started):
    forged = record("r3", "a", "forged", started)
    for listed in ([secret.sign(A), forged], [forged, secret.sign(A)]):
        assert said("ab", {"a": listed}, foreign=True) == [("a", "one", False)]


def test_a_record_that_was_changed_says_nothing(said, secret):
    """A record whose hash does not fit adds no turn."""
    changed = {**secret.sign(A), "events": record("r1", "a", "changed", 1.0)["events"]}
    assert said("ab", {"a": [changed]}) == []
    assert said("ab", {"a": [{**B, "hash": ""}, {**B, "hash": B["hash"][:-1]}, changed]}) == []


def test_an_intact_record_counts_instead(said, secret):
    changed = {**record("r3", "a", "changed", 3.0), "hash": "sha256:0"}
    assert said("ab", {"a": [changed, A]}, foreign=True) == [("a", "one", True)]


class TestOfACell:
    @pytest.fixture
    def library(self, tmp_path, monkeypatch, secret):
        path = tmp_path / "n.ipynb"
        monkeypatch.setenv("AGENT_NB_NOTEBOOK", str(path))

        def library(*records):
            runs = {"version": 1, "runs": {"a": list(records)}}
            path.write_text(
                json.dumps(
                    {
                        "cells": [{"cell_type": "code", "id": "a", "source": "x"}],
                        "metadata": {"agent_nb": runs},
                    }
                )
            )
            return Library({})

        return library

    def ids(self, library):
        return [r["id"] for r in library.rank_records(Cell(key="a", id="a"))]

    def test_what_this_kernel_made_comes_first_then_the_users_then_others(self, library):
        forged, mine, old = (
            record("forged", "a", "x", 9.0),
            SECRET.sign(record("mine", "a", "x", 5.0)),
            SECRET.sign(A),
        )
        found = library(forged, old, record("future", "a", "x", 9e9), mine)
        found.keep_record("a", record("here", "a", "x", 2.0))
        assert self.ids(found) == ["here", "mine", "r1", "forged", "future"]

    def test_of_two_records_of_one_id_the_users_counts(self, library):
        forged, mine = record("r1", "a", "forged", 9.0), SECRET.sign(A)
        found = library(forged, mine)
        assert found.rank_records(Cell(key="a", id="a")) == [mine]

    def test_it_owns_what_it_made_and_what_the_user_signed(self, library):
        found = library()
        found.keep_record("a", B)
        assert found.is_own(B)
        assert found.is_own(SECRET.sign(A))
        assert not found.is_own(A)
        assert not found.is_own({**A, "id": "r2"})

    def test_what_it_has_dropped_is_checked_again(self, library):
        found = library()
        runs = [record(f"r{n}", "a", "x", float(n)) for n in range(1, 6)]
        for run in runs:
            found.keep_record("a", run)
        forged = [{**run, "events": [], "hash": run["hash"]} for run in runs]
        assert [found.is_own(each) for each in forged[:2]] == [False, False]
        assert found.is_own(runs[-1])
        found.forget_records(["a"])
        assert not found.is_own(runs[-1])


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A kernel that was started for `old.ipynb`, whose server says what stands in `answers`;
    `answers["asked"]` counts.
    """
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
    assert Library({}).finder.path(ask=True) == tmp_path / "new.ipynb"
    assert Library({}).finder.path() == tmp_path / "old.ipynb"


def test_a_notebook_renamed_while_its_kernel_runs_is_found(served, tmp_path):
    library = Library({})
    library.finder.path(ask=True)
    served["path"] = (tmp_path / "new.ipynb").rename(tmp_path / "newer.ipynb")
    assert library.finder.path() == tmp_path / "newer.ipynb"


def test_a_server_is_not_asked_for_every_cell(served):
    library = Library({})
    for _ in range(5):
        library.finder.path(ask=True)
    assert served["asked"] == 1


def test_a_server_that_knows_nothing_is_left_and_the_environment_counts(
    served, tmp_path, monkeypatch
):
    monkeypatch.setattr(module, "FRESH_SECONDS", 0.0)
    (tmp_path / "old.ipynb").write_text("{}")
    served["path"] = None
    library = Library({})
    assert [library.finder.path(ask=True) for _ in range(3)] == [tmp_path / "old.ipynb"] * 3
    assert served["asked"] == 1


def test_what_a_runner_has_sent_holds_for_later_cells(served, tmp_path):
    (tmp_path / "sent.ipynb").write_text("{}")
    library = Library({})
    library.finder.path({"notebook": str(tmp_path / "sent.ipynb")})
    assert library.finder.path(ask=True) == tmp_path / "sent.ipynb"
    assert served["asked"] == 0


def test_records_that_threads_keep_at_one_time_are_all_kept(monkeypatch):
    select_kept = CellRecords.select_kept

    def select_slowly(*given):
        time.sleep(0.01)
        return select_kept(*given)

    monkeypatch.setattr(CellRecords, "select_kept", select_slowly)
    library = Library({})
    of_code = {"conversation": Provenance.NO_CONVERSATION, "execution": "e"}
    records = [record(f"r{n}", "c", "hi", 1.0, **of_code) for n in range(8)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda each: library.keep_record("c", each), records))
    assert len(library.list_records(["c"])) == 8
