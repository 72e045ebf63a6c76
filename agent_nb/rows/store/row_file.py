"""The SQLite file of a store: opens it to read or write, and notices when it is replaced.

Rules
- Until the first transaction the file is only read, unless a killed process left it half-written.
- Each transaction and each reading checks that the path still leads to the open file. If the file
  was replaced, the new one is opened and `generation` grows; the old one stays readable (`former`).
- For writing, the file is opened under a hard link (`row_link`), with a rollback journal: a
  write-ahead log would hold rows that are not in the file, and could belong to another file.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from ...errors import UsageError
from ...host import make_private_folder, shorten_path
from . import row_database, row_link
from .row_database import UnusableFile
from .row_link import FileState, read_file_state

if TYPE_CHECKING:
    from sqlite3 import Connection

MOST_TRIES = 5  # to begin a transaction or reading while the file is replaced again and again
_REPLACED = "it is replaced again and again", "Run the cell again later."


class _Handle:
    """An open file: its connection, the `name` it was opened under, and its `state` at that time.

    `state` is None for the empty store in memory that stands for a file that does not exist yet.
    """

    def __init__(
        self, connection: Connection, name: Path, state: FileState | None, *, writes: bool
    ) -> None:
        self.connection, self.name, self.state, self.writes = connection, name, state, writes
        self._stamp = None if state is None else state.stamp  # of the file when it was last read

    def is_of(self, state: FileState | None) -> bool:
        """Return whether `state` was read from the handle's own file (None: no file)."""
        identity = None if self.state is None else self.state.identity
        return identity == (None if state is None else state.identity)

    def refresh(self, state: FileState | None) -> bool:
        """Empty the cache of pages if the file has changed; return whether it has.

        Why: SQLite compares a counter, which may be the same after another file was copied over it.
        """
        if state is None or self._stamp == state.stamp:
            return False
        self.connection.execute("PRAGMA shrink_memory")
        self._stamp = state.stamp
        return True

    def keep_stamp(self, state: FileState | None) -> None:
        """Remember the file's state after a change by this connection: the cache stays valid."""
        if state is not None and self.is_of(state):
            self._stamp = state.stamp


class RowFile:
    """The file at one path, opened at once for reading; threads take turns at transactions.

    `read_only`: the file must exist, and is never changed; else a missing file reads as an empty
    one. `generation` counts how often a file was opened at the path: at first, when it was
    replaced, to write, or by its link. Methods raise UsageError for an unusable file.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = Path(os.path.abspath(path))
        self.read_only = read_only
        self.generation = 0
        self._lock = threading.RLock()
        # of the file last seen at the path; None before the first opening and after `close`
        self._handle: _Handle | None = None
        self._former: list[_Handle] = []  # of files that were replaced
        self._closed = False
        with self._translate_errors():
            if not read_only:
                self._refuse_unwritable()
            self._current_handle(writes=False)

    @property
    def writes(self) -> bool:
        """Whether the file is open for writing: after the first transaction, or after a repair."""
        return self._handle is not None and self._handle.writes

    @property
    def former(self) -> Sequence[Connection]:
        """Connections to files that were at the path before, which may have rows of their own."""
        return [handle.connection for handle in self._former]

    def _refuse_unwritable(self) -> None:
        """Raise OSError if the file could not be written, before a row costs money."""
        folder = self.path.parent
        while not os.path.lexists(folder) and folder != folder.parent:
            folder = folder.parent
        if not folder.is_dir():
            raise NotADirectoryError(20, "Not a directory")
        existing = [folder, self.path] if self.path.is_file() else [folder]
        if not all(os.access(each, os.W_OK) for each in existing):
            raise PermissionError(13, "Permission denied")

    def _current_handle(self, *, writes: bool) -> _Handle:
        """Return a handle of the file that is at the path now; open that file if needed."""
        if self._closed:
            raise UsageError(f"The store {shorten_path(self.path)} is closed.")
        for _ in range(MOST_TRIES):
            state, handle = read_file_state(self.path), self._handle
            if handle is not None and self._is_current(handle, state, writes=writes):
                if handle.refresh(state):
                    row_database.check_tables(handle.connection)
                return handle
            self._switch_to(state, writes=writes)
        raise UnusableFile(*_REPLACED)

    def _is_current(self, handle: _Handle, state: FileState | None, *, writes: bool) -> bool:
        """Return whether a handle can stay in use while the file at the path has this state."""
        if writes:
            return handle.writes and handle.is_of(state)
        if state is None:  # a deleted file can still be read through its handle
            return not self.read_only or handle.state is not None
        # a reader sees the journal of a writer only under the same name: the link, if one exists
        right_name = handle.writes or handle.name == row_link.reading_name(self.path, state)
        return handle.is_of(state) and right_name

    def _switch_to(self, state: FileState | None, *, writes: bool) -> None:
        """Open the file at the path; keep a file that it replaced open, in `former`."""
        old = self._handle
        if old is not None and old.state is not None and not old.is_of(state):
            self._former.append(old)
            self._handle = old = None
        self._handle = self._open_handle(state, writes=writes)
        if old is not None:
            old.connection.close()
        self.generation += 1

    def _open_handle(self, state: FileState | None, *, writes: bool) -> _Handle:
        """Return a handle of the file at the path; to write, the file is made if it is missing."""
        import sqlite3

        if state is None and writes:
            self._make_missing_store()
            state = read_file_state(self.path)
        elif state is None and not self.read_only:
            return _Handle(row_database.open_empty_store(), self.path, None, writes=False)
        if state is None:
            raise FileNotFoundError(2, "No such file")
        if refused := row_link.find_refusal(self.path, state, read_only=self.read_only):
            raise UnusableFile(*refused)
        if writes or (not self.read_only and self._is_unfinished(state)):
            return self._open_for_writing(state)
        name = row_link.reading_name(self.path, state)
        try:
            connection = row_database.open_checked(name, writes=False)
        except sqlite3.OperationalError as fault:
            if fault.sqlite_errorcode != row_database.HALF_WRITTEN:
                raise
            connection = self._copy_and_restore(row_link.link_path(self.path, state))
        return _Handle(connection, name, state, writes=False)

    def _copy_and_restore(self, link: Path) -> Connection:
        """Return a repaired copy of a file that a killed process left half-written.

        Why: a file that is opened for reading only must not change, not even to repair it.
        """
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # mode 0700
            copy = Path(folder) / self.path.name
            row_link.copy_store(self.path, copy)
            shutil.copyfile(f"{link}{row_link.JOURNAL}", f"{copy}{row_link.JOURNAL}")
            # the connection reads the copy even after its name is gone
            return row_database.open_checked(copy, writes=True)

    def _is_unfinished(self, state: FileState) -> bool:
        """Return whether a process was killed while it wrote; opening to write repairs that."""
        link = row_link.link_path(self.path, state)
        return row_link.is_hot(link) or row_link.is_logged(self.path)

    def _make_missing_store(self) -> None:
        """Make the missing file, but no folder in place of one that was removed during the map."""
        if self._former and not self.path.parent.is_dir():
            raise self._fault("its folder is gone", "Run the cell again where the folder is now.")
        make_private_folder(self.path.parent)
        row_database.put_empty_store(self.path)

    def _open_for_writing(self, state: FileState) -> _Handle:
        """Make the file private, merge a log into it, and open it for writing under the link."""
        if os.stat(self.path).st_mode & 0o077:
            with suppress(OSError):  # a file system without modes
                self.path.chmod(0o600)
        if row_link.is_logged(self.path):  # the log of an earlier version that was killed
            merged = row_database.open_checked(self.path, writes=True)
            merged.execute("PRAGMA journal_mode=DELETE")
            merged.close()
        name = row_link.make_link(self.path, state)
        if name != self.path and row_link.is_hot(self.path):
            journal = f"{self.path.name}{row_link.JOURNAL}"
            advice = f"Delete {journal} if it is another file's; else open the store with sqlite3."
            raise self._fault(f"{journal} is there, which would change it", advice)
        new = _Handle(row_database.open_checked(name, writes=True), name, state, writes=True)
        if not self.writes:
            self._open_strays(state)
        return new

    def _open_strays(self, state: FileState) -> None:
        """Open, as `former`, earlier files of this path that killed processes left under a link."""
        import sqlite3

        open_names = {handle.name for handle in self._former}
        for link in row_link.find_stray_links(self.path, state):
            if link in open_names:
                continue
            with suppress(UnusableFile, sqlite3.Error, OSError):  # an unusable file has no rows
                stray = read_file_state(link)
                connection = row_database.open_checked(link, writes=True)
                self._former.append(_Handle(connection, link, stray, writes=True))

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Yield the connection under the file's write lock; commit at the end, or roll back."""
        with self._lock, self._translate_errors():
            handle = self._begin()
            connection = handle.connection
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            handle.keep_stamp(read_file_state(self.path))

    def _begin(self) -> _Handle:
        """Return a handle of the file at the path, in a transaction that holds the write lock."""
        if self.read_only:
            raise self._fault("it is open readonly", "Run the cell where it may be written.")
        for _ in range(MOST_TRIES):
            handle = self._current_handle(writes=True)
            handle.connection.execute("BEGIN IMMEDIATE")
            # only the lock keeps other processes from removing the file or its link: check now
            state = read_file_state(self.path)
            if state is not None and handle.is_of(state):
                linked = handle.name != self.path
                if not linked or row_link.make_link(self.path, state) == handle.name:
                    return handle
            handle.connection.execute("ROLLBACK")
        raise UnusableFile(*_REPLACED)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield the connection for statements that only read; also inside a transaction."""
        with self._lock, self._translate_errors():
            handle = self._handle
            if handle is None or not handle.connection.in_transaction:
                handle = self._current_handle(writes=self.writes)
            yield handle.connection

    def shrink(self) -> None:
        """Rewrite the file without free pages. Raises UsageError if another process reads it."""
        with self._lock, self._translate_errors():
            handle = self._begin()
            handle.connection.execute("ROLLBACK")
            handle.connection.execute("VACUUM")
            handle.keep_stamp(read_file_state(self.path))

    def drop_former(self) -> None:
        """Close the files that were at the path before; the caller has taken over their rows."""
        former, self._former = self._former, []
        for handle in former:
            self._close_handle(handle, needed=False)

    def close(self) -> None:
        """Close the file, and remove its journal and link unless other processes write it.

        A former file whose rows were not taken over keeps its link, where the next kernel finds it.
        """
        with self._lock:
            handle, self._handle = self._handle, None
            former, self._former = self._former, []
            self._closed = True
            for each in former:
                each.connection.close()
            if handle is not None:
                self._close_handle(handle, needed=True)

    def _close_handle(self, handle: _Handle, *, needed: bool) -> None:
        """Close a connection and remove its link, unless others write.

        `needed`: only this file has its rows, so the link stays if the file was replaced.
        """
        with suppress(OSError):
            keeps_link = needed and not handle.is_of(read_file_state(self.path))
            if handle.writes and not keeps_link and _lock_to_remove(handle):
                row_link.remove_link(handle.name, self.path)
        handle.connection.close()

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise errors of SQLite and of the system as UsageError with advice."""
        import sqlite3

        try:
            yield
        except UnusableFile as fault:
            raise self._fault(*fault.args) from None
        except sqlite3.DatabaseError as fault:
            raise self._fault(str(fault), row_database.find_advice(fault)) from fault
        except UnicodeDecodeError as fault:  # in a message of SQLite that quotes the file
            raise self._fault("it is damaged", row_database.DAMAGED) from fault
        except OSError as fault:
            raise self._fault(fault.strerror or str(fault), row_database.WRITABLE) from fault

    def _fault(self, why: str, advice: str) -> UsageError:
        """Return the error: why the store cannot be used, what to do, where former rows are."""
        message = f"The store {shorten_path(self.path)} cannot be used: {why}. {advice}"
        former = [handle.name for handle in self._former if handle.name != self.path]
        if former and os.path.lexists(former[-1]):
            message += f" It was replaced while the map ran: the rows stored before are in {former[-1].name}, and are taken from there when the map runs again."
        return UsageError(message)


def _lock_to_remove(handle: _Handle) -> bool:
    """Lock a file; return whether its link may go, as nobody writes it, or its rows are lost."""
    import sqlite3

    try:
        handle.connection.execute("PRAGMA busy_timeout=0")
        handle.connection.execute("BEGIN IMMEDIATE")
    except sqlite3.Error as fault:
        # a file that was overwritten with other data has lost its rows
        return row_database.primary_code(fault) == row_database.NO_DATABASE and not row_link.is_hot(
            handle.name
        )
    return True
