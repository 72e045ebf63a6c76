"""Notes of the user's servers on this machine: address and token, for other programs to find.

A token typed into a cell is saved with the notebook; one on a command line is visible to every user
of the machine.

Rules
- The server locks its note and removes it at its end. An unlocked note belongs to a dead server and
  is not used. Where files cannot be locked, every note that names a process is used.
- A token is used for exactly the address in its note.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ..host import make_private_folder
from ..record import is_locked, take_lock

_REMOVES_OPEN_FILES = os.name != "nt"


@dataclass(frozen=True)
class Note:
    """The address, token and process of a server."""

    url: str
    token: str = field(repr=False)
    pid: int = 0


class WrittenNote:
    """The note of a server of this process; the open `file` holds its lock."""

    def __init__(self, path: Path, file: int) -> None:
        self.path = path
        self._file = file  # -1: closed

    def close(self) -> None:
        """Remove the note, if possible while it is locked: the next server's note must stay."""
        if self._file < 0:
            return
        with suppress(OSError):
            self.path.unlink()
        os.close(self._file)
        self._file = -1
        if not _REMOVES_OPEN_FILES:
            with suppress(OSError):
                self.path.unlink()


def notes_folder() -> Path:
    """Return the folder of the notes, which only the user can read and which may not exist."""
    from platformdirs import user_state_dir

    return Path(user_state_dir("agent_nb", appauthor=False)) / "servers"


def write_server_note(url: str, token: str, where: Path | None = None) -> WrittenNote | None:
    """Write the note of a server that this process runs; return None if it cannot be written.

    `where`: the folder of the notes, the user's by default, as in the other functions.
    """
    directory = where or notes_folder()
    address = url.partition("://")[2]
    path = directory / f"{''.join(c if c.isalnum() else '-' for c in address)}.json"
    try:
        make_private_folder(directory)
        with suppress(FileNotFoundError):
            path.unlink()  # the note of a server that died at this address
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return None
    note = WrittenNote(path, file)
    try:
        take_lock(file)
        os.write(file, msgspec.json.encode(Note(url, token, os.getpid())))
    except OSError:
        note.close()
        return None
    return note


def find_token(url: str, where: Path | None = None) -> str:
    """Return the token of the running server at `url`, or ""."""
    return next((note.token for note in list_servers(where) if note.url == url), "")


def list_servers(where: Path | None = None) -> list[Note]:
    """Return the notes of the running servers."""
    notes = []
    with suppress(OSError):
        for path in sorted((where or notes_folder()).glob("*.json")):
            with suppress(OSError, msgspec.DecodeError):
                note = msgspec.json.decode(path.read_bytes(), type=Note)
                if _may_run(path, note.pid):
                    notes.append(note)
    return notes


def _may_run(path: Path, pid: int) -> bool:
    """Return whether the server of a note is running; without locks, whether it may be."""
    locked = is_locked(path)
    return locked if locked is not None else pid > 0 and path.exists()
