"""A store whose file is deleted, replaced or written over while it is open, and after a kill.

The file that stands at the path is always looked at as any other program would: by `sqlite3`, under
its own name, in another process.
"""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from helpers.sample_runs import make_log

from agent_nb.errors import UsageError
from agent_nb.record.record import run_record
from agent_nb.record.signing import UserKey
from agent_nb.rows.store import row_link
from agent_nb.rows.store.row_file import RowFile
from agent_nb.rows.store.row_store import RowStore

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="a file that is open cannot be replaced on Windows"
)

KEY = UserKey(b"the user's secret")
LOOK = """
import sqlite3, sys
c = sqlite3.connect(sys.argv[1])
print(*c.execute("PRAGMA integrity_check").fetchone())
print(*sorted(k for (k,) in c.execute("SELECT key FROM rows")))
"""


def record(run="r"):
    return {**run_record(make_log()), "id": run}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data" / "rows.sqlite"


def opened(path, owner="a", **options):
    return RowStore(path, "m", KEY, owner=owner, **options)


def put(store, *keys):
    store.put([(key, record(f"run-{key}"), 1) for key in keys])


def store_with(path, *keys):
    """Make a closed store with some rows."""
    store = opened(path, "maker")
    put(store, *keys)
    store.close()
    return path


def seen(path):
    """Return the keys of the sound file at `path`, as another program finds them."""
    done = subprocess.run(
        [sys.executable, "-c", LOOK, str(path)], capture_output=True, text=True, check=True
    )
    state, keys = done.stdout.splitlines()
    assert state == "ok"
    return set(keys.split())


def names(path):
    return sorted(p.name for p in path.parent.iterdir())


def delete(path):
    path.unlink()


def replace(path):
    """Do as git does: another file takes the name."""
    other = store_with(path.with_name("other"), "old")
    other.replace(path)


def replace_twice(path):
    replace(path)
    replace(path)


def replace_by_as_many_bytes(path):
    size = path.stat().st_size
    replace(path)
    with path.open("ab") as file:
        file.truncate(max(size, path.stat().st_size))


REPLACEMENTS = [delete, replace, replace_twice, replace_by_as_many_bytes]


@pytest.mark.few(2)
@pytest.mark.parametrize("change", REPLACEMENTS)
def test_rows_are_carried_over_to_the_file_at_the_path(path, change):
    store = opened(path)
    put(store, "before")
    change(path)
    there = set() if change is delete else {"old"}
    if there:
        assert seen(path) == there
    put(store, "after")
    assert seen(path) == {"before", "after"} | there
    assert set(store.find(["before", "after"])) == {"before", "after"}
    store.close()
    assert names(path) == [path.name]
    assert seen(path) == {"before", "after"} | there
    again = opened(path, "next")
    assert {k: (s.mine, s.attempts) for k, s in again.find(["before", "after"]).items()} == {
        "before": (True, 1),
        "after": (True, 1),
    }
    again.close()


@pytest.mark.parametrize("change", REPLACEMENTS)
def test_what_is_replaced_after_the_last_row_has_it_when_closed(path, change):
    store = opened(path)
    put(store, "before")
    change(path)
    store.close()
    assert "before" in seen(path)
    assert names(path) == [path.name]


@pytest.mark.few(1)
@pytest.mark.parametrize("change", REPLACEMENTS)
def test_a_kill_after_the_replacement_spoils_nothing_and_loses_no_row(path, change):
    store_with(path, "first")
    killed(path, f"put('before'); {change.__name__}(); kill()")
    if change is not delete:
        assert seen(path) == {"old"}
    store = opened(path, "next")
    put(store, "after")
    store.close()
    assert {"first", "before", "after"} <= seen(path)
    assert names(path) == [path.name]


def killed(path, code):
    """Run code with an open store in a process that is killed."""
    script = f"""
import os, signal, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
import test_row_replaced as t
from pathlib import Path
path = Path({str(path)!r})
store = t.opened(path, "killed")
def put(*keys): t.put(store, *keys)
def kill(): os.kill(os.getpid(), signal.SIGKILL)
for name in {[c.__name__ for c in REPLACEMENTS]!r}:
    globals()[name] = lambda name=name: getattr(t, name)(path)
{code}
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


HALF = """
import sqlite3
with store._transaction() as c:
    c.execute("PRAGMA cache_size=1")
    for n in range(400): c.execute("INSERT INTO rows VALUES(?, 'm', 'r', zeroblob(9000))", (str(n),))
    kill()
"""


def test_a_kill_amid_writing_spoils_no_file_that_comes_after(path):
    store_with(path, "first")
    killed(path, HALF)
    replace(path)
    assert seen(path) == {"old"}
    store = opened(path, "next")
    put(store, "after")
    store.close()
    assert seen(path) == {"old", "first", "after"}
    assert names(path) == [path.name]


def test_a_kill_amid_writing_is_undone_by_the_next_one_that_opens(path):
    store_with(path, "first")
    killed(path, HALF)
    store = opened(path, "next")
    assert set(store.find(["first", "0"])) == {"first"}
    store.close()
    assert seen(path) == {"first"}
    assert names(path) == [path.name]


def test_a_file_that_a_kill_left_half_written_is_read_and_not_changed(path):
    store_with(path, "first")
    killed(path, HALF)
    before = {p: p.read_bytes() for p in path.parent.iterdir()}
    assert len(before) == 3
    store = opened(path, "reader", read_only=True)
    assert set(store.find(["first", "0"])) == {"first"}
    store.close()
    assert {p: p.read_bytes() for p in path.parent.iterdir()} == before


def copies(path):
    """Yield what may be written over a store in place, by name."""
    return {
        "another store": store_with(path.with_name("other"), "old").read_bytes(),
        "an earlier copy": path.read_bytes(),
        "as many bytes": path.read_bytes()[:8192] + os.urandom(path.stat().st_size - 8192),
        "nothing": b"",
        "text": b"Dear diary " * 5000,
    }


@pytest.mark.parametrize(
    "name", ["another store", "an earlier copy", "as many bytes", "nothing", "text"]
)
def test_a_file_that_is_written_over_ends_the_map_and_is_not_changed(path, name):
    store = opened(path)
    put(store, "first")
    content = copies(path)[name]
    path.with_name("other").unlink()
    put(store, "second")
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(UsageError, match=r"written over|cannot be used"):
            put(store, "after")
    with pytest.raises(UsageError, match=r"written over|cannot be used"):
        store.close()
    assert path.read_bytes() == content
    assert names(path) == [path.name]


def test_a_folder_in_its_place_ends_the_map_and_its_rows_come_back(path):
    store = opened(path)
    put(store, "before")
    path.unlink()
    path.mkdir()
    with pytest.raises(UsageError, match=r"not a regular file.*stored before are in \.rows"):
        put(store, "after")
    with pytest.raises(UsageError, match="not a regular file"):
        store.close()
    path.rmdir()
    store = opened(path, "next")
    put(store, "later")
    store.close()
    assert seen(path) == {"before", "later"}
    assert names(path) == [path.name]


@pytest.mark.parametrize("content", [b"Dear diary", b""])
def test_a_foreign_file_in_its_place_is_kept_as_it_is(path, content):
    store = opened(path)
    put(store, "before")
    path.with_name("new").write_bytes(content)
    path.with_name("new").replace(path)
    with pytest.raises(UsageError, match="cannot be used"):
        put(store, "after")
    with pytest.raises(UsageError, match="cannot be used"):
        store.close()
    assert path.read_bytes() == content


def test_a_symbolic_link_in_its_place_is_not_followed(path):
    store = opened(path)
    put(store, "before")
    other = store_with(path.with_name("other"), "old")
    path.unlink()
    path.symlink_to(other)
    with pytest.raises(UsageError, match="not a regular file"):
        put(store, "after")
    with pytest.raises(UsageError, match="not a regular file"):
        store.close()
    assert seen(other) == {"old"}


def test_a_folder_that_is_moved_takes_its_rows_along(path, tmp_path):
    store = opened(path)
    put(store, "before")
    path.parent.rename(tmp_path / "moved")
    with pytest.raises(UsageError, match=r"its folder is gone.*where the folder is now"):
        put(store, "after")
    with pytest.raises(UsageError, match="its folder is gone"):
        store.close()
    assert not path.parent.exists()
    moved = tmp_path / "moved" / path.name
    assert seen(moved) == {"before"}
    put(again := opened(moved, "next"), "later")
    again.close()
    assert names(moved) == [path.name]


def test_a_link_to_its_folder_may_come_to_point_elsewhere(tmp_path):
    one, other = (store_with(tmp_path / n / "rows.sqlite", n) for n in ("one", "other"))
    (tmp_path / "data").symlink_to("one")
    store = opened(tmp_path / "data" / "rows.sqlite")
    put(store, "before")
    (tmp_path / "data").unlink()
    (tmp_path / "data").symlink_to("other")
    put(store, "after")
    store.close()
    assert seen(one) == {"one", "before"}
    assert seen(other) == {"one", "other", "before", "after"}
    assert names(one) == names(other) == ["rows.sqlite"]


def test_two_kernels_carry_their_rows_over_to_the_same_file(path):
    one, other = opened(path, "a"), opened(path, "b")
    put(one, "1")
    put(other, "2")
    assert one.claim(["3"], 20) == {"3"}
    replace(path)
    assert not other.claim(["3"], 20)  # the claim came along
    put(one, "3")
    put(other, "4")
    one.close()
    other.close()
    assert seen(path) == {"old", "1", "2", "3", "4"}
    assert names(path) == [path.name]


def test_an_answer_is_not_replaced_by_a_failure_of_the_former_file(path):
    store = opened(path)
    store.put([("k", {**record(), "status": "error"}, 1), ("l", record("good"), 1)])
    other = opened(path.with_name("other"), "other")
    other.put([("k", record("good"), 1), ("l", {**record(), "status": "error"}, 1)])
    other.close()
    path.with_name("other").replace(path)
    put(store, "after")
    assert {s.record["id"] for s in store.find(["k", "l"]).values()} == {"good"}
    store.close()


def test_a_payload_too_large_to_be_read_stops_no_other_row(path, monkeypatch):
    store = opened(path)
    made = record()
    made["events"] = [*made["events"]]
    made["events"][-2] = {**made["events"][-2], "content": "a large value " * 10_000}
    store.put([("k", made, 1), ("l", record(), 1)])
    monkeypatch.setattr("agent_nb.rows.store.row_carry.LARGEST_VALUE", 100_000)
    replace(path)
    put(store, "after")
    store.close()
    with sqlite3.connect(path) as file:
        sizes = [size for (size,) in file.execute("SELECT length(value) FROM payloads")]
    file.close()
    assert max(sizes, default=0) <= 100_000
    assert {"l", "after"} <= seen(path)


def test_payloads_come_along_and_are_shared(path):
    store, made = opened(path), {**record(), "conversation": "x"}
    made["events"] = [*made["events"]]
    made["events"][-2] = {**made["events"][-2], "content": "a large value " * 10_000}
    store.put([(f"k{n}", made, 1) for n in range(3)])
    path.unlink()
    put(store, "after")
    found = store.find([f"k{n}" for n in range(3)])
    assert len(found) == 3
    assert all(s.mine for s in found.values())
    store.close()


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM rows; UPDATE payloads SET value = '1'",
        "DELETE FROM rows",
        "UPDATE payloads SET value = '1'",
        "DELETE FROM payloads",
    ],
)
def test_an_answer_whose_payload_the_new_file_lacks_is_carried_over(path, change):
    log = make_log()
    made = run_record(
        log.of_events(
            msgspec.structs.replace(e, content="y" * 70_000) if e.type == "respond" else e
            for e in log
        )
    )
    assert made["payloads"]
    store = opened(path)
    store.put([("k", made, 1)])
    other = shutil.copy(path, path.with_name("other"))
    with sqlite3.connect(other) as file:
        file.executescript(change)
    file.close()
    Path(other).replace(path)
    put(store, "after")
    assert store.find(["k"])["k"].mine
    store.close()


def test_the_log_of_another_file_is_never_applied(path):
    """A write-ahead log lies beside a store that was checked out over the one it belongs to."""
    other = sqlite3.connect(store_with(path.with_name("other"), "old"))
    other.execute("PRAGMA journal_mode=WAL")
    other.execute("DELETE FROM rows")
    other.commit()
    shutil.copy(path.with_name("other-wal"), path.with_name("rows.sqlite-wal"))
    other.close()
    before = store_with(path.with_name("new"), "first").read_bytes()
    path.with_name("new").replace(path)
    with pytest.raises(UsageError, match=r"rows\.sqlite-wal is the log of another file\. Delete"):
        opened(path)
    assert path.read_bytes() == before


def test_the_log_of_an_earlier_version_that_was_killed_is_applied(path):
    store_with(path, "first")
    code = f"""
import os, sqlite3
c = sqlite3.connect({str(path)!r})
c.execute("PRAGMA journal_mode=WAL")
c.execute("UPDATE rows SET key = 'second'")
c.commit()
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    assert path.with_name("rows.sqlite-wal").stat().st_size
    store = opened(path)
    put(store, "after")
    store.close()
    assert names(path) == [path.name]
    assert seen(path) == {"second", "after"}


def test_without_hard_links_rows_are_carried_over_too(path, monkeypatch):
    def link(*_):
        raise PermissionError

    monkeypatch.setattr(os, "link", link)
    store = opened(path)
    put(store, "before")
    replace(path)
    put(store, "after")
    store.close()
    assert seen(path) == {"old", "before", "after"}
    assert names(path) == [path.name]


def test_a_link_whose_file_has_another_name_now_is_removed_and_not_carried(path):
    killed(path, "put('before'); kill()")
    path.rename(path.with_name("kept"))
    store_with(path, "after")
    assert names(path) == ["kept", path.name]
    assert seen(path) == {"after"}
    assert seen(path.with_name("kept")) == {"before"}


def test_the_copy_of_a_link_is_named_and_not_opened(path):
    store_with(path, "first")
    link = row_link.link_path(path, row_link.read_file_state(path))
    link.write_bytes(b"a copy")
    with pytest.raises(UsageError, match=r"is a copy of another file's link\. Delete \.rows"):
        opened(path)


def test_looking_up_changes_no_byte_and_makes_no_file(path):
    missing = opened(path)
    assert missing.find(["k"]) == {}
    missing.close()
    assert not path.parent.exists()
    before = store_with(path, "first").read_bytes()
    changed = path.stat()
    store = opened(path)
    assert set(store.find(["first"])) == {"first"}
    assert names(path) == [path.name]
    store.close()
    assert path.read_bytes() == before
    assert (path.stat().st_mtime_ns, path.stat().st_ctime_ns) == (
        changed.st_mtime_ns,
        changed.st_ctime_ns,
    )


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE sqlite_schema SET sql = 'CREATE TABLE ' || CAST(x'ff' AS TEXT) WHERE name = 'maps'",
        "UPDATE sqlite_schema SET name = CAST(x'ff' AS TEXT) WHERE name = 'maps'",
        "UPDATE sqlite_schema SET rootpage = 9999 WHERE name = 'maps'",
    ],
)
def test_every_damaged_file_is_named(path, statement):
    connection = sqlite3.connect(store_with(path, "first"))
    connection.execute("PRAGMA writable_schema=ON")
    connection.execute(statement)
    connection.commit()
    connection.close()
    with pytest.raises(UsageError, match=r"rows\.sqlite cannot be used"):
        opened(path)


def test_a_transaction_that_two_kernels_share_sees_each_other(path):
    one, other = RowFile(path), RowFile(path)
    for number, file in enumerate([one, other, one, other]):
        with file.transaction() as connection:
            connection.execute("INSERT INTO rows VALUES(?, 'm', 'r', 'x')", (str(number),))
            assert connection.execute("SELECT count(*) FROM rows").fetchone() == (number + 1,)
    one.close()
    other.close()
