"""`Agent(model, ["python"])` in a cell works on the notebook's variables, as `%%agent` does."""

import copy
import json

import pytest

from agent_nb.cli.main import main
from agent_nb.record.ipynb import load_notebook
from agent_nb.record.notebook_file import NotebookRuns
from agent_nb.record.record import record_hash
from agent_nb.record.signing import UserKey

pytestmark = pytest.mark.kernel
SETUP = """%load_ext agent_nb
import asyncio, threading
from agent_nb import Agent
from agent_nb.models.scripted import Scripted
def python(*codes):
    calls = [{'calls': [{'name': 'python', 'args': {'code': code}}]} for code in codes]
    return Agent(Scripted([*calls, 'Done.'], dialect='native'), ['python', 'variables'], approve='auto')
def results(run):
    return [event.content for event in run.log.of('result')]
base = 40"""


@pytest.fixture(scope="module")
def ready(kernel):
    mark = f"\nfrom pathlib import Path\ndef mark(): Path({str(kernel.mark)!r}).touch()"
    status, said, _ = kernel.run(SETUP + mark)
    assert status == "ok", said
    return kernel


def printed(kernel, code):
    status, said, _ = kernel.run(code)
    assert status == "ok", said
    return said


def test_code_reads_and_leaves_variables_of_the_notebook(ready):
    code = "r = await python('made = base + 2; made')('Go', view=None)\nprint(results(r), made)"
    assert printed(ready, code) == "[42] 42\n"


def test_runs_side_by_side_and_iterated_share_them(ready):
    side = """one, two = await asyncio.gather(
    python('a1 = base', 'a1 + 1')('Go', view=None),
    python('import asyncio; await asyncio.sleep(0.1); b1 = base; b1')('Go', view=None))
print(results(one), results(two), a1, b1)"""
    assert printed(ready, side).endswith("41] [40] 40 40\n")
    iterated = "async for e in python('c1 = base')('Go'): pass\nprint(c1)"
    assert printed(ready, iterated) == "40\n"


def test_what_code_prints_belongs_to_its_call(ready):
    code = "r = await python('print(base)')('Go', view=None)\nprint(results(r))"
    assert printed(ready, code) == "['40\\n']\n"


def test_the_model_is_told_that_they_are_shared(ready):
    code = """s = python('base')('Go', view=None)
r = await s
print([e.payload['text'] for e in r.log.of('state') if e.kind == 'context'][0].count('base: int'))"""
    assert printed(ready, code) == "1\n"


def test_a_run_of_another_thread_has_its_own(ready):
    code = """out = []
def work():
    out.append(results(python('base = 1; apart = 2; apart').run_sync('Go')))
thread = threading.Thread(target=work)
thread.start(); thread.join()
print(out, base, 'apart' in globals())"""
    assert printed(ready, code) == "[[2]] 40 False\n"


def test_rows_of_a_map_keep_their_own(ready):
    code = """m = python('base = 7; base')
frame = await m.map(['x', 'y'], 'Go {{ text }}', store=False, view=None, concurrency=1)
print(base, [f['_status'] for f in frame])"""
    assert printed(ready, code) == "40 ['ok', 'ok']\n"


def test_a_run_inside_the_code_of_a_run_has_its_own(ready):
    inner = "r = await python('inner = 1')('In', view=None); results(r)"
    code = f"r = await python({inner!r})('Go', view=None)\nprint(r.status, 'inner' in globals())"
    assert printed(ready, code) == "ok False\n"


def test_stop_ends_code_that_blocks(ready):
    request = ready.send("await python('import time; mark(); time.sleep(60)')('Go')")
    ready.marked()
    ready.interrupt()
    status, said, _ = ready.finish(request)
    assert status == "error"
    assert "stopped" in said
    assert printed(ready, "print(base)") == "40\n"


CELLS = [
    SETUP,
    "run = await python('found = base + 2; found')('Go')",
    "print(found)",
]


@pytest.fixture
def recorded(tmp_path):
    cells = [
        {
            "cell_type": "code",
            "id": f"c{n}",
            "source": s,
            "metadata": {},
            "outputs": [],
            "execution_count": None,
        }
        for n, s in enumerate(CELLS)
    ]
    path = tmp_path / "n.ipynb"
    path.write_text(
        json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    )
    assert main(["run", "--live", "--inplace", str(path)]) == 0
    return path


@pytest.mark.long
def test_the_record_says_it_and_a_replay_shares_them_again(recorded, capsys):
    [record] = NotebookRuns(load_notebook(recorded)).by_cell()["c1"]
    assert record["events"][0]["settings"]["shared"] is True
    capsys.readouterr()
    assert main(["test", str(recorded)]) == 0, capsys.readouterr().out


@pytest.mark.long
def test_an_older_record_replays_with_its_own(recorded, capsys):
    """Such a record does not say it; its code ran in names of the run and saw no `base`."""
    nb = load_notebook(recorded)
    [record] = NotebookRuns(nb).by_cell()["c1"]
    events = copy.deepcopy(list(record["events"]))
    del events[0]["settings"]["shared"]
    [place] = [n for n, event in enumerate(events) if event["type"] == "result"]
    events[place]["content"] = "NameError: name 'base' is not defined"
    events[place]["status"] = "error"
    older = {k: v for k, v in record.items() if k not in ("hash", "signature")} | {"events": events}
    older["hash"] = record_hash({**older, "hash": record["hash"]})
    nb["metadata"]["agent_nb"]["runs"]["c1"] = [UserKey.read().sign(older)]
    nb["cells"][2]["source"] = "print('found' in globals())"
    recorded.write_text(json.dumps(nb))
    capsys.readouterr()
    code = main(["test", "-v", str(recorded)])
    assert code == 0, capsys.readouterr().out
