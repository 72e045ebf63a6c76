"""The SQLite file of a row store: made, opened and checked.

Why apart from `row_store`: everything that a hostile, foreign, damaged or remote file can do is
handled here, and every error of SQLite gets words; the store's statements assume a sound file.

Rules
- A file comes into being whole: written under another name with mode 0600, then linked to its
  place. Nothing that stands there is ever overwritten.
- Only files with our application id, a known version and exactly our schema are opened, so that a
  stranger's file brings no trigger or view. Symbolic links are refused, and so is a rollback
  journal that names another file, because SQLite may delete that.
- A file of another user is only read, since its owner could read what is written. What another
  user put in the place of a companion is refused: a journal or log changes rows when it is opened.
- WAL only where the file system is local (`host.file_systems`); the last to close returns to a
  rollback journal, so that the file is complete without its companions.
- Committed rows survive `kill -9` of any process, in both modes. A power cut or a crash of the
  system may take the last commits (`synchronous=NORMAL`), never the file.
- Deleted text is overwritten (`secure_delete`).
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, TypeVar

from ..errors import UsageError
from ..host.file_owner import is_others
from ..host.file_systems import is_local
from ..host.paths import tilde
from ..host.private_file import make_private_folder, put

if TYPE_CHECKING:
    from sqlite3 import Connection

APPLICATION = 0x414E4252  # "ANBR"
VERSION = 1
BUSY = 10.0  # seconds to wait for another process's transaction
LARGEST = 16 << 20  # bytes of one value
MOST = 500  # values of one statement
_T = TypeVar("_T")
_COMPANIONS = ("-wal", "-shm", "-journal")
_SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")  # ends a journal that names another file
# Claims stand apart from records, so that renewing them reads no record.
SCHEMA = (
    "CREATE TABLE maps(map TEXT PRIMARY KEY, said TEXT)",
    "CREATE TABLE rows(key TEXT PRIMARY KEY, map TEXT, run TEXT, record BLOB)",
    "CREATE TABLE claims(key TEXT PRIMARY KEY, attempts INTEGER, owner TEXT, since REAL, until REAL) WITHOUT ROWID",
    "CREATE TABLE payloads(name TEXT PRIMARY KEY, value BLOB)",
    "CREATE TABLE uses(key TEXT, payload TEXT, PRIMARY KEY(key, payload)) WITHOUT ROWID",
    "CREATE INDEX held ON claims(owner) WHERE owner != ''",
    "CREATE INDEX runs ON rows(run)",
    "CREATE INDEX of_map ON rows(map)",
)


class RowFile:
    """One open file; a transaction at a time, from any thread.

    Raises UsageError, as every transaction does, with what is wrong with the file and what to do.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = Path(os.path.abspath(path))
        self.read_only = read_only
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        with self._words():
            if not read_only:
                make_private_folder(self.path.parent)
                if not os.path.lexists(self.path):
                    _make(self.path)
            self._refuse_strange()
            self._connection = self._open()

    def _refuse_strange(self) -> None:
        for path in (self.path, *(Path(f"{self.path}{end}") for end in _COMPANIONS)):
            with suppress(FileNotFoundError):  # companions come and go
                if not stat.S_ISREG(os.lstat(path).st_mode):
                    raise self._fault(f"{path.name} is not a regular file", "Name another file.")
                if self._is_planted(path):
                    raise self._fault(f"{path.name} belongs to another user", _OWN_FOLDER)
        journal = Path(f"{self.path}-journal")
        if _tail(journal) == _SUPER_JOURNAL:
            raise self._fault(f"{journal.name} names another file", f"Delete {tilde(journal)}.")

    def _is_planted(self, path: Path) -> bool:
        """Return whether another user put there what would be written, or change the file."""
        if path == self.path:
            return not self.read_only and is_others(path)
        return os.lstat(path).st_uid != os.lstat(self.path).st_uid and is_others(path)

    def _open(self) -> Connection:
        """Return the connection; wait while others switch the journal, as SQLite does not."""
        import sqlite3

        until = time.monotonic() + BUSY
        while True:
            try:
                return self._opened()
            except sqlite3.OperationalError as fault:
                if _code(fault) not in _LOCKED or time.monotonic() >= until:
                    raise
                time.sleep(0.01)

    def _opened(self) -> Connection:
        private = not self.read_only and os.stat(self.path).st_mode & 0o077
        if private:
            with suppress(OSError):  # a file system without modes
                self.path.chmod(0o600)
        connection = _connect(self.path, self._mode())
        try:
            self._check(connection)
            if not self.read_only:
                wal = is_local(self.path.parent)
                connection.execute(f"PRAGMA journal_mode={'WAL' if wal else 'DELETE'}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _mode(self) -> str:
        """Return SQLite's mode; in a folder that cannot be written there is no shared memory."""
        if not self.read_only:
            return "rw"
        still = not os.access(self.path.parent, os.W_OK) and not os.path.exists(f"{self.path}-wal")
        return "ro&immutable=1" if still else "ro"

    def _check(self, connection: Connection) -> None:
        def value(pragma: str) -> int:
            return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])

        if value("application_id") != APPLICATION:
            raise self._fault("it belongs to another application", "Name another file.")
        version = value("user_version")
        if version > VERSION:
            advice = "Update jupyter-agent-nb, or name another file (store=)."
            raise self._fault(f"a newer agent_nb wrote it (version {version})", advice)
        found = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
        if version < VERSION or {sql for (sql,) in found} != set(SCHEMA):
            raise self._fault("its tables are not those of a store", "Name another file.")

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Hold the write lock of the file; commit at the end, roll back on an error."""
        with self._lock, self._words():
            connection = self._open_connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give the connection for one statement that only reads."""
        with self._lock, self._words():
            yield self._open_connection()

    def shrink(self) -> None:
        """Rewrite the file without free pages, and empty its write-ahead log.

        Raises UsageError if a reader in another process keeps the log.
        """
        with self._lock, self._words():
            connection = self._open_connection()
            connection.execute("VACUUM")
            busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            advice = (
                "What was removed is still there: forget it again when the other process has ended."
            )
            raise self._fault("another process reads its log", advice)

    def close(self) -> None:
        """Close the file; the last to close leaves one file without companions."""
        import sqlite3

        with self._lock:
            connection, self._connection = self._connection, None
            if connection is None:
                return
            if not self.read_only:
                with suppress(sqlite3.Error):  # others have it open, or the disk is full
                    connection.execute("PRAGMA busy_timeout=0")
                    connection.execute("PRAGMA journal_mode=DELETE")
            connection.close()

    def _open_connection(self) -> Connection:
        if self._connection is None:
            raise UsageError(f"The store {tilde(self.path)} is closed.")
        return self._connection

    @contextmanager
    def _words(self) -> Iterator[None]:
        """Raise errors of SQLite and of the system as UsageError."""
        import sqlite3

        try:
            yield
        except sqlite3.DatabaseError as fault:
            why, advice = str(fault), _ADVICE.get(_code(fault), "")
            raise self._fault(
                why, advice or "Move it away; the rows in it are asked again."
            ) from fault
        except OSError as fault:
            raise self._fault(fault.strerror or str(fault), _WRITABLE) from fault

    def _fault(self, why: str, advice: str) -> UsageError:
        return UsageError(f"The store {tilde(self.path)} cannot be used: {why}. {advice}")


def statement(values: Collection[object], text: str) -> str:
    """Return a statement with a place for each value where `(*)` stands."""
    return text.replace("(*)", f"({','.join('?' * len(values))})")


def batches(values: Iterable[_T]) -> Iterator[list[_T]]:
    """Yield the values in lists that one statement takes."""
    source = iter(values)
    while some := list(islice(source, MOST)):
        yield some


_OWN_FOLDER = "Name a file in a folder of your own (store=)."
_WRITABLE = "Make its folder writable and make room there, or name another file (store=)."
_LOCKED = (5, 6)
_ADVICE = {  # by SQLite's primary result codes, https://sqlite.org/rescode.html
    **dict.fromkeys(_LOCKED, "Another process is writing it: wait, then run the cell again."),
    8: _WRITABLE,
    10: _WRITABLE,
    13: _WRITABLE,
    14: _WRITABLE,
    26: "It is not a store: name another file.",
}


def _code(fault: Exception) -> int:
    """Return the primary result code of an error of SQLite, 0 without one."""
    return int(getattr(fault, "sqlite_errorcode", 0)) & 0xFF


def _connect(path: Path, mode: str) -> Connection:
    import sqlite3

    uri = f"{path.as_uri()}?mode={mode}"
    connection = sqlite3.connect(
        uri, uri=True, timeout=BUSY, isolation_level=None, check_same_thread=False
    )
    connection.text_factory = _text
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST + (1 << 20))
    for pragma in ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA secure_delete=ON")
    connection.execute("PRAGMA temp_store=MEMORY")
    return connection


def _text(content: bytes) -> str:
    """Return text that a file may hold in any form."""
    return content.decode("utf-8", "replace")


def _make(path: Path) -> None:
    """Put an empty store at `path`, unless another process has done so first."""
    folder = Path(mkdtemp(prefix=f".{path.name}.", dir=path.parent))  # mode 0700
    new = folder / "new"
    try:
        os.close(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        connection = _connect(new, "rw")
        try:
            connection.execute("PRAGMA page_size=8192")
            connection.execute("BEGIN")
            for statement in (*SCHEMA, f"PRAGMA application_id={APPLICATION}"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version={VERSION}")
            connection.execute("COMMIT")
        finally:
            connection.close()
        put(new, path)
    finally:
        with suppress(OSError):
            new.unlink()
        with suppress(OSError):
            folder.rmdir()


def _tail(path: Path) -> bytes:
    """Return the last bytes of a journal; other processes may end theirs at any moment."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - len(_SUPER_JOURNAL)))
            return file.read()
    except FileNotFoundError:
        return b""
