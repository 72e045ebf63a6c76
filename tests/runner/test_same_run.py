"""A live rerun whose runs went as before leaves records and outputs as they are."""

import copy
import json
import shutil
from pathlib import Path

import nbformat
import pytest

from agent_nb import events as e
from agent_nb.cli.main import main
from agent_nb.events.log import EventLog
from agent_nb.record import journal
from agent_nb.record.ipynb import load_notebook
from agent_nb.record.outputs import RunNumbers
from agent_nb.record.record import Provenance, run_record
from agent_nb.runner.quiet import restore_unchanged
from agent_nb.runner.same_run import same_run


def record(run="r1", call="call_9f2c", start=100.0, answer="Done.", tokens=7, cost=0.01, **more):
    """Return the record of a run with one call."""
    log = EventLog(run)
    fields = {"turn": 1, "ts": start + 1}
    sums = e.Counts(input=tokens, output=3, duration=start / 50, ttft=start / 99, cost=cost)
    for event in (
        e.RunStart(
            model="m",
            settings={"hash": run, "system": "", "place": more.get("place", {})},
            ts=start,
        ),
        e.User(content="Count.", ts=start),
        e.Node(
            name="llm",
            span="llm-1",
            data={"digest": call, "run": run[::-1], "internal": True},
            **fields,
        ),
        e.Think(content="Hm.", block="1.1", opaque={"sealed": call}, chunks="AB", **fields),
        e.Call(call_id=call, name="count", args={"of": "x"}, batch="1.b", block="1.2", **fields),
        e.Execute(batch="1.b", calls=(call,), **fields),
        e.Started(call_id=call, name="count", **fields),
        e.Result(
            call_id=call, name="count", content=more.get("result", 3), duration=start, **fields
        ),
        e.Respond(content=answer.format(run=run[:4]), block="2.1", **fields),
        e.Metric(step=sums, total=sums, **fields),
        e.End(status=more.get("status", "ok"), ts=start + 2),
    ):
        log.append(event)
    return run_record(log, Provenance(cell="a", source=more.get("source", "s"), execution=run))


def test_times_and_made_up_ids_are_no_change():
    assert same_run(record(), record("another", "toolu_01XYZ", start=777.0))


def test_another_folder_or_time_zone_is_no_change_but_another_version_is():
    here = {"zone": "UTC", "work": [9, "a"], "python": {"base": [3, "x"]}}
    there = {"zone": "Asia/Tokyo", "work": [8, "b"], "python": {"base": [4, "y"]}}
    assert same_run(record(place=here), record(place=there))
    del there["python"]
    assert not same_run(record(place=here), record(place=there))


def test_a_run_may_name_itself_in_a_text():
    named = "Later: %agent cell 1 {run}."
    one, other = record("aaaa1111", answer=named), record("bbbb2222", answer=named)
    assert same_run(one, other)
    assert not same_run(one, record("bbbb2222", answer="Later: %agent cell 1 cccc."))


def test_a_text_that_looks_like_the_short_id_of_its_run_counts():
    one, other = record("20241111", answer="In 2024."), record("20252222", answer="In 2025.")
    assert not same_run(one, other)
    assert same_run(one, record("20252222", answer="In 2024."))


def test_calls_with_short_ids_are_compared_by_their_order():
    assert same_run(record(call="c1"), record(call="c2"))


@pytest.mark.parametrize(
    "change",
    [
        {"answer": "Done!"},
        {"tokens": 8},
        {"cost": 0.02},
        {"cost": None},
        {"result": 4},
        {"result": "3"},
        {"status": "error"},
        {"source": "t"},
    ],
    ids=str,
)
def test_anything_else_is_a_change(change):
    assert not same_run(record(), record(**change))


def test_ids_that_are_swapped_are_a_change():
    """A result that answers another call is another run, although only ids differ."""

    def two(*results):
        log = EventLog("r")
        for event in (
            e.RunStart(),
            *(e.Call(call_id=i, name="count", turn=1) for i in ("call_1", "call_2")),
            *(e.Result(call_id=i, name="count", content=c, turn=1) for i, c in results),
            e.End(status="ok"),
        ):
            log.append(event)
        return run_record(log)

    straight, crossed = [("call_1", 1), ("call_2", 2)], [("call_2", 1), ("call_1", 2)]
    assert same_run(two(*straight), two(*straight))
    assert not same_run(two(*straight), two(*crossed))


SETUP = """%load_ext agent_nb
import json, pathlib, uuid
import pandas as pd
from agent_nb import Agent
from agent_nb.models.scripted import Scripted
said = json.loads(pathlib.Path('said.json').read_text())
def calls(code):
    return {'calls': [{'name': 'python', 'args': {'code': code}}]}
class Named(Scripted):
    identity = 'named'
m, rows = Named([calls('6 * 7'), said], dialect='native'), Named([said])
df = pd.DataFrame({'text': ['one', 'two', 'three']})"""
CELLS = [
    SETUP,
    "%%agent -m m -t python --approve auto\nHow many?",
    "for n in range(2):\n    await Agent(m)(f'Say {n}.')\nprint('plain')",
    "%%agent -m rows --map df\nSay {{ text }}",
]

TAPED_CELLS = [
    """%load_ext agent_nb
import os
import httpx
from model_server import start_server
os.environ["OPENAI_BASE_URL"] = start_server() + "/v1\"""",
    "%agent tape",
    """body = {"model": "m", "messages": [{"role": "user", "content": "Why?"}]}
print(httpx.post(os.environ["OPENAI_BASE_URL"] + "/chat/completions", json=body).status_code)""",
]


@pytest.mark.kernel
class TestInplace:
    @pytest.fixture
    def path(self, tmp_path):
        cells = [nbformat.v4.new_code_cell(text, id=f"c{n}") for n, text in enumerate(CELLS)]
        path = tmp_path / "n.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
        self.run(path, "It is 42.")
        return path

    def run(self, path, said):
        path.with_name("said.json").write_text(json.dumps(said))
        assert main(["run", "--live", "--inplace", str(path)]) == 0

    def test_a_live_rerun_with_the_same_answers_changes_no_byte(self, path):
        before, journals = path.read_bytes(), len(journal.Journal.files())
        self.run(path, "It is 42.")
        assert path.read_bytes() == before
        assert len(journal.Journal.files()) == journals  # nothing is offered for recovery

    def test_a_line_about_taped_calls_stays_in_a_live_rerun_and_a_replay(self, tmp_path):
        shutil.copy(Path(__file__).parents[2] / "examples/model_server.py", tmp_path)
        cells = [nbformat.v4.new_code_cell(c, id=f"t{n}") for n, c in enumerate(TAPED_CELLS)]
        path = tmp_path / "taped.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
        self.run(path, "")
        before = path.read_bytes()
        assert b"1 model call" in before
        self.run(path, "")
        assert path.read_bytes() == before
        assert main(["run", "--inplace", str(path)]) == 0
        assert path.read_bytes() == before

    @pytest.mark.long
    def test_a_map_of_python_code_that_finds_all_its_rows_is_no_change(self, tmp_path):
        code = "await Agent(rows).map(df, 'Say {{ text }}')"
        cells = [nbformat.v4.new_code_cell(c, id=f"m{n}") for n, c in enumerate((SETUP, code))]
        path = tmp_path / "map.ipynb"
        nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
        self.run(path, "Yes.")
        before = load_notebook(path)["metadata"]["agent_nb"]
        assert main(["run", "--inplace", str(path)]) == 0
        assert load_notebook(path)["metadata"]["agent_nb"] == before
        nb = load_notebook(path)
        nb["cells"][1]["source"] = code.replace("Say", "Tell")
        path.write_text(json.dumps(nb))
        assert main(["run", "--inplace", str(path)]) == 0
        assert load_notebook(path)["metadata"]["agent_nb"] != before

    @pytest.mark.long
    def test_another_answer_is_recorded_beside_the_old_one(self, path):
        before = load_notebook(path)
        self.run(path, "It is 43.")
        runs = load_notebook(path)["metadata"]["agent_nb"]["runs"]
        assert {name: len(listed) for name, listed in runs.items()} == {"c1": 2, "c2": 4, "c3": 2}
        assert "It is 43." in json.dumps(load_notebook(path)["cells"][1]["outputs"])
        assert runs["c1"][1] == before["metadata"]["agent_nb"]["runs"]["c1"][0]

    @pytest.mark.long
    def test_the_record_of_another_becomes_the_users(self, path):
        nb = load_notebook(path)
        for listed in nb["metadata"]["agent_nb"]["runs"].values():
            for one in listed:
                one["signature"] = "hmac-sha256:" + "0" * 64
        path.write_text(json.dumps(nb))
        self.run(path, "It is 42.")
        runs = load_notebook(path)["metadata"]["agent_nb"]["runs"]
        assert len(runs["c1"]) == 2
        assert main(["test", str(path)]) == 0

    @pytest.mark.long
    def test_a_kept_record_is_replayed(self, path):
        self.run(path, "It is 42.")
        assert main(["test", str(path)]) == 0


def test_the_work_for_a_cell_grows_as_the_number_of_its_outputs(monkeypatch):
    shown = {"output_type": "display_data", "data": {"text/plain": "x"}, "metadata": {}}
    cell = nbformat.v4.new_code_cell("1", id="a", outputs=[shown] * 200)
    read, count = RunNumbers.of, []
    monkeypatch.setattr(RunNumbers, "of", lambda output: (count.append(1), read(output))[1])
    restore_unchanged(*(nbformat.v4.new_notebook(cells=[copy.deepcopy(cell)]) for _ in range(2)))
    assert len(count) < 20 * 200
