"""The journal: nothing that was logged is lost, whatever kills the process."""

import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agent_nb import events as e
from agent_nb.events.log import EventLog
from agent_nb.record import journal, journal_recovery
from agent_nb.record.journal import Journal, remove_old_journals
from agent_nb.record.journal_recovery import RecoverableRun, fold_deltas

KILLS = 50

# Forks a writer, kills it at a random moment, fifty times; says how many characters each writer had
# logged 100 ms earlier.
DRIVER = """
import json, os, random, select, signal, struct, sys, time
from pathlib import Path
from agent_nb import events as e
from agent_nb.record.journal import Journal
from agent_nb.events.log import EventLog

def write(folder, pipe, kill):
    log = EventLog(f"run{kill}")
    log.subscribe(Journal(log.run, where=folder, clean=False))
    log.append(e.RunStart(model="m"))
    log.append(e.User(content="go"))
    characters = 0
    for block in range(10_000):
        kind = ("think", "respond")[block % 2]
        for piece in range(7):
            log.append(e.Delta(block=str(block), of=kind, text="x" * (piece + 1)))
            characters += piece + 1
            os.write(pipe, struct.pack("dq", time.monotonic(), characters))
            time.sleep(0.0003)
        text = "x" * 28
        log.append(e.Think(block=str(block), content=text) if kind == "think" else e.Respond(block=str(block), content=text))

folder, kills = Path(sys.argv[1]), int(sys.argv[2])
chance = random.Random(7)
for kill in range(kills):
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        write(folder, writer, kill)
        os._exit(0)
    os.close(writer)
    data = os.read(reader, 16)
    time.sleep(chance.uniform(0, 0.12))
    os.kill(child, signal.SIGKILL)
    died = time.monotonic()
    os.waitpid(child, 0)
    while select.select([reader], [], [], 0)[0] and (more := os.read(reader, 1 << 16)):
        data += more
    os.close(reader)
    said = [struct.unpack_from("dq", data, at) for at in range(0, len(data) - 15, 16)]
    print(json.dumps({"run": f"run{kill}", "logged": max((n for t, n in said if t < died), default=0)}), flush=True)
"""


def written(log, where, **options):
    """Put a log and its deltas through a journal; return the journal."""
    writer = Journal(log.run, where=where, **options)
    deltas = {}
    for delta in log.deltas():
        deltas.setdefault(delta.block, []).append(delta)
    for event in log:
        for delta in deltas.get(getattr(event, "block", ""), ()):
            writer(delta)
        writer(event)
    return writer


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.slow
def test_a_killed_process_loses_nothing_that_was_logged(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, str(tmp_path), str(KILLS)],
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    said = {s["run"]: s["logged"] for s in map(json.loads, done.stdout.splitlines())}
    assert len(said) == KILLS
    for found in RecoverableRun.list_all(where=tmp_path):
        log = RecoverableRun.recover(found.path)
        assert sum(len(x.content) for x in log if x.type in ("think", "respond")) >= said.pop(
            found.header.run
        )
        assert (found.status, found.prompt) == ("lost", "go")
        assert [x.type for x in log[-2:]] == ["interrupt", "end"]
        assert [x.seq for x in log] == list(range(1, len(log) + 1))
    assert not said


def test_a_finished_run_is_recovered_as_it_was(log, tmp_path):
    writer = written(log, tmp_path)
    writer.close()
    assert list(RecoverableRun.recover(writer.path)) == list(log)


def test_recovered_deltas_are_those_that_came(new_log, tmp_path):
    log = new_log()
    lines = []
    with_deltas = EventLog(log.run)
    with_deltas.subscribe(lines.append)
    for event in (
        e.RunStart(),
        e.Delta(block="1", of="respond", text="Hel"),
        e.Delta(block="1", of="respond", text="lo"),
    ):
        with_deltas.append(event)
    recovered = EventLog.of_events(fold_deltas(lines))
    assert recovered[1].incomplete
    assert list(recovered.deltas()) == lines[1:]


def test_a_call_cut_off_in_its_arguments_is_recovered_and_cancelled(tmp_path):
    writer = Journal("r", where=tmp_path)
    writer(e.User(seq=1, run="r"))
    writer(e.Delta(run="r", block="1.2", of="call", name="python", text='{"co'))
    writer(e.Delta(run="r", block="1.2", of="call", text="d"))
    writer.close()
    _, call, result, _, _ = RecoverableRun.recover(writer.path)
    assert (call.name, call.raw_args, call.incomplete) == ("python", '{"cod', True)
    assert (result.call_id, result.status) == (call.call_id, "cancelled")


def test_a_torn_last_line_and_foreign_lines_do_not_matter(log, tmp_path):
    writer = written(EventLog.of_events(log[:4]), tmp_path)
    writer.close()
    with writer.path.open("ab") as file:
        file.write(b'not json\n[1]\n{"type": "end", "stat')
    assert list(RecoverableRun.recover(writer.path))[:4] == log[:4]
    assert RecoverableRun.recover(writer.path)[-1].status == "interrupted"


def test_an_empty_journal_is_an_empty_log(tmp_path):
    (tmp_path / "1-x.ndjson").write_bytes(b"")
    assert list(RecoverableRun.recover(tmp_path / "1-x.ndjson")) == []


@pytest.mark.parametrize("rest", [b"", b"\n", b'{"type":"run_sta'])
def test_a_run_that_never_began_is_not_offered(tmp_path, rest):
    writer = Journal("r", where=tmp_path)
    writer.close()
    writer.path.write_bytes(writer.path.read_bytes() + rest)
    assert RecoverableRun.list_all(where=tmp_path) == []


def test_a_first_event_larger_than_the_listed_head_still_counts(tmp_path, monkeypatch):
    monkeypatch.setattr(journal_recovery, "_HEAD", 300)
    Journal("r", where=tmp_path)(e.RunStart(model="m" * 300))
    assert [f.header.run for f in RecoverableRun.list_all(where=tmp_path)] == ["r"]


def test_only_its_user_can_read_a_journal(tmp_path):
    writer = Journal("r", where=tmp_path / "new")
    assert stat.S_IMODE(writer.path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    writer.close()


def test_a_journal_names_its_cell_and_no_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/ann")
    Journal("r", cell="c1", notebook="/home/ann/nb/x.ipynb", conversation="main", where=tmp_path)(
        e.RunStart()
    )
    (found,) = RecoverableRun.list_all(where=tmp_path)
    assert (found.header.cell, found.header.conversation) == ("c1", "main")
    assert "ann" not in found.header.notebook


def test_known_runs_are_not_offered(log, tmp_path):
    written(log, tmp_path).close()
    assert RecoverableRun.list_all([log.run], where=tmp_path) == []


def test_a_run_that_ended_says_how(log, tmp_path):
    written(log, tmp_path).close()
    assert RecoverableRun.list_all(where=tmp_path)[0].status == "ok"


def test_a_journal_that_is_being_written_is_running_and_stays(tmp_path):
    writer = Journal("r", where=tmp_path)
    writer(e.User(seq=1))
    assert RecoverableRun.list_all(where=tmp_path)[0].status == "running"
    assert remove_old_journals(tmp_path, max_age=-1) == 0
    assert Journal.remove("r", where=tmp_path) == 0
    writer.close()
    assert Journal.remove("r", where=tmp_path) == 1


def test_a_run_whose_id_ends_as_another_one_keeps_its_journal(tmp_path):
    for run in ("x-r", "r"):
        Journal(run, where=tmp_path).close()
    assert Journal.remove("r", where=tmp_path) == 1
    assert [path.name.partition("-")[2] for path in Journal.files(tmp_path)] == ["x-r.ndjson"]


LIMITS = dict(journal.remove_old_journals.__kwdefaults__)


def test_old_journals_go(tmp_path):
    for run in ("a", "b"):
        Journal(run, where=tmp_path).close()
    old, new = journal.Journal.files(tmp_path)
    os.utime(old, (1000, 1000))
    assert remove_old_journals(tmp_path, max_age=3600) == 1
    assert journal.Journal.files(tmp_path) == [new]


def test_old_journals_go_when_a_run_has_ended_not_before_its_view(tmp_path):
    Journal("a", where=tmp_path).close()
    [old] = journal.Journal.files(tmp_path)
    os.utime(old, (1000, 1000))
    writer = Journal("b", where=tmp_path)
    assert old in journal.Journal.files(tmp_path)
    writer.close()
    assert journal.Journal.files(tmp_path) == [writer.path]


def test_a_journal_that_is_too_large_by_itself_stays_when_its_run_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(journal.remove_old_journals, "__kwdefaults__", LIMITS | {"max_bytes": 1})
    Journal("a", where=tmp_path, clean=False).close()
    writer = Journal("b", where=tmp_path)
    writer.close()
    assert journal.Journal.files(tmp_path) == [writer.path]


def test_the_oldest_journals_go_when_all_are_too_large(tmp_path):
    for name in ("1-a", "2-b", "3-c"):
        (tmp_path / f"{name}.ndjson").write_bytes(b"x" * 100)
    assert remove_old_journals(tmp_path, max_bytes=250) == 1
    assert [p.name for p in journal.Journal.files(tmp_path)] == ["2-b.ndjson", "3-c.ndjson"]


def test_a_folder_that_cannot_be_written_only_warns(tmp_path):
    (tmp_path / "file").write_text("")
    writer = Journal("r", where=tmp_path / "file")
    writer(e.User(seq=1))
    assert "No journal" in writer.warning
    assert "XDG_STATE_HOME" in writer.warning
    assert RecoverableRun.list_all(where=tmp_path / "file") == []


def test_a_full_disk_ends_the_journal_with_a_warning_that_helps(tmp_path, monkeypatch):
    said = []
    writer = Journal("r", where=tmp_path, warn=said.append)
    log = EventLog("r")
    log.subscribe(writer)
    log.append(e.User(content="kept"))

    def full(file, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(journal.os, "write", full)
    for n in range(3):
        log.append(e.Respond(content=f"lost {n}", block=str(n)))
    assert said == [writer.warning]
    assert "stopped (No space left on device)" in said[0]
    assert f"Make room at {tmp_path}" in said[0]
    assert not log.faults
    monkeypatch.undo()
    log.append(e.Respond(content="still not written", block="9"))
    assert [event.type for event in RecoverableRun.recover(journal.Journal.files(tmp_path)[0])] == [
        "user",
        "interrupt",
        "end",
    ]


def test_a_discarded_journal_is_gone(tmp_path):
    writer = Journal("r", where=tmp_path)
    writer.close(discard=True)
    assert journal.Journal.files(tmp_path) == []


def test_run_ids_of_others_cannot_leave_the_folder(tmp_path):
    writer = Journal("../../evil", where=tmp_path)
    assert writer.path.parent == tmp_path
    writer.close()


def test_the_folder_is_the_users_state_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert journal.Journal.folder().name == "journals"
    assert sys.platform != "linux" or tmp_path in Path(journal.Journal.folder()).parents


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no such locks")
@pytest.mark.parametrize("moment", ["before its lock is taken", "after its lock is taken"])
def test_a_new_journal_survives_others_that_list_and_clean(tmp_path, monkeypatch, moment):
    take, probes = journal.file_lock.take_lock, []

    def visit():
        """What other processes do with each journal they find; each keeps its probe open."""
        for path in Journal.files(tmp_path):
            assert Journal.is_being_written(path)
            probes.append(os.open(path, os.O_RDONLY))
        Journal.remove("", where=tmp_path)
        remove_old_journals(tmp_path, now=9e9)

    def take_lock(file):
        if moment.startswith("before"):
            visit()
        take(file)
        visit()

    monkeypatch.setattr(journal.file_lock, "take_lock", take_lock)
    made = Journal("r", where=tmp_path, clean=False)
    visit()
    made(e.Respond(run="r", content="kept"))
    assert made.warning == ""
    assert "kept" in made.path.read_text()
    assert [path.name for path in tmp_path.iterdir()] == [made.path.name]
    made.close()


@pytest.mark.skipif(sys.platform == "win32", reason="this system has no such locks")
def test_two_who_look_at_once_are_not_taken_for_the_writer(tmp_path, monkeypatch):
    made = Journal("r", where=tmp_path)
    made.close()
    close, seen = os.close, []

    def second_look(file):
        if not seen:
            seen.append(True)
            seen.append(journal.file_lock.is_locked(made.path))
        close(file)

    monkeypatch.setattr(journal.file_lock.os, "close", second_look)
    assert journal.file_lock.is_locked(made.path) is False
    assert seen == [True, False]


@pytest.mark.parametrize("ids", [("a/b", "a b"), ("x" * 64 + "1", "x" * 64 + "2")])
def test_runs_with_similar_ids_have_journals_of_their_own(tmp_path, ids):
    for run in ids:
        writer = Journal(run, where=tmp_path)
        writer(e.RunStart(run=run, seq=1))
        writer.close()
    for run in ids:
        assert RecoverableRun.summarize(Journal.find(run, where=tmp_path)).header.run == run
    assert Journal.remove(ids[0], where=tmp_path) == 1
    assert Journal.find(ids[1], where=tmp_path) is not None


def test_a_run_whose_id_has_letters_of_four_bytes_has_a_journal(tmp_path):
    run = "\U0001d400" * 64
    Journal(run, where=tmp_path).close()
    assert Journal.find(run, where=tmp_path) is not None


def test_a_notebook_whose_name_is_not_utf_8_has_journals(tmp_path):
    name = os.fsdecode(b"a\xff.ipynb")
    writer = Journal("r1", cell=name, notebook=name, where=tmp_path)
    writer(e.RunStart(run="r1", seq=1))
    writer.close()
    assert RecoverableRun.summarize(Journal.find("r1", where=tmp_path)).header.run == "r1"


def test_a_block_that_never_ended_stands_where_its_deltas_stood():
    place = {"run": "r", "turn": 2, "span": "s", "parent": "p", "path": "a/b", "origin": "imported"}
    (block,) = fold_deltas([e.Delta(of="respond", block="b", text="x", **place)])
    assert {name: getattr(block, name) for name in place} == place
