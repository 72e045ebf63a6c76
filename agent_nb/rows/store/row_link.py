"""The name under which SQLite opens the file of a store: a hard link that belongs to one inode.

SQLite finds the journal of a database by the database's name. If `git checkout`, a sync or a person
replaces the file, SQLite would apply the journal of the former file to the new one and destroy it.
So the link of `rows.sqlite` with inode 0x1a2b is `.rows.sqlite.1a2b`, and the journal is named
after the link. On a file system without hard links, the file is opened under its own name.

Rules
- As long as the link exists, the system gives its inode to no other file. So the link is made
  before a transaction writes, and is removed under the write lock, or if its journal is not hot.
- Closing a file that is open elsewhere in this process drops all locks of the process on it. So
  only two functions of this room open a store file without SQLite: `is_logged`, and only if a
  write-ahead log is beside it, and `copy_store`, which does not close it.
"""

from __future__ import annotations

import glob
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from .file_owner import belongs_to_other

JOURNAL = "-journal"
# ends of the names of files that SQLite keeps beside a database
_COMPANIONS = ("-wal", "-shm", JOURNAL)
# starts a journal; ends one that names another file
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
# device and inode of a file -> its descriptor, which is never closed; see the last rule
_KEPT_OPEN: dict[tuple[int, int], int] = {}
_PIECE = 1 << 20  # bytes that are copied at once
_OWN_FOLDER = "Name a file in a folder of your own (store=)."


class FileState(msgspec.Struct, frozen=True):
    """The `identity` of a file (device, inode), and a `stamp` (size, time) that writing changes."""

    identity: tuple[int, int]
    stamp: tuple[int, int]


def read_file_state(path: Path) -> FileState | None:
    """Return the state of the file, or symbolic link, at `path`; None if there is neither."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    return FileState((status.st_dev, status.st_ino), (status.st_size, status.st_mtime_ns))


def link_path(path: Path, state: FileState) -> Path:
    """Return the path of the link to the file at `path`, whether it exists or not."""
    return Path(os.path.realpath(path.parent)) / f".{path.name}.{state.identity[1]:x}"


def has_link(link: Path, state: FileState) -> bool:
    """Return whether the path `link` is a name of the file with this state."""
    present = read_file_state(link)
    return present is not None and present.identity == state.identity


def make_link(path: Path, state: FileState) -> Path:
    """Return the link to the file at `path`, made if missing; `path` itself where none can be."""
    link = link_path(path, state)
    if has_link(link, state):
        return link
    try:
        os.link(path, link)
    except OSError:
        return link if has_link(link, state) else path  # another process may have been first
    if has_link(link, state):
        return link
    link.unlink()  # `path` was replaced in between
    return path


def reading_name(path: Path, state: FileState) -> Path:
    """Return the name to read a file under: its link, if one exists, because writers use that."""
    link = link_path(path, state)
    return link if has_link(link, state) else path


def is_hot(name: Path) -> bool:
    """Return whether SQLite would apply the journal of the database `name`.

    That is so if a process was killed while it wrote, or writes now.
    """
    try:
        with Path(f"{name}{JOURNAL}").open("rb") as file:
            return file.read(len(_JOURNAL_MAGIC)) == _JOURNAL_MAGIC
    except OSError:
        return False


def remove_link(name: Path, path: Path) -> None:
    """Remove the journal of `name`, which is empty, and `name` itself if it is a link.

    The caller holds the write lock, or knows that the journal is not hot. `path` is never removed.
    """
    with suppress(OSError):
        os.unlink(f"{name}{JOURNAL}")
    if name != path:
        with suppress(OSError):
            name.unlink()


def find_stray_links(path: Path, state: FileState) -> Iterator[Path]:
    """Yield the links to files that stood at `path` before and have no other name.

    A killed process left them, and their rows are nowhere else. A link to a file that has another
    name is removed on the way, unless its journal is hot.
    """
    folder, start = os.path.realpath(path.parent), f".{path.name}."
    pattern = f"{glob.escape(start)}*"
    for name in glob.iglob(pattern, root_dir=folder, include_hidden=True):
        link = Path(folder) / name
        with suppress(OSError):
            status = os.lstat(link)
            # a link's name ends in its own inode; else it is a copy, or not ours
            is_link = name == f"{start}{status.st_ino:x}" and stat.S_ISREG(status.st_mode)
            if not is_link or status.st_ino == state.identity[1] or belongs_to_other(link):
                continue
            if status.st_nlink == 1:
                yield link
            elif not is_hot(link):
                remove_link(link, path)


def find_refusal(path: Path, state: FileState, *, read_only: bool) -> tuple[str, str] | None:
    """Return (reason, advice) if the store at `path` must not be opened, else None.

    Refused are symbolic links; a journal that names another file, because SQLite may delete that
    file; another user's file, whose owner could read what is written to it, unless it is opened
    `read_only`; and a third user's journal or log, which SQLite would apply to the rows.
    """
    link = link_path(path, state)
    for name in (path, link, *(Path(f"{n}{end}") for n in (path, link) for end in _COMPANIONS)):
        with suppress(FileNotFoundError):  # companions come and go
            if not stat.S_ISREG(os.lstat(name).st_mode):
                return f"{name.name} is not a regular file", "Name another file."
            if _is_planted(name, path, read_only=read_only):
                return f"{name.name} belongs to another user", _OWN_FOLDER
    # SQLite may delete the file that the end of a journal names
    for journal in (Path(f"{path}{JOURNAL}"), Path(f"{link}{JOURNAL}")):
        if _read_end(journal) == _JOURNAL_MAGIC:
            return f"{journal.name} names another file", f"Delete {journal.name}."
    if read_file_state(link) is not None and not has_link(link, state):
        return f"{link.name} is a copy of another file's link", f"Delete {link.name}."
    return _find_foreign_log(path)


def _is_planted(name: Path, path: Path, *, read_only: bool) -> bool:
    """Return whether `name`, the store or a companion, is refused because another user owns it.

    A store of another user may be read, and a companion may belong to the owner of its store.
    """
    if name == path:
        return not read_only and belongs_to_other(name)
    return os.lstat(name).st_uid != os.lstat(path).st_uid and belongs_to_other(name)


def _find_foreign_log(path: Path) -> tuple[str, str] | None:
    """Return the refusal of a write-ahead log that belongs to another file, None if there is none.

    A store is in write-ahead format only if an earlier version of this package was killed in use.
    """
    log = Path(f"{path}-wal")
    with suppress(OSError):
        if log.stat().st_size and not is_logged(path):
            return f"{log.name} is the log of another file", f"Delete {log.name}."
    return None


def copy_store(path: Path, copy: Path) -> None:
    """Copy a store file that this process may have locked. Raises OSError."""
    if os.name == "nt":  # which keeps the locks, and does not remove an open file
        shutil.copyfile(path, copy)
        return
    identity = _identify(os.stat(path))
    if identity not in _KEPT_OPEN:
        number = os.open(path, os.O_RDONLY)
        identity = _identify(os.fstat(number))
        _KEPT_OPEN.setdefault(identity, number)
    offset = 0
    with copy.open("xb") as target:
        while data := os.pread(_KEPT_OPEN[identity], _PIECE, offset):
            offset += target.write(data)


def _identify(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def is_logged(path: Path) -> bool:
    """Return whether a file has a write-ahead log beside it, and the format that uses one."""
    if not os.path.exists(f"{path}-wal"):
        return False
    with path.open("rb") as file:
        # the format versions for writing and reading: https://sqlite.org/fileformat.html
        return file.read(20)[18:] == b"\2\2"


def _read_end(path: Path) -> bytes:
    """Return the last bytes of a journal, b"" without one: other processes may remove theirs."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - len(_JOURNAL_MAGIC)))
            return file.read()
    except FileNotFoundError:
        return b""
