"""What executions of cells used is remembered, and their records stay as long."""

import copy
import json

import pytest
from helpers.notebooks import code_cell, write
from tape.test_notebook import LIBRARY, TAPE, change, record, taped

from agent_nb.notebook.files.git import diff_text
from agent_nb.notebook.files.three_way_merge import merge_results
from agent_nb.record.agent_cells import source_hash
from agent_nb.record.notebook_file import NotebookRuns
from agent_nb.record.ranking import CellRecords
from agent_nb.record.signing import UserKey
from agent_nb.record.used_calls import UsedCalls
from agent_nb.runner.client import execute_notebook
from agent_nb.runner.execution_options import ExecutionOptions
from agent_nb.runner.notebook_check import check_notebook


def call(name, cell="cell1", prompt="hi"):
    """Return the record of a taped call that an execution of its own made."""
    start = {"type": "run_start", "run": name, "seq": 0, "ts": 1.0, "model": "openai/m"}
    user = {"type": "user", "run": name, "seq": 1, "ts": 1.0, "content": prompt}
    more = {"conversation": "", "execution": f"e{name}", "cell": cell, "tape": 1}
    return {"id": name, "started": float(name), "events": [start, user], **more}


def line(cell, *names):
    """Return the output below a cell that used these calls."""
    metadata = {"agent_nb": {"taped": len(names), "tape": list(names), "cell_id": cell}}
    return {"output_type": "display_data", "data": {"text/plain": ""}, "metadata": metadata}


def notebook(runs, lists=None, outputs=()):
    cells = [{**code_cell(1, "ask()"), "outputs": list(outputs)}, code_cell(2, "more()")]
    ours = {"version": 1, "runs": runs, **({"tape": lists} if lists else {})}
    return {"cells": cells, "metadata": {"agent_nb": ours}, "nbformat": 4, "nbformat_minor": 5}


def ids(nb, cell="cell1"):
    return sorted(r["id"] for r in nb["metadata"]["agent_nb"]["runs"].get(cell, ()))


def lists(nb, cell="cell1"):
    return nb["metadata"]["agent_nb"].get("tape", {}).get(cell)


CALLS = [call(str(n)) for n in range(1, 8)]


def test_a_call_stays_while_an_execution_that_used_it_is_remembered():
    nb = notebook({"cell1": CALLS}, {"cell2": [["1", "2"]]}, [line("cell1", "3", "7")])
    NotebookRuns(nb).lift()
    assert ids(nb) == ["1", "2", "3", "5", "6", "7"]
    assert lists(nb) == [["3", "7"]]


def test_saving_twice_changes_nothing():
    nb = notebook({"cell1": CALLS}, {"cell1": [["1", "2"], ["3"]]}, [line("cell1", "1", "7")])
    NotebookRuns(nb).lift()
    once = copy.deepcopy(nb)
    NotebookRuns(nb).lift(once["metadata"]["agent_nb"])
    assert nb == once
    assert lists(nb) == [["1", "7"], ["1", "2"], ["3"]]


def test_a_stale_page_displaces_no_list_of_the_file():
    stale = notebook({"cell1": CALLS}, {"cell1": [["1"], ["2"], ["3"]]}, [line("cell1", "7")])
    NotebookRuns(stale).lift({"version": 1, "runs": {}, "tape": {"cell1": [["6"], ["1"], ["2"]]}})
    assert lists(stale) == [["7"], ["6"], ["1"]]


def test_lists_name_no_call_that_is_gone():
    nb = notebook({"cell1": CALLS[:2]}, {"cell1": [["2", "9"], ["8"]], "gone": [["1"]]})
    NotebookRuns(nb).lift()
    assert nb["metadata"]["agent_nb"]["tape"] == {"cell1": [["2"]]}


def test_lists_move_with_the_cells_that_another_tool_has_numbered_anew():
    nb = notebook({"cell1": CALLS[:2]}, {"cell1": [["2", "1"]]})
    source = NotebookRuns(nb)
    assert source.used_calls() == {"cell1": [["2", "1"]]}
    for record_of_call in nb["metadata"]["agent_nb"]["runs"]["cell1"]:
        record_of_call["source"] = source_hash("ask()")
    nb["cells"][0]["id"] = "other"
    NotebookRuns(nb).lift()
    assert lists(nb, "other") == [["2", "1"]]


def test_a_list_that_moves_to_a_cell_joins_those_stored_for_its_id():
    runs = {"old": [{**each, "source": source_hash("ask()")} for each in CALLS[:2]]}
    nb = notebook(runs, {"old": [["1"]], "cell1": [["2"], ["1"]]})
    assert NotebookRuns(nb).used_calls() == {"cell1": [["1"], ["2"]]}


@pytest.mark.parametrize("damaged", [3, [3], {"cell1": 3}, {"cell1": [3, [3], "a"]}])
def test_a_damaged_list_counts_as_none(damaged):
    nb = notebook({"cell1": CALLS[:1]}, damaged)
    assert UsedCalls.read(nb["metadata"]["agent_nb"]) == {}
    assert NotebookRuns(nb).lift()


def test_a_merge_unites_the_lists_and_keeps_what_either_side_uses():
    base = notebook({"cell1": CALLS[:3]}, {"cell1": [["1", "2", "3"]]})
    ours = notebook({"cell1": [CALLS[0], CALLS[3]]}, {"cell1": [["1", "4"]]})
    theirs = notebook({"cell1": [*CALLS[1:3], CALLS[4]]}, {"cell1": [["2", "3", "5"]]})
    merge_results(base, ours, theirs)
    assert ids(ours) == ["1", "2", "3", "4", "5"]
    assert lists(ours) == [["1", "4"], ["2", "3", "5"]]


def test_stripping_leaves_no_list():
    nb = notebook({"cell1": CALLS}, {"cell1": [["1"]]}, [line("cell1", "1")])
    NotebookRuns(nb).strip()
    assert "tape" not in json.dumps(nb)


def test_forgetting_a_call_takes_it_from_the_lists():
    forgotten = {"output_type": "display_data", "data": {"text/plain": ""}}
    forgotten["metadata"] = {"agent_nb": {"forget": ["2"]}}
    nb = notebook({"cell1": CALLS[:3]}, {"cell1": [["1", "2"]]}, [forgotten])
    NotebookRuns(nb).lift()
    assert (ids(nb), lists(nb)) == (["1", "3"], [["1"]])


def test_the_text_for_git_shows_what_the_newest_execution_used():
    calls = [call(str(n), prompt=f"prompt {n}") for n in range(1, 4)]
    text = diff_text(notebook({"cell1": calls}, {"cell1": [["1", "3"]]}))
    assert ["prompt 1" in text, "prompt 2" in text, "prompt 3" in text] == [True, False, True]


def test_calls_that_are_in_use_displace_no_other_call():
    kept = CellRecords(CALLS).select_kept(UserKey(), {"1"})
    assert [r["id"] for r in kept] == ["7", "6", "5", "1"]


@pytest.mark.long
@pytest.mark.kernel
def test_calls_that_each_execution_is_served_outlast_those_that_change(provider, tmp_path):
    path = write(tmp_path / "n.ipynb", TAPE, LIBRARY, "ask('a'); ask('b'); ask('0')")
    record(path)
    for n in range(1, 6):
        change(path, 2, f"ask('a'); ask('b'); ask('{n}')")
        execute_notebook(path, ExecutionOptions(rerun="auto")).write(path, over=True)
    assert len(provider.asked) == 3 + 5
    assert len(taped(path)) == 2 + 3
    assert not check_notebook(path).problems


def test_a_kernel_keeps_what_its_executions_used_before_the_first_save(provider, loaded):
    try:
        loaded.run_cell(TAPE.partition("\n")[2])
        loaded.run_cell(LIBRARY)
        for n in range(5):
            loaded.run_cell(f"ask('a'); ask('{n}')").raise_error()
    finally:
        loaded.run_cell("%agent tape off")
    assert len(provider.asked) == 1 + 5
