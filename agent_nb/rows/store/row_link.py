"""The name under which SQLite opens the file of a store: a hard link that belongs to one inode.

Why: SQLite finds the journal of a database by the database's name. What `git checkout`, a sync or a
person puts in the place of a file would meet the journal of the one before it, and be destroyed.

Rules
- The link of `rows.sqlite` with inode 0x1a2b is `.rows.sqlite.1a2b` in the same folder. Its journal
  is named after the link, so it belongs to that inode only, whatever stands at `rows.sqlite`.
- As long as the link exists, the system gives its inode to no other file. So the link stands before
  a transaction writes, and only a holder of the write lock removes it.
- A file system without hard links gets no link: the file is opened under its own name.
- Nothing is opened here, because closing a file drops the locks of the whole process on it.
"""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from .file_owner import belongs_to_other

JOURNAL = "-journal"
_COMPANIONS = ("-wal", "-shm", JOURNAL)
_MAGIC = bytes.fromhex("d9d505f920a163d7")  # begins a journal, and ends one that names another file
_OWN_FOLDER = "Name a file in a folder of your own (store=)."


class FileState(msgspec.Struct, frozen=True):
    """A file as the system shows it: which one (`identity`), and a `stamp` that writing changes."""

    identity: tuple[int, int]
    stamp: tuple[int, int]


def read_file_state(path: Path) -> FileState | None:
    """Return the state of what stands at `path`, links not followed; None if nothing does."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return None
    return FileState(
        (status.st_dev, status.st_ino),
        (status.st_size, status.st_mtime_ns),
    )


def link_path(path: Path, state: FileState) -> Path:
    """Return where the link to a file is, or would be."""
    return Path(os.path.realpath(path.parent)) / f".{path.name}.{state.identity[1]:x}"


def has_link(link: Path, state: FileState) -> bool:
    """Return whether `link` is a name of this very file."""
    there = read_file_state(link)
    return there is not None and there.identity == state.identity


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
    """Return under which name a file is read: with the journal of those who write it."""
    link = link_path(path, state)
    return link if has_link(link, state) else path


def is_hot(name: Path) -> bool:
    """Return whether there is a journal of `name` that SQLite would apply, or still writes."""
    try:
        with Path(f"{name}{JOURNAL}").open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def remove_link(name: Path, path: Path) -> None:
    """Remove an emptied journal, and the link if `name` is one. The caller holds the write lock."""
    with suppress(OSError):
        os.unlink(f"{name}{JOURNAL}")
    if name != path:
        with suppress(OSError):
            name.unlink()


def stray_links(path: Path, state: FileState) -> Iterator[Path]:
    """Yield the links to files that stood at `path` before, and are not elsewhere now.

    They are what a killed process left. Links to files that have another name now are removed.
    """
    folder, start = os.path.realpath(path.parent), f".{path.name}."
    for name in glob.iglob(glob.escape(start) + "*", root_dir=folder, include_hidden=True):
        link = Path(folder) / name
        with suppress(OSError):
            status = os.lstat(link)
            own = name == f"{start}{status.st_ino:x}" and stat.S_ISREG(status.st_mode)
            if not own or status.st_ino == state.identity[1] or belongs_to_other(link):
                continue
            if status.st_nlink == 1:
                yield link
            elif not is_hot(link):
                remove_link(link, path)


def find_refusal(path: Path, state: FileState, *, read_only: bool) -> tuple[str, str] | None:
    """Return why a file must not be opened and what to do; None if it may be."""
    link = link_path(path, state)
    for name in (path, link, *(Path(f"{n}{end}") for n in (path, link) for end in _COMPANIONS)):
        with suppress(FileNotFoundError):  # companions come and go
            if not stat.S_ISREG(os.lstat(name).st_mode):
                return f"{name.name} is not a regular file", "Name another file."
            if _is_planted(name, path, read_only=read_only):
                return f"{name.name} belongs to another user", _OWN_FOLDER
    for journal in (Path(f"{path}{JOURNAL}"), Path(f"{link}{JOURNAL}")):
        if _tail(journal) == _MAGIC:
            return f"{journal.name} names another file", f"Delete {journal.name}."
    if read_file_state(link) is not None and not has_link(link, state):
        return f"{link.name} is a copy of another file's link", f"Delete {link.name}."
    return _foreign_log(path)


def _is_planted(name: Path, path: Path, *, read_only: bool) -> bool:
    """Return whether another user put there what would be written, or change the file."""
    if name == path:
        return not read_only and belongs_to_other(name)
    return os.lstat(name).st_uid != os.lstat(path).st_uid and belongs_to_other(name)


def _foreign_log(path: Path) -> tuple[str, str] | None:
    """Return the refusal of a write-ahead log that is another file's.

    A store is in the format of such logs only if an earlier version was killed while it had one.
    """
    log = Path(f"{path}-wal")
    with suppress(OSError):
        if log.stat().st_size and not is_logged(path):
            return f"{log.name} is the log of another file", f"Delete {log.name}."
    return None


def is_logged(path: Path) -> bool:
    """Return whether a file with a write-ahead log beside it is in the format of such logs."""
    if not os.path.exists(f"{path}-wal"):
        return False
    with path.open("rb") as file:
        return file.read(20)[18:] == b"\2\2"


def _tail(path: Path) -> bytes:
    """Return the last bytes of a journal; other processes may end theirs at any moment."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - len(_MAGIC)))
            return file.read()
    except FileNotFoundError:
        return b""
