"""The journal of a run in progress, which survives a killed kernel and a closed page.

Why: the record reaches the notebook only if the run ends, its page is open and the notebook is then
saved. Until then the run stands in an NDJSON file of the user's state folder (`START-RUN.ndjson`):
a header line, then every event as it happens, deltas included.

Rules
- The operating system has each event before the call returns: neither a buffer nor a thread.
- A full disk or a folder that cannot be written ends the journal, never the run.
- A file gets its final name only once it is locked, because any process may remove a file that has
  that name and no lock. Without locks (Windows) the age of a file decides.
"""

from __future__ import annotations

import errno
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ..events import Event, encode_event
from ..host import make_private_folder, shorten_path
from ..wire import dumps, encode_canonical
from . import file_lock
from .packing import Home, Packer, hash_text

FORMAT = 1
ENDING = ".ndjson"
HIDDEN = "home"  # the key of a packed event in its line
_NO_PAYLOADS = 1 << 62  # the size above which a value of a line would become a payload
MAX_AGE = 14 * 24 * 3600.0  # seconds that a journal is kept
MAX_BYTES = 200 << 20  # of all journals together
QUIET = 60.0  # seconds; without locks, a journal unchanged for longer is abandoned


class Header(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first line of a journal; `notebook` is a path with the home folder hidden."""

    journal: int = FORMAT
    run: str = ""
    cell: str = ""
    notebook: str = ""
    conversation: str = ""
    execution: str = ""  # of the cell that made this model call, which a tape recorded
    started: float = 0.0  # epoch seconds
    pid: int = 0


class Journal:
    """Writes one run's events to a file of its own: a subscriber for `EventLog.subscribe`.

    The constructor opens and locks the file in the folder `where` (default: `folder()`). It raises
    nothing: if the journal fails, then or later, `warn` receives the text of `warning`. `path` is
    None if the file could not be made. With `clean`, `close` removes old journals: at the start,
    listing a large folder would delay the view of the run.
    """

    def __init__(
        self,
        run: str,
        *,
        cell: str = "",
        notebook: str = "",
        conversation: str = "",
        execution: str = "",
        where: Path | None = None,
        clean: bool = True,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.path: Path | None = None
        self.warning = ""
        self._warn = warn
        self._where, self._clean = where or self.folder(), clean
        self._file = -1  # the descriptor; -1: nothing is written
        started = time.time()
        self._home = Home.of_user()
        header = Header(
            run=run,
            cell=cell,
            notebook=self._home.hide(notebook),
            conversation=conversation,
            execution=execution,
            started=round(started, 3),
            pid=os.getpid(),
        )
        try:
            self._open(f"{started:.3f}-{_safe_name(run)}{ENDING}", header)
        except OSError as fault:
            todo = f"Make {shorten_path(self._where)} writable, or set XDG_STATE_HOME."
            self._end(
                f"No journal of this run is kept ({fault.strerror or fault}). If the kernel dies, what is not saved is lost. {todo}"
            )

    def __call__(self, event: Event) -> None:
        """Write one event; a journal that has ended ignores it."""
        if self._file < 0:
            return
        try:
            self._write(self._encode(event) + b"\n")
        except OSError as fault:
            where = shorten_path(self._where)
            lost = "If the kernel dies before the notebook is saved, the run is lost from here on."
            self._end(
                f"The journal of this run stopped ({fault.strerror or fault}). {lost} Make room at {where}."
            )

    def close(self, *, discard: bool = False) -> None:
        """End the journal; with `discard`, remove its file (the run is saved elsewhere)."""
        if self._file >= 0:
            if self._clean:  # while this journal is locked, so that it stays
                remove_old_journals(self._where)
            os.close(self._file)
            self._file = -1
        if discard and self.path is not None:
            _remove(self.path)

    @staticmethod
    def folder() -> Path:
        """Return the folder of the journals; it may not exist yet."""
        from platformdirs import user_state_dir

        return Path(user_state_dir("agent_nb", appauthor=False)) / "journals"

    @classmethod
    def files(cls, where: Path | None = None) -> list[Path]:
        """Return the journal files, oldest first."""
        try:
            return sorted((where or cls.folder()).glob("*" + ENDING))
        except OSError:
            return []

    @classmethod
    def find(cls, run: str, *, where: Path | None = None) -> Path | None:
        """Return the newest journal of a run, None if there is none."""
        return next(reversed(cls._files_of(run, where)), None) if run else None

    @classmethod
    def remove(cls, run: str, *, where: Path | None = None) -> int:
        """Remove the journals of a run ("": of all) that no process writes; return how many."""
        paths = cls._files_of(run, where) if run else cls.files(where)
        return sum(_remove(p) for p in paths if not cls.is_being_written(p))

    @classmethod
    def _files_of(cls, run: str, where: Path | None) -> list[Path]:
        """Return the journals of a run, oldest first; their names are `START-RUN.ndjson`."""
        name = f"{_safe_name(run)}{ENDING}"
        return [path for path in cls.files(where) if path.name.partition("-")[2] == name]

    @staticmethod
    def is_being_written(path: Path) -> bool:
        """Return whether a process is writing a journal."""
        try:
            locked = file_lock.is_locked(path)
            return time.time() - path.stat().st_mtime < QUIET if locked is None else locked
        except OSError:
            return False

    def _open(self, name: str, header: Header) -> None:
        """Make and lock the file, give it its name and write its header. Raises OSError."""
        make_private_folder(self._where)
        # `files` does not list the first name: its ending is another one
        path, unlisted = self._where / name, self._where / f".{name}.new"
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        self._file = os.open(unlisted, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        try:
            file_lock.take_lock(self._file)
            unlisted.rename(path)
        except OSError:
            _remove(unlisted)
            raise
        self.path = path
        # names of files and cells may hold half characters, which `dumps` replaces
        self._write(dumps(msgspec.to_builtins(header)).encode() + b"\n")

    def _encode(self, event: Event) -> bytes:
        line = encode_event(event)
        if not self._home.occurs_in(line.decode()):
            return line
        packed = Packer(self._home, _NO_PAYLOADS).pack(msgspec.json.decode(line))
        return encode_canonical({HIDDEN: packed}).encode()

    def _end(self, warning: str) -> None:
        """Stop writing, and warn; the run goes on."""
        self.close()
        self.warning = warning
        self._warn(warning)

    def _write(self, line: bytes) -> None:
        """Hand a line to the operating system, which may accept it in parts. Raises OSError."""
        unwritten = memoryview(line)
        while unwritten:
            unwritten = unwritten[os.write(self._file, unwritten) :]


def remove_old_journals(
    where: Path | None = None,
    *,
    now: float | None = None,
    max_age: float = MAX_AGE,
    max_bytes: int = MAX_BYTES,
) -> int:
    """Remove journals not written for `max_age` seconds, and those beyond `max_bytes` in all.

    The newest take their room first; an older one may stay if it still fits. A journal that is
    being written always stays. Return how many were removed.
    """
    now = time.time() if now is None else now
    total_bytes, removed = 0, 0
    # the newest first, so that older ones exceed the total size
    for path in reversed(Journal.files(where)):
        try:
            status = path.stat()
        except OSError:
            continue
        too_old = now - status.st_mtime > max_age
        too_large = total_bytes + status.st_size > max_bytes
        if (too_old or too_large) and not Journal.is_being_written(path):
            removed += _remove(path)
        else:
            total_bytes += status.st_size
    return removed


def _remove(path: Path) -> bool:
    """Remove a file; return whether that succeeded."""
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _safe_name(run: str) -> str:
    """Return a run id for a file name; a digest tells apart ids of which the name lacks a part."""
    name = re.sub(r"[^\w-]", "_", run, flags=re.ASCII)[:64]
    return name if name == run else f"{name}-{hash_text(run, like='')[:16]}"
