"""Signatures: who made a record."""

import os
import shutil
import stat
import threading

import pytest

from agent_nb.record.ranking import CellRecords
from agent_nb.record.record import run_record
from agent_nb.record.signing import UserKey, covers_record, is_intact

KEY = UserKey(b"one user's secret")


def test_a_signed_record_is_recognised_by_its_signer(log):
    assert KEY.signed(KEY.sign(run_record(log)))


def test_another_user_does_not_recognise_it(log):
    assert not UserKey(b"another secret").signed(KEY.sign(run_record(log)))


def test_a_changed_record_is_not_signed_any_more_even_with_a_new_hash(log):
    record = KEY.sign(run_record(log))
    changed = UserKey().sign({**record, "cell": "another"})
    assert is_intact(changed)
    assert not KEY.signed({**changed, "signature": record["signature"]})


def test_intact_compares_content_and_hash(log):
    record = run_record(log)
    assert is_intact(record)
    assert not is_intact({**record, "status": "error"})


def test_an_empty_key_signs_and_recognises_nothing(log):
    record = UserKey().sign(run_record(log))
    assert "signature" not in record
    assert not UserKey().signed({**record, "signature": KEY.sign(record)["signature"]})


@pytest.mark.parametrize("signature", [None, 5, "", "hmac-sha256:00", "ü"])
def test_a_faulty_signature_is_none(log, signature):
    assert not KEY.signed({**run_record(log), "signature": signature})


@pytest.mark.parametrize("named", [None, 5, [], {}, [["a"]], "", "ü", "\ud800", "sha256:\udfff"])
def test_a_malformed_hash_counts_for_nobody(log, named):
    record = {**KEY.sign(run_record(log)), "hash": named}
    assert not KEY.owns(record)
    assert not KEY.signed_hash(record)
    assert not covers_record(frozenset({"sha256:00"}), record)
    assert CellRecords([record]).rank(KEY, frozenset({"sha256:00"})) == [record]


def test_trust_covers_all_none_or_the_hashes_it_names(log):
    record = run_record(log)
    assert covers_record(True, record)
    assert not covers_record(False, record)
    assert covers_record({record["hash"]}, record)
    assert not covers_record({"sha256:00"}, record)


def test_the_secret_is_the_one_jupyter_signs_notebooks_with(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))
    (tmp_path / "notebook_secret").write_bytes(KEY)
    assert UserKey.read() == KEY


def test_processes_that_miss_the_secret_at_once_get_the_same_one(tmp_path):
    barrier, found = threading.Barrier(8), []

    def look():
        barrier.wait()
        found.append(UserKey.read(tmp_path / "data"))

    for _ in range(20):
        shutil.rmtree(tmp_path / "data", ignore_errors=True)
        threads = [threading.Thread(target=look) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(found)) == 1
        assert found.pop()
        found.clear()
    assert [p.name for p in (tmp_path / "data").iterdir()] == ["notebook_secret"]


def test_a_missing_secret_is_made_once_and_readable_by_its_user_only(tmp_path):
    first = UserKey.read(tmp_path / "data")
    assert first
    assert UserKey.read(tmp_path / "data") == first
    if os.name == "posix":
        assert stat.S_IMODE((tmp_path / "data" / "notebook_secret").stat().st_mode) == 0o600


def test_an_unwritable_folder_has_no_key(tmp_path):
    (tmp_path / "file").write_text("")
    assert UserKey.read(tmp_path / "file") == b""


def test_a_missing_key_is_explained_with_a_remedy(tmp_path):
    (tmp_path / "file").write_text("")
    assert UserKey.find_problem(tmp_path) == ""
    cannot = UserKey.find_problem(tmp_path / "file" / "below")
    assert "notebook_secret cannot be made (" in cannot
    assert "writable, or set JUPYTER_DATA_DIR" in cannot
    (tmp_path / "notebook_secret").unlink()
    (tmp_path / "notebook_secret").mkdir()
    assert "cannot be read (Is a directory)" in UserKey.find_problem(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "notebook_secret").touch()
    assert "is empty" in UserKey.find_problem(tmp_path / "empty")
