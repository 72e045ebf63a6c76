"""Maps whose process is killed (`kill -9`) at random moments, and maps of two processes at once:
what is stored is neither lost nor asked again.

A server of this process counts the requests, so that nothing depends on what the killed one says.
`AGENT_NB_KILLS` says how often the map of 2,000 rows is killed (20 if it is not set).
"""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from helpers.row_server import RowServer, answer_of

from agent_nb.record.record import events_of
from agent_nb.record.signing import UserKey
from agent_nb.rows.store.row_store import RowStore

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9"),
]

KILLS = int(os.environ.get("AGENT_NB_KILLS", "20"))
CONCURRENCY = 20
LATENCY = 0.01  # seconds
LEASE = 2.0  # seconds that the next process waits for rows of a killed one

SCRIPT = f"""
import json, os, sys
from agent_nb import Agent
from agent_nb.rows.map.known_rows import row_queue

store, out, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
row_queue.LEASE, row_queue.RENEW, row_queue.POLL = float(sys.argv[4]), 0.5, 0.1
data = [{{"text": f"row number {{n}}"}} for n in range(rows)]
frame = Agent("openai/rows").map_sync(
    data, "Classify {{{{ text }}}}", concurrency={CONCURRENCY}, store=store, view=None
)
with open(out, "w") as file:
    json.dump(frame, file)
"""


def prompts(rows):
    return [f"Classify row number {n}" for n in range(rows)]


def start(server, store, out, rows, lease=LEASE):
    """Start a process that runs the map."""
    environment = {**os.environ, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-x"}
    arguments = [sys.executable, "-c", SCRIPT, str(store), str(out), str(rows), str(lease)]
    return subprocess.Popen(
        arguments, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def finished(process):
    said, _ = process.communicate(timeout=600)
    assert process.returncode == 0, said


def stored(path):
    """Return the prompts that are answered in a store, with their run and how often they were
    asked.
    """
    if not path.exists():
        return {}
    store = RowStore(path, "", UserKey.read(), owner="test", read_only=True)
    try:
        with store._file.reading() as connection:
            keys = [key for (key,) in connection.execute("SELECT key FROM rows")]
        found = store.find(keys).values()
        assert all(s.mine for s in found)
        return {
            events_of(s.record)[1].content: (s.record["id"], s.attempts) for s in found if s.final
        }
    finally:
        store.close()


def same(frame):
    """Return a frame without what differs from execution to execution."""
    return [{k: v for k, v in row.items() if k not in ("_run", "_seconds")} for row in frame]


@pytest.mark.long
@pytest.mark.parametrize(
    ("rows", "kills"), [(400, 2), pytest.param(2_000, KILLS, marks=pytest.mark.long)]
)
def test_no_stored_row_is_lost_or_asked_again_however_often_it_is_killed(tmp_path, rows, kills):
    store, out = tmp_path / "rows.sqlite", tmp_path / "frame.json"
    chance = random.Random(23)
    moments = sorted(chance.sample(range(1, rows), kills))  # after so many requests
    safe, asked_when_safe = {}, {}
    with RowServer(LATENCY) as server:
        for moment in moments:
            before = len(stored(store))
            process = start(server, store, out, rows)
            assert server.wait_for(server.total + max(1, moment - before)) or process.poll() == 0
            time.sleep(chance.uniform(0, 2 * LATENCY))
            process.send_signal(signal.SIGKILL)
            process.communicate()
            now = stored(store)
            assert now.items() >= safe.items(), "a stored row was lost or replaced"
            asked_when_safe |= {p: server.asked[p] for p in now if p not in safe}
            safe = now
        finished(start(server, store, out, rows))
        asked = dict(server.asked)
    assert {p: asked[p] for p in asked_when_safe} == asked_when_safe, "a stored row was asked again"
    end = stored(store)
    assert set(end) == set(prompts(rows)) == set(asked)
    frame = json.loads(out.read_text())
    assert [row["answer"] for row in frame] == [answer_of(p) for p in prompts(rows)]
    again = sum(asked.values()) - rows
    assert again <= kills * CONCURRENCY
    uncounted = {p: (asked[p], end[p][1]) for p in asked if end[p][1] < asked[p]}
    assert not uncounted, "a row was asked more often than is counted"
    counted = sum(attempts for _, attempts in end.values()) - rows
    print(f"{kills} kills of {rows} rows: {again} rows asked again, {counted} counted")
    with RowServer() as server:
        finished(
            start(server, tmp_path / "undisturbed.sqlite", tmp_path / "undisturbed.json", rows)
        )
    assert same(frame) == same(json.loads((tmp_path / "undisturbed.json").read_text()))


@pytest.mark.long
def test_two_processes_ask_no_row_twice(tmp_path):
    store, rows = tmp_path / "rows.sqlite", 300
    outs = [tmp_path / f"{n}.json" for n in range(2)]
    with RowServer(LATENCY) as server:
        processes = [start(server, store, out, rows, lease=60) for out in outs]
        for process in processes:
            finished(process)
    assert server.asked == dict.fromkeys(prompts(rows), 1)
    first, second = (same(json.loads(out.read_text())) for out in outs)
    assert first == second


@pytest.mark.long
def test_a_second_execution_asks_nothing(tmp_path):
    store, out = tmp_path / "rows.sqlite", tmp_path / "frame.json"
    with RowServer() as server:
        finished(start(server, store, out, 50))
        before = out.read_text()
        finished(start(server, store, out, 50))
        assert server.total == 50
    assert out.read_text() == before


@pytest.mark.long
def test_more_rows_ask_only_the_new_ones(tmp_path):
    store, out = tmp_path / "rows.sqlite", tmp_path / "frame.json"
    with RowServer() as server:
        finished(start(server, store, out, 20))
        finished(start(server, store, out, 30))
    assert server.asked == dict.fromkeys(prompts(30), 1)


FULL = """
import asyncio, json, resource, signal, sys
from agent_nb import Agent
from agent_nb.errors import RunFailed

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))  # as a full disk

async def main():
    data = [f"row number {n}" for n in range(500)]
    stream = Agent("openai/rows").map(data, "Classify {{ text }}", store=sys.argv[1], view=None)
    try:
        await stream
    except RunFailed as fault:
        print(json.dumps([str(fault), [r.answer for r in stream.results if r.status == "ok"]]))

asyncio.run(main())
"""


def test_a_full_disk_ends_the_map_which_shows_every_answer_that_came(tmp_path):
    store = tmp_path / "rows.sqlite"
    with RowServer() as server:
        environment = {**os.environ, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-x"}
        done = subprocess.run(
            [sys.executable, "-c", FULL, str(store)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
    words, answers = json.loads(done.stdout)
    assert "rows.sqlite cannot be used" in words
    assert "make room" in words
    assert 0 < len(stored(store)) <= len(answers) <= server.total < 500
    assert set(answers) <= {answer_of(p) for p in server.asked}


CELL = """%%agent --map rows -o frame --concurrency 20 --store rows.sqlite
Classify {{ text }}"""
SETUP = f"""
%load_ext agent_nb
from agent_nb.rows.map.known_rows import row_queue
row_queue.LEASE, row_queue.RENEW, row_queue.POLL = {LEASE}, 0.5, 0.1
rows = [{{"text": f"row number {{n}}"}} for n in range(200)]
"""


@pytest.mark.kernel
def test_the_map_of_a_cell_goes_on_in_the_next_kernel(kernel_type, tmp_path, monkeypatch):
    with RowServer(LATENCY) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
        monkeypatch.setenv("AGENT_NB_MODEL", "openai/rows")
        first = kernel_type(sys.executable, tmp_path)
        try:
            assert first.run(SETUP)[0] == "ok"
            first.send(CELL, cell="c1")
            assert server.wait_for(100)
            os.kill(first.manager.provisioner.pid, signal.SIGKILL)
            first.manager.provisioner.process.wait(30)
        finally:
            first.close()
        safe = stored(tmp_path / "rows.sqlite")
        before = dict(server.asked)
        second = kernel_type(sys.executable, tmp_path)
        try:
            assert second.run(SETUP)[0] == "ok"
            assert second.run(CELL, cell="c1")[0] == "ok"
            _, said, _ = second.run("print([row['answer'] for row in frame])")
        finally:
            second.close()
    assert safe, "the kernel was killed before a row was stored"
    assert {p: server.asked[p] for p in safe} == {p: before[p] for p in safe}
    assert said.strip() == str([answer_of(p) for p in prompts(200)])
