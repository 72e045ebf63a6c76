"""SQLite connections to the file of a store: its tables, safe settings, and advice on errors.

Rules
- Only files with our application id, a known version and exactly our schema are opened, so that a
  stranger's file brings no trigger or view.
- Committed rows survive `kill -9` of any process. A power cut may lose the last commits, and with
  very small probability damage the file (`synchronous=NORMAL`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar

from ...host import write_private

if TYPE_CHECKING:
    from sqlite3 import Connection

APPLICATION = 0x414E4252  # "ANBR"
VERSION = 1
LOCK_TIMEOUT = 10.0  # seconds to wait for another process's transaction
LARGEST_VALUE = 16 << 20  # bytes of a record or a payload; a larger one counts as missing
MOST_VALUES = 500  # parameters of one statement
_T = TypeVar("_T")
# Statements that make the tables. Claims have their own, so that renewing them reads no record.
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
WRITABLE = "Make its folder writable and make room there, or name another file (store=)."
DAMAGED = "Move it away; the rows in it are asked again."
# result codes, https://sqlite.org/rescode.html
_LOCKED = (5, 6)  # SQLITE_BUSY, SQLITE_LOCKED
_UNWRITABLE = (8, 14)  # SQLITE_READONLY, SQLITE_CANTOPEN
NO_DATABASE = 26  # SQLITE_NOTADB
HALF_WRITTEN = 776  # SQLITE_READONLY_ROLLBACK
_ADVICE = {  # primary result code -> what the user can do
    **dict.fromkeys(_LOCKED, "Another process is writing it: wait, then run the cell again."),
    **dict.fromkeys((*_UNWRITABLE, 10, 13), WRITABLE),  # SQLITE_IOERR, SQLITE_FULL
    NO_DATABASE: "It is not a store: name another file.",
}


class UnusableFile(Exception):  # noqa: N818  (`row_file` turns it into an error with the path)
    """Raised for a file that is not a store of this version; takes the reason and advice."""


def fill_statement(values: Collection[object], text: str) -> str:
    """Return `text` with each `(*)` replaced by `(?,?,…)`, one parameter for each value."""
    return text.replace("(*)", f"({','.join('?' * len(values))})")


def split_batches(values: Iterable[_T], size: int = MOST_VALUES) -> Iterator[list[_T]]:
    """Yield the values in lists of up to `size`, by default as many as one statement takes."""
    source = iter(values)
    while batch := list(islice(source, size)):
        yield batch


def primary_code(fault: Exception) -> int:
    """Return the primary result code of an error of SQLite, 0 without one."""
    return int(getattr(fault, "sqlite_errorcode", 0)) & 0xFF


def find_advice(fault: Exception) -> str:
    """Return what the user can do about an error of SQLite."""
    return _ADVICE.get(primary_code(fault), DAMAGED)


def open_checked(name: Path, *, writes: bool) -> Connection:
    """Return a checked connection; wait up to `LOCK_TIMEOUT` while others lock the file."""
    import sqlite3

    until = time.monotonic() + LOCK_TIMEOUT
    mode = "rw" if writes else "ro"
    while True:
        try:
            return _connect_checked(name, mode)
        except sqlite3.OperationalError as fault:
            code = primary_code(fault)
            if code in _UNWRITABLE and mode == "ro" and not os.access(name.parent, os.W_OK):
                mode = "ro&immutable=1"  # SQLite cannot make files here, so no log exists
            elif code not in _LOCKED or time.monotonic() >= until:
                raise
            else:
                time.sleep(0.01)


def _connect_checked(name: Path, mode: str) -> Connection:
    """Return a connection to a file whose application, version and tables are ours."""
    connection = _connect(name, mode)
    try:
        check_tables(connection)
        if mode == "rw":
            connection.execute("PRAGMA journal_mode=TRUNCATE")
    except BaseException:
        connection.close()
        raise
    return connection


def check_tables(connection: Connection) -> None:
    """Raise UnusableFile unless application, version and tables are those of a store."""

    def read_number(pragma: str) -> int:
        return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])

    if read_number("application_id") != APPLICATION:
        raise UnusableFile("it belongs to another application", "Name another file.")
    version = read_number("user_version")
    if version > VERSION:
        advice = "Update jupyter-agent-nb, or name another file (store=)."
        raise UnusableFile(f"a newer agent_nb wrote it (version {version})", advice)
    tables = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")
    if version < VERSION or {sql for (sql,) in tables} != set(SCHEMA):
        raise UnusableFile("its tables are not those of a store", "Name another file.")


def _connect(path: Path, mode: str) -> Connection:
    """Return a connection with the settings of a store; `mode`: ro, rw, rwc or ro&immutable=1."""
    import sqlite3

    uri = f"{path.as_uri()}?mode={mode}"
    connection = sqlite3.connect(
        uri, uri=True, timeout=LOCK_TIMEOUT, isolation_level=None, check_same_thread=False
    )
    # text of a file may be invalid UTF-8
    connection.text_factory = lambda content: content.decode("utf-8", "replace")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_VALUE + (1 << 20))
    # what SQLite advises for files of strangers: https://sqlite.org/security.html
    strict = ("trusted_schema=OFF", "cell_size_check=ON", "mmap_size=0")
    for pragma in (*strict, "synchronous=NORMAL", "secure_delete=ON", "temp_store=MEMORY"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def open_empty_store() -> Connection:
    """Return an empty store in memory, which stands for a missing file."""
    import sqlite3

    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    for statement in SCHEMA:
        connection.execute(statement)
    return connection


def put_empty_store(path: Path) -> None:
    """Put an empty store with mode 0600 at `path`, unless another process has done so first.

    It is made under another name and then linked: nobody sees half a file, and none is overwritten.
    """
    with TemporaryDirectory(  # mode 0700
        prefix=f".{path.name}.", dir=path.parent, ignore_cleanup_errors=True
    ) as folder:
        new = Path(folder) / "new"
        with closing(_connect(new, "rwc")) as connection:
            numbers = f"PRAGMA application_id={APPLICATION}", f"PRAGMA user_version={VERSION}"
            for statement in ("PRAGMA page_size=8192", "BEGIN", *SCHEMA, *numbers, "COMMIT"):
                connection.execute(statement)
        write_private(path, new.read_bytes(), keep=True)
