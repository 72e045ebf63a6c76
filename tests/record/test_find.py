"""Records of many notebooks, valid and broken."""

import json

import pytest

from agent_nb.events.columns import CALLS, RUNS, TURNS
from agent_nb.record.notebook_file import NotebookRuns
from agent_nb.record.packing import LARGE, Payloads
from agent_nb.record.record import METADATA_KEY, RECORD_MIME, Provenance, run_record
from agent_nb.rows.recorded_runs import runs


def cell(cell_id, *records, kind="code"):
    outputs = [
        {
            "output_type": "display_data",
            "data": {RECORD_MIME: r, "text/plain": "x"},
            "metadata": {METADATA_KEY: {"run": r.get("id")}},
        }
        for r in records
    ]
    return {"cell_type": kind, "id": cell_id, "source": "", "metadata": {}, "outputs": outputs}


def save(path, cells, listed=None, payloads=None):
    metadata = (
        {METADATA_KEY: {"version": 1, "runs": listed, "payloads": payloads or {}}}
        if listed is not None
        else {}
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells}),
        encoding="utf-8",
    )
    return path


@pytest.fixture
def make(new_log):
    return lambda name, start=1_763_760_000.0, **options: run_record(
        new_log(f"run-{name}", start=start, **options), Provenance(cell="c1")
    )


def test_runs_are_found_in_metadata_and_in_outputs(make, tmp_path):
    save(tmp_path / "a.ipynb", [cell("c1"), cell("c2", make("new"))], {"c1": [make("old")]})
    found = runs(tmp_path / "a.ipynb")
    assert [(r.id, r.cell) for r in found] == [("run-old", "c1"), ("run-new", "c2")]
    assert found[0].notebook == str(tmp_path / "a.ipynb")
    assert not found.problems


def test_a_run_in_both_places_counts_once(make, tmp_path):
    save(tmp_path / "a.ipynb", [cell("c1", make("x"))], {"c1": [make("x")]})
    assert len(runs(tmp_path / "a.ipynb")) == 1


def test_an_equal_record_in_both_places_is_one_and_a_changed_one_is_two(make):
    made = make("x")
    changed = {**made, "status": "error"}
    for shown, expected in ((made, 1), (changed, 2)):
        notebook = {
            "cells": [cell("c1", shown)],
            "metadata": {METADATA_KEY: {"version": 1, "runs": {"c1": [made]}}},
        }
        assert len(NotebookRuns(notebook).list_all()) == expected


def test_cells_come_in_their_order_and_a_cells_runs_oldest_first(make, tmp_path):
    listed = {"c2": [make("2b", 3e9), make("2a", 2e9)], "gone": [make("g")], "c1": [make("1")]}
    save(tmp_path / "a.ipynb", [cell("c1"), cell("c2")], listed)
    assert [r.id for r in runs(tmp_path / "a.ipynb")] == ["run-1", "run-2a", "run-2b", "run-g"]


def test_payloads_beside_the_runs_are_used(make, tmp_path, new_log):
    bare, payloads = Payloads.detach(make("x", result="y" * (LARGE + 1)))
    save(tmp_path / "a.ipynb", [cell("c1")], {"c1": [bare]}, payloads)
    (run,) = runs(tmp_path / "a.ipynb")
    assert run.log.of("result")[0].content == "y" * (LARGE + 1)


def test_a_recorded_run_without_an_end_is_read_as_interrupted(make, tmp_path):
    whole = make("x")
    save(tmp_path / "a.ipynb", [cell("c1")], {"c1": [{**whole, "events": whole["events"][:3]}]})
    (run,) = runs(tmp_path / "a.ipynb")
    assert (run.status, run.log[-1].type, len(run.log)) == ("interrupted", "end", 5)


@pytest.mark.parametrize("pattern", ["", "**/*.ipynb", "sub/../*/*.ipynb"])
def test_a_folder_and_a_glob_reach_below(make, tmp_path, pattern):
    save(tmp_path / "sub" / "a.ipynb", [cell("c1", make("a"))])
    save(tmp_path / "sub" / ".ipynb_checkpoints" / "a-checkpoint.ipynb", [cell("c1", make("b"))])
    assert [r.id for r in runs(tmp_path / pattern)] == ["run-a"]


ODD = '{"cells": [null, {"outputs": [3, {"data": 4}]}], "metadata": 9}'


@pytest.mark.parametrize("text", ["", "{", "[]", "5", '{"cells": 3}', ODD, "\udcff"])
def test_a_broken_file_does_not_stop_the_others(make, tmp_path, text):
    (tmp_path / "broken.ipynb").write_bytes(text.encode("utf-8", "surrogateescape"))
    save(tmp_path / "good.ipynb", [cell("c1", make("g"))])
    found = runs(tmp_path)
    assert [r.id for r in found] == ["run-g"]
    assert all("broken.ipynb" in p for p in found.problems)


@pytest.mark.parametrize("record", [{"events": 5}, {"events": []}, {"id": "x", "events": [1, 2]}])
def test_a_broken_record_is_a_problem(make, tmp_path, record):
    save(tmp_path / "a.ipynb", [cell("c1", make("g"))], {"c1": [record, "x", None]})
    found = runs(tmp_path)
    assert [r.id for r in found] == ["run-g"]
    assert len(found.problems) == 1


def test_nothing_to_find_is_a_problem(tmp_path):
    assert "no notebook" in runs(tmp_path / "nowhere").problems[0]


def test_one_frame_of_all_runs(make, tmp_path):
    save(tmp_path / "a.ipynb", [cell("c1", make("a"))])
    save(tmp_path / "b.ipynb", [cell("c2", make("b"))])
    found = runs(tmp_path)
    frame = found.to_frame()
    assert len(frame) == sum(len(r.log) for r in found)
    assert set(frame["cell"]) == {"c1", "c2"}
    assert {n.rsplit("/", 1)[-1] for n in frame["notebook"]} == {"a.ipynb", "b.ipynb"}
    assert list(found.to_frame(RUNS)["run"]) == ["run-a", "run-b"]
    for columns in (CALLS, TURNS, RUNS, "all", "all calls"):
        assert {n.rsplit("/", 1)[-1] for n in found.to_frame(columns)["notebook"]} <= {
            "a.ipynb",
            "b.ipynb",
        }
        assert not found.to_frame(columns)["notebook"].isna().any()


def test_a_slice_is_runs_again(make, tmp_path):
    save(tmp_path / "a.ipynb", [cell("c1", make("a"), make("b"))])
    assert len(runs(tmp_path)[1:].to_frame("runs")) == 1


def test_a_notebook_that_begins_with_a_byte_order_mark_is_read(tmp_path):
    path = tmp_path / "n.ipynb"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps({"cells": []}).encode())
    assert runs(path).problems == []
