"""The SQLite file of a store: who may read it, and what is refused."""

import os
import shutil
import sqlite3
import stat
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from helpers.paths import OPEN_FILES, open_files

from agent_nb.errors import UsageError
from agent_nb.record.signing import UserKey
from agent_nb.rows.store import row_database, row_link
from agent_nb.rows.store.row_database import APPLICATION, VERSION
from agent_nb.rows.store.row_file import RowFile
from agent_nb.rows.store.row_store import RowStore


@pytest.fixture
def path(tmp_path):
    return tmp_path / "maps" / "rows.sqlite"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def write(file):
    with file.transaction() as connection:
        connection.execute("INSERT INTO rows VALUES('k', 'm', 'r', 'x')")


def link(path):
    """Return the name under which SQLite has the file open."""
    return row_link.link_path(path, row_link.read_file_state(path))


def made(path):
    """Make a sound file with one row."""
    file = RowFile(path)
    write(file)
    file.close()
    return path


def changed(path, statement):
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.skipif(sys.platform == "win32", reason="no modes")
def test_only_the_user_can_read_the_file_and_its_companions(path):
    before = os.umask(0)
    try:
        file = RowFile(path)
        write(file)
        assert {p.name: mode(p) for p in path.parent.iterdir()} == dict.fromkeys(
            (path.name, link(path).name, f"{link(path).name}-journal"), 384
        )
        assert mode(path.parent) == 0o700
        file.close()
    finally:
        os.umask(before)


@pytest.mark.skipif(sys.platform == "win32", reason="no modes")
def test_a_file_that_others_could_read_is_made_private(path):
    made(path).chmod(0o644)
    file = RowFile(path)
    with file.transaction():
        assert mode(path) == 0o600
    file.close()


def test_what_writes_never_leaves_rows_in_a_log_beside_the_file(path):
    file = RowFile(path)
    write(file)
    with file.reading() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("truncate",)
        assert connection.execute("PRAGMA synchronous").fetchone()[0] >= 1
    assert path.read_bytes()[18:20] == b"\1\1"  # not in WAL format: whole without companions
    file.close()


def test_a_closed_store_is_one_file(path):
    made(path)
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_the_first_to_close_takes_nothing_from_the_others(path):
    one, other = RowFile(path), RowFile(path)
    write(one)
    with other.transaction() as connection:
        connection.execute("INSERT INTO rows VALUES('l', 'm', 'r', 'x')")
    one.close()
    with other.transaction() as connection:
        assert link(path).exists()  # made again: what writes has it
        assert connection.execute("SELECT count(*) FROM rows").fetchone() == (2,)
    other.close()
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_newer_file_is_refused_and_kept(path):
    changed(made(path), f"PRAGMA user_version = {VERSION + 1}")
    before = path.read_bytes()
    with pytest.raises(UsageError, match=r"newer agent_nb wrote it \(version 2\)\. Update"):
        RowFile(path)
    assert path.read_bytes() == before


def test_the_database_of_another_application_is_refused_and_kept(path):
    path.parent.mkdir()
    changed(path, "CREATE TABLE bookmarks(url)")
    before = path.read_bytes()
    with pytest.raises(UsageError, match="belongs to another application"):
        RowFile(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("content", [b"", b"a diary\n" * 1000, b"SQLite format 3\0", b"\0" * 8192])
def test_a_file_that_is_no_database_is_refused_and_kept(path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(UsageError, match="cannot be used"):
        RowFile(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON rows BEGIN DELETE FROM rows; END",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE more(x)",
        "DROP TABLE claims",
    ],
)
def test_a_file_with_other_tables_or_triggers_is_refused(path, statement):
    changed(made(path), statement)
    with pytest.raises(UsageError, match="its tables are not those of a store"):
        RowFile(path)


def test_a_damaged_file_is_reported_and_kept(path):
    file = RowFile(path)
    with file.transaction() as connection:
        connection.executemany(
            "INSERT INTO rows VALUES(?, 'm', 'r', ?)", [(str(n), "x" * 500) for n in range(500)]
        )
    file.close()
    with path.open("r+b") as raw:
        raw.seek(8192)
        raw.write(os.urandom(path.stat().st_size - 8192))
    before = path.read_bytes()
    with pytest.raises(UsageError, match=r"rows\.sqlite cannot be used: .*Move it away"):
        RowStore(path, "m", UserKey(b"key"), owner="a").find(["1", "77"])
    assert path.read_bytes()[8192:] == before[8192:]  # the first page names the journal mode


def test_a_truncated_file_is_reported(path):
    made(path)
    os.truncate(path, 8192 + 100)
    with pytest.raises(UsageError, match="cannot be used"):
        RowStore(path, "m", UserKey(b"key"), owner="a").find(["k"])


@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-journal"])
def test_symbolic_links_are_refused(path, tmp_path, end):
    made(path)
    target = tmp_path / "target"
    target.write_bytes(path.read_bytes())
    link = path.with_name(path.name + end)
    link.unlink(missing_ok=True)
    link.symlink_to(target)
    before = target.read_bytes()
    with pytest.raises(UsageError, match="not a regular file"):
        RowFile(path)
    assert target.read_bytes() == before


def others(monkeypatch, *names):
    monkeypatch.setattr(row_link, "belongs_to_other", lambda path: path.name in names)


def test_a_file_of_another_user_is_read_and_not_written(path, monkeypatch):
    made(path)
    others(monkeypatch, path.name)
    before = path.read_bytes()
    with pytest.raises(UsageError, match=r"belongs to another user\. Name a file in a folder of"):
        RowFile(path)
    RowFile(path, read_only=True).close()
    assert path.read_bytes() == before


def hot_journal(path):
    """Put a journal beside the file that, if SQLite applied it, would empty its first page."""
    nonce, page = 7, bytes(8192)
    head = bytes.fromhex("d9d505f920a163d7") + struct.pack(">IIIII", 1, nonce, 1, 512, len(page))
    journal = Path(f"{link(path)}-journal")
    journal.write_bytes(
        head.ljust(512, b"\0") + struct.pack(">I", 1) + page + struct.pack(">I", nonce)
    )
    return journal


def as_another_user_s(monkeypatch, planted):
    """Let a file be another user's, as far as the system says."""
    found = os.lstat

    def lstat(path):
        status = list(found(path))
        status[stat.ST_UID] += Path(path) == planted
        return os.stat_result(status)

    monkeypatch.setattr(os, "lstat", lstat)
    others(monkeypatch, planted.name)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_journal_that_another_user_put_there_changes_nothing(path, monkeypatch, read_only):
    before = made(path).read_bytes()
    as_another_user_s(monkeypatch, hot_journal(path))
    with pytest.raises(UsageError, match=r"rows\.sqlite\.\w+-journal belongs to another user"):
        RowFile(path, read_only=read_only)
    assert path.read_bytes() == before


def test_a_journal_of_this_kind_is_what_changes_a_file(path):
    """Without this, the test above would hold for a journal that SQLite ignores."""
    made(path)
    hot_journal(path)
    with pytest.raises(UsageError):
        RowFile(path)
    assert path.stat().st_size == 8192


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="only root makes files of another user"
)
def test_in_a_folder_of_all_the_system_says_whose_a_file_is(tmp_path):
    tmp_path.chmod(0o1777)
    path = made(tmp_path / "rows.sqlite")
    os.chown(hot_journal(path), 4711, -1)
    with pytest.raises(UsageError, match=r"rows\.sqlite\.\w+-journal belongs to another user"):
        RowFile(path)
    Path(f"{link(path)}-journal").unlink()
    os.chown(path, 4711, -1)
    with pytest.raises(UsageError, match=r"rows\.sqlite belongs to another user"):
        RowFile(path)
    tmp_path.chmod(0o755)
    RowFile(path).close()


def test_a_link_to_nothing_is_not_followed(path, tmp_path):
    path.parent.mkdir()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="not a regular file"):
        RowFile(path)
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_is_refused(path):
    path.mkdir(parents=True)
    with pytest.raises(UsageError, match="not a regular file"):
        RowFile(path)


def test_a_journal_that_would_delete_another_file_is_refused(path, tmp_path):
    """SQLite deletes the super-journal that a hot journal names."""
    made(path)
    victim = tmp_path / "victim"
    victim.write_bytes(b"dear\0")
    name = str(victim).encode()
    page = (1 << 30) // 8192 + 1
    journal = (
        bytes.fromhex("d9d505f920a163d7")
        + b"\0" * 504
        + page.to_bytes(4, "big")
        + name
        + len(name).to_bytes(4, "big")
        + sum(name).to_bytes(4, "big")
        + bytes.fromhex("d9d505f920a163d7")
    )
    path.with_name(f"{path.name}-journal").write_bytes(journal)
    with pytest.raises(UsageError, match="names another file"):
        RowFile(path)
    assert victim.exists()


@pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() == 0, reason="modes do not bind this user"
)
def test_a_folder_that_cannot_be_written_is_named(path):
    path.parent.mkdir(mode=0o500)
    with pytest.raises(UsageError, match="Make its folder writable"):
        RowFile(path)


def test_a_place_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match=r"file/rows\.sqlite cannot be used: .*[Mm]ake its folder"):
        RowFile(tmp_path / "file" / "rows.sqlite")


def test_a_full_disk_is_an_error_that_names_the_file_and_takes_no_row(path):
    file = RowFile(path)
    write(file)
    with file.reading() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
    with (
        pytest.raises(UsageError, match=r"rows\.sqlite cannot be used: .*full.*make room"),
        file.transaction() as connection,
    ):
        connection.execute("INSERT INTO rows VALUES('big', 'm', 'r', zeroblob(1000000))")
    with file.reading() as connection:
        assert connection.execute("SELECT key FROM rows").fetchall() == [("k",)]
    file.close()


def test_a_file_that_another_process_holds_is_waited_for_and_then_named(path, monkeypatch):
    monkeypatch.setattr(row_database, "LOCK_TIMEOUT", 0.01)
    one, other = RowFile(path), RowFile(path)
    with (
        one.transaction(),
        pytest.raises(UsageError, match="Another process is writing it"),
        other.transaction(),
    ):
        pass
    one.close()
    other.close()


def test_a_reader_elsewhere_is_waited_for_when_rows_are_removed(path, monkeypatch):
    monkeypatch.setattr(row_database, "LOCK_TIMEOUT", 0.01)
    one, other = RowFile(path), RowFile(path)
    write(one)
    with other.reading() as reading:
        reading.execute("BEGIN")
        reading.execute("SELECT * FROM rows").fetchall()
        with pytest.raises(UsageError, match="wait, then run the cell again"):
            one.shrink()
        reading.execute("ROLLBACK")
    one.shrink()
    one.close()
    other.close()


def test_an_error_inside_a_transaction_leaves_the_file_as_it_was(path):
    file = RowFile(path)
    with (
        pytest.raises(UsageError, match="UNIQUE"),
        file.transaction() as connection,
    ):
        connection.executemany("INSERT INTO rows VALUES(?, 'm', 'r', 'x')", [("k",), ("k",)])
    write(file)
    file.close()


def test_a_missing_file_is_not_made_for_reading(path):
    with pytest.raises(UsageError, match="cannot be used"):
        RowFile(path, read_only=True)
    assert not path.parent.exists()


def test_reading_changes_nothing(path):
    before = made(path).read_bytes()
    file = RowFile(path, read_only=True)
    with file.reading() as connection:
        assert connection.execute("SELECT key FROM rows").fetchall() == [("k",)]
    file.close()
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_many_that_make_the_file_at_once_get_the_same_one(path):
    files, barrier = [], threading.Barrier(8)

    def make():
        barrier.wait()
        files.append(RowFile(path))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    write(files[0])
    for file in files:
        with file.reading() as connection:
            assert connection.execute("SELECT count(*) FROM rows").fetchone() == (1,)
        file.close()
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_file_system_without_hard_links_will_do(path, monkeypatch):
    def link(*_):
        raise PermissionError

    monkeypatch.setattr(os, "link", link)
    made(path)
    made_again = RowFile(path)
    made_again.close()
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_the_file_says_whose_it_is(path):
    head = made(path).read_bytes()[:100]
    assert int.from_bytes(head[68:72], "big") == APPLICATION
    assert int.from_bytes(head[60:64], "big") == VERSION


@pytest.mark.slow
def test_what_was_committed_survives_a_kill(path):
    code = f"""
import os, signal
from agent_nb.rows.store.row_file import RowFile
file = RowFile({str(path)!r})
with file.transaction() as c: c.execute("INSERT INTO rows VALUES('k', 'm', 'r', 'x')")
t = file.transaction(); c = t.__enter__(); c.execute("INSERT INTO rows VALUES('half', 'm', 'r', 'x')")
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    file = RowFile(path)
    with file.reading() as connection:
        assert connection.execute("SELECT key FROM rows").fetchall() == [("k",)]
    file.close()


@pytest.mark.slow
def test_reading_a_half_written_file_keeps_the_locks_of_this_process(path):
    writer, reader = RowFile(made(path)), RowFile(path, read_only=True)
    code = f"import sqlite3; sqlite3.connect({str(path)!r}, timeout=0).execute('BEGIN IMMEDIATE')"
    with writer.transaction():
        journal = Path(f"{link(path)}{row_link.JOURNAL}")
        journal.touch()
        reader._copy_and_restore(link(path)).close()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert b"locked" in done.stderr
    for file in (reader, writer):
        file.close()


@pytest.mark.skipif(not OPEN_FILES.exists(), reason="needs /proc")
def test_copying_a_file_again_opens_no_further_descriptor(path, tmp_path):
    made(path)
    row_link.copy_store(path, tmp_path / "first.sqlite")
    before = len(open_files(tmp_path))
    for number in range(20):
        row_link.copy_store(path, tmp_path / f"{number}.sqlite")
    assert len(open_files(tmp_path)) == before
    assert (tmp_path / "7.sqlite").read_bytes() == path.read_bytes()


def test_a_copy_of_the_file_opens_elsewhere(path, tmp_path):
    copy = tmp_path / "copy.sqlite"
    shutil.copy(made(path), copy)
    file = RowFile(copy, read_only=True)
    with file.reading() as connection:
        assert connection.execute("SELECT count(*) FROM rows").fetchone() == (1,)
    file.close()
