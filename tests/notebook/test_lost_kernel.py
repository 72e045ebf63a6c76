"""Kernels that are killed (`kill -9`) at random moments of streaming runs: everything logged 100 ms
before is brought back.

How it is known what was logged: in the kernel each event goes to a file of the test's own before
the log and its subscribers (the journal among them) see it, and after that the time, by the
machine's monotonic clock. The test looks at the same clock just before it kills.

`AGENT_NB_KILLS` says how many kernels die (4 if it is not set; 50 is the full proof).
"""

import json
import os
import random
import signal
import sys
import time
from collections import Counter

import msgspec
import pytest
from helpers.record_schema import build_schema
from jsonschema import Draft202012Validator

from agent_nb.events.event_json import encode_event
from agent_nb.notebook.files.library import Library
from agent_nb.notebook.files.recovery import recover_run
from agent_nb.record import journal_recovery
from agent_nb.record.record import METADATA_KEY, METADATA_VERSION, RECORD_MIME, log_of
from agent_nb.record.signing import UserKey
from agent_nb.record.verify import check_record

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.timeout(900),
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no kill -9"),
]

KILLS = int(os.environ.get("AGENT_NB_KILLS", "4"))
TOGETHER = 2  # kernels at a time
LONGEST = 2.2  # seconds from a run's first event to the latest kill; the run takes twice as long
BEFORE = 0.1  # seconds before the kill from which on an event may be lost
HOME = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")

# What each kernel runs first. Each event that any log gets is written to SIDE, without what the log
# stamps on it, and then its number with the time when it was logged: a kernel that pauses in
# between, and is killed, has not logged it.
TELLING = """%load_ext agent_nb
import itertools, json, os, time
import msgspec
from agent_nb.events.event_json import encode_event
from agent_nb.events.log import EventLog

side = os.open(SIDE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
append = EventLog.append
numbers = itertools.count()

def bare(event):
    stamps = {"seq": 0, "ts": 0.0, "run": "", "chunks": ""}
    return msgspec.structs.replace(event, **{name: stamps[name] for name in stamps.keys() & set(event.__struct_fields__)})

def told(log, event):
    number = next(numbers)
    os.write(side, (json.dumps([number, log.run, encode_event(bare(event)).decode()]) + "\\n").encode())
    stamped = append(log, event)
    os.write(side, (json.dumps([number, time.monotonic()]) + "\\n").encode())
    return stamped

EventLog.append = told
"""

# A run of thoughts, three calls at once with progress (one of them an agent), code in the kernel,
# and a long answer.
SETUP = """
from agent_nb import Agent, Scripted, tool

@tool
def scan(rows: int):
    \"\"\"Look at rows.\"\"\"
    for row in range(rows):
        time.sleep(0.02)
        yield (row + 1) / rows
        yield f"row {row}\\n"
    return rows

def turn(text):
    return {"text": text, "chunk": 4, "delay": 0.005}

def batch(*calls):
    return "<execute>" + json.dumps([{"name": name, "args": args} for name, args in calls]) + "</execute>"

ask = Agent(Scripted([turn("<think>" + "hm " * 20 + "</think>" + "help " * 20)]), name="helper").as_tool("ask", "Ask the helper.")
model = Scripted([
    turn("<think>" + "so " * 50 + "</think>" + batch(("scan", {"rows": 12}), ("scan", {"rows": 9}), ("ask", {"prompt": "help"}))),
    turn("<think>More.</think>" + batch(("python", {"code": "print(6 * 7)"}))),
    turn("word " * 2000),
])"""
CELL = "%%agent -m model -t scan,ask,python --approve auto\ngo on"


class Lost(msgspec.Struct):
    """One killed kernel: its cell, and the events of its run as they were logged, with the seconds
    that were left to live, 0 for one that the log was about to take.
    """

    cell: str
    run: str
    logged: list[tuple[float, str]]


def begun(kernel, side, cell):
    """Let a kernel begin its run, and return when something was logged."""
    assert kernel.run(TELLING.replace("SIDE", repr(str(side))) + SETUP)[0] == "ok"
    kernel.send(CELL, cell=cell)
    until = time.monotonic() + 60
    while not (side.exists() and side.stat().st_size):
        assert time.monotonic() < until, "the run never began"
        time.sleep(0.002)
    return time.monotonic()


def killed(kernel, side, cell):
    """Kill a kernel, and say what had been logged."""
    now = time.monotonic()
    os.kill(kernel.manager.provisioner.pid, signal.SIGKILL)
    kernel.manager.provisioner.process.wait(30)
    *lines, _torn = side.read_text().split("\n")
    said = [json.loads(line) for line in lines]
    run, logged = said[0][1], dict(line for line in said if len(line) == 2)
    events = [(line[0], line[2]) for line in said if line[1] == run]
    return Lost(cell, run, [(now - logged.get(number, now), event) for number, event in events])


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The state and the secret of a user whose kernels die."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def at_home(home, monkeypatch):
    for name in HOME:
        monkeypatch.setenv(name, str(home / name))


@pytest.fixture(scope="module")
def lost(home, kernel_type, tmp_path_factory):
    """Kernels killed at moments that are drawn evenly from the run."""
    chance, found = random.Random(17), []
    with pytest.MonkeyPatch.context() as patch:
        for name in HOME:
            patch.setenv(name, str(home / name))
        for first in range(0, KILLS, TOGETHER):
            names = [f"c{n}" for n in range(first, min(first + TOGETHER, KILLS))]
            folders = {name: tmp_path_factory.mktemp(name) for name in names}
            kernels = {name: kernel_type(sys.executable, folders[name]) for name in names}
            try:
                moments = {
                    n: begun(k, folders[n] / "side", n) + chance.uniform(0, LONGEST)
                    for n, k in kernels.items()
                }
                for name in sorted(moments, key=moments.__getitem__):
                    time.sleep(max(0, moments[name] - time.monotonic()))
                    found.append(killed(kernels[name], folders[name] / "side", name))
            finally:
                for kernel in kernels.values():
                    kernel.close()
    return found


def bare(event):
    """An event as the kernel's side channel writes it."""
    stamps = {"seq": 0, "ts": 0.0, "run": "", "chunks": ""}
    return encode_event(
        msgspec.structs.replace(
            event, **{k: stamps[k] for k in stamps.keys() & set(event.__struct_fields__)}
        )
    ).decode()


def found():
    """The journals on disk, by the ids of their runs."""
    return {f.header.run: f for f in journal_recovery.RecoverableRun.list_all()}


@pytest.mark.long
def test_everything_logged_before_the_last_100_ms_is_in_the_journal(lost):
    journals = found()
    for one in lost:
        written = [bare(event) for event in journal_recovery.read_journal(journals[one.run].path)]
        due = [event for left, event in one.logged if left > BEFORE]
        assert written[: len(due)] == due
    print(figures(lost, journals))


def figures(lost, journals):
    """How many kernels died, at what, and how many events were on their way to the journal just
    then.
    """
    last = Counter(json.loads(one.logged[-1][1])["type"] for one in lost)
    logged = sum(len(one.logged) for one in lost)
    written = sum(len(journal_recovery.read_journal(journals[one.run].path)) for one in lost)
    return f"\n{len(lost)} kernels killed, {logged} events logged, {logged - written} not in a journal, last: {dict(last)}"


@pytest.mark.long
def test_every_lost_run_is_recovered_as_a_valid_interrupted_one(lost):
    journals, validator = found(), Draft202012Validator(build_schema())
    for one in lost:
        assert (journals[one.run].status, journals[one.run].header.cell) == ("lost", one.cell)
        log, record = recover_run(journals[one.run], Library({}))
        assert (check_record(record), UserKey.read().signed_hash(record)) == ([], True)
        assert not list(
            validator.iter_errors({"version": METADATA_VERSION, "runs": {one.cell: [record]}})
        )
        assert [event.seq for event in log] == list(range(1, len(log) + 1))
        assert [(e.type, e.status) for e in log if e.type == "end" and not e.span] == [
            ("end", "interrupted")
        ]
        assert (log[-1].type, record["status"]) == ("end", "interrupted")
        assert sorted(e.call_id for e in log.of("call")) == sorted(
            e.call_id for e in log.of("result")
        )
        assert list(log_of(record)) == list(log)
        assert streamed(one).startswith(texts(log))
        assert texts(log).startswith(streamed(one, BEFORE))


def texts(log):
    """What the model of the run has said so far, in order, sub-agents aside."""
    return "".join(e.content for e in log.of("think", "respond") if not e.span)


def streamed(one, left=-1.0):
    """The same, from the deltas that were logged more than `left` seconds before the kill; what the
    log was about to take is logged 0 seconds before.
    """
    deltas = [json.loads(event) for before, event in one.logged if before > left]
    return "".join(
        d.get("text", "")
        for d in deltas
        if d["type"] == "delta" and not d.get("span") and d["of"] in ("think", "respond")
    )


@pytest.mark.long
def test_the_next_kernel_lists_and_recovers_all_of_them(lost, kernel_type, tmp_path):
    kernel = kernel_type(sys.executable, tmp_path)
    try:
        assert kernel.run("%load_ext agent_nb")[0] == "ok"
        listed = next(iter(kernel.run("%agent recover")[2].values()))["data"]["text/plain"]
        assert all(one.run in listed for one in lost)
        status, _, shown = kernel.run("%agent recover all")
    finally:
        kernel.close()
    assert status == "ok"
    recovered = {s["data"][RECORD_MIME]["id"]: s for s in shown.values()}
    assert recovered.keys() == {one.run for one in lost}
    assert {s["metadata"][METADATA_KEY]["status"] for s in recovered.values()} == {"interrupted"}
