"""Where a server of this user leaves its address and token, so that other programs of the same user
on the same machine find them.

Why: a token typed into a cell is saved with the notebook, one on a command line is seen by
everybody on the machine.

Rules
- A note is a file that only the user can read, in the user's state folder; it goes with its server.
- The server holds a lock on its note: one without a lock belongs to a dead server and is never
  used. Where there are no locks, the process that wrote it must be alive.
- A token is found for exactly the address it was left for.
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

import msgspec

from ..errors import UsageError
from ..record import file_lock


class Note(msgspec.Struct, frozen=True):
    """What a server leaves."""

    url: str
    token: str
    pid: int = 0


class Left:
    """A note that was left; `close` takes it away."""

    def __init__(self, path: Path, file: int) -> None:
        self.path = path
        self._file = file

    def close(self) -> None:
        """Take the note away."""
        if self._file >= 0:
            with suppress(OSError):
                self.path.unlink()
            os.close(self._file)
            self._file = -1


def folder() -> Path:
    """Return the folder of the notes (it may not exist)."""
    from platformdirs import user_state_dir

    return Path(user_state_dir("agent_nb", appauthor=False)) / "servers"


def leave(url: str, token: str, where: Path | None = None) -> Left | None:
    """Leave a note of a server; None when it cannot be written."""
    place = where or folder()
    path = place / f"{''.join(c if c.isalnum() else '-' for c in url.partition('://')[2])}.json"
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            path.unlink()  # of a server that died
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return None
    file_lock.take(file)
    os.write(file, msgspec.json.encode(Note(url, token, os.getpid())))
    return Left(path, file)


def find(url: str, where: Path | None = None) -> str:
    """Return the token of the living server at `url` ("" when none has left it)."""
    return next((note.token for note in living(where) if note.url == url), "")


def living(where: Path | None = None) -> list[Note]:
    """Return the notes of the servers that are alive."""
    found = []
    with suppress(OSError):
        for path in sorted((where or folder()).glob("*.json")):
            with suppress(OSError, msgspec.DecodeError):
                note = msgspec.json.decode(path.read_bytes(), type=Note)
                found += [note] if _alive(path, note.pid) else []
    return found


def from_file(path: Path) -> str:
    """Return the token in a file, which is made with a new one, for the user alone, when there is
    none. Raises UsageError.
    """
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        token = secrets.token_urlsafe(24)
    except (OSError, UnicodeDecodeError) as fault:
        raise UsageError(f"The token cannot be read from {path}: {fault}.") from None
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(token + "\n")
    except OSError as fault:
        raise UsageError(
            f"The token cannot be written to {path}: {fault.strerror or fault}."
        ) from None
    return token


def _alive(path: Path, pid: int) -> bool:
    held = file_lock.held(path)
    return path.exists() and pid > 0 if held is None else held
