"""Journals of cells: warnings, broken journals, and removing old ones."""

import errno
import os
import time

import pytest

from agent_nb import Scripted
from agent_nb.record import journal
from agent_nb.record.journal import MAX_AGE, MAX_BYTES, Journal

MODEL = Scripted([{"text": "word " * 20, "chunk": 5}])


@pytest.fixture
def old():
    """Return a maker of old journals: `old(run, age, size)`, with the age in seconds."""

    def old(run, age, size=0):
        writer = Journal(run, clean=False)
        writer.close()
        with writer.path.open("ab") as file:
            file.truncate(max(size, writer.path.stat().st_size))
        named = writer.path.with_name(f"{time.time() - age:.3f}-{run}.ndjson")
        writer.path.rename(named)
        os.utime(named, (time.time() - age,) * 2)
        return named

    return old


def test_a_state_folder_that_cannot_be_written_only_warns_and_only_once(
    agent, clean_environment, monkeypatch, capsys
):
    (clean_environment / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(clean_environment / "file"))
    for _ in range(2):
        assert agent(model=MODEL).status == "ok"
    assert capsys.readouterr().err.count("No journal of this run is kept") == 1


def test_a_disk_that_is_full_later_ends_the_journal_and_not_the_run(agent, monkeypatch, capsys):
    def full(file, data):
        if b'"delta"' in bytes(data):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data)

    write = os.write
    monkeypatch.setattr(journal.os, "write", full)
    run = agent(model=MODEL)
    assert (run.status, run.answer) == ("ok", ("word " * 20).strip())
    said = capsys.readouterr().err
    assert "The journal of this run stopped (No space left on device)" in said
    assert "Make room" in said


def test_a_run_clears_journals_away_that_are_too_old(agent, old):
    gone, kept = old("gone", MAX_AGE + 60), old("kept", MAX_AGE - 60)
    agent(model=MODEL)
    assert not gone.exists()
    assert kept.exists()


def test_a_run_clears_the_oldest_away_when_all_take_too_much(agent, old):
    oldest, newer = old("oldest", 200, MAX_BYTES // 2), old("newer", 100, MAX_BYTES // 2)
    agent(model=MODEL)
    assert not oldest.exists()
    assert newer.exists()
    assert len(journal.Journal.files()) == 2


def test_records_that_stay_unsigned_are_warned_of_once_with_what_it_means(
    agent, clean_environment, monkeypatch, capsys
):
    (clean_environment / "file").write_text("")
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(clean_environment / "file" / "data"))
    for _ in range(2):
        assert agent(model=MODEL).status == "ok"
    said = capsys.readouterr().err
    assert said.count("Records stay unsigned") == 1
    assert "A replay will ask before it runs their code again" in said
    assert "JUPYTER_DATA_DIR" in said
