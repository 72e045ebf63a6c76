"""The journal of a run in progress: what a killed kernel or a closed page would otherwise take
along.

Why: the record reaches the notebook only when the run has ended, the page is open and somebody
saves. A journal is a file of its own per run, NDJSON in the user's state folder: a header line,
then every event as it happens, deltas included.

Rules
- A `Journal` is a subscriber of an `EventLog`. Each event is handed to the operating system before
  the call returns, so a kernel that is killed loses nothing that was logged; there is no buffer and
  no thread.
- A folder that cannot be written, or a disk that is full later, ends the journal and never the run;
  `warning` says what is lost then and what to do.
- The writer holds a lock on its file: a file without one belongs to no living process. Where locks
  do not exist, age decides.
- Only the user can read journals. Old ones go by age and by total size, never one that is being
  written.
- Reading tolerates anything: a torn last line, foreign lines, other versions.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from .. import events
from ..events import Call, Delta, Event, Respond, Think
from ..events.chunks import encode_chunks
from ..events.completion import closed
from ..events.event_json import decode_event, encode_event
from ..events.log import EventLog
from ..host.paths import tilde
from . import file_lock
from .packing import Home

FORMAT = 1
ENDING = ".ndjson"
MAX_AGE = 14 * 24 * 3600.0  # seconds
MAX_BYTES = 200 << 20  # of all journals together
# seconds after which an unlocked journal counts as abandoned, where there are no locks
QUIET = 60.0
_HEAD = 256 * 1024  # bytes
_TAIL = 64 * 1024


class Header(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The first line of a journal. `notebook` is a path without the home folder, `started` epoch
    seconds.
    """

    journal: int = FORMAT
    run: str = ""
    cell: str = ""
    notebook: str = ""
    conversation: str = ""
    started: float = 0.0
    pid: int = 0


def folder() -> Path:
    """Return the folder of the journals (it may not exist)."""
    from platformdirs import user_state_dir

    return Path(user_state_dir("agent_nb", appauthor=False)) / "journals"


class Journal:
    """Writes one run's events; give it to `EventLog.subscribe`. `warn` gets the warning, should
    there be one, when it is true.
    """

    def __init__(
        self,
        run: str,
        *,
        cell: str = "",
        notebook: str = "",
        conversation: str = "",
        where: Path | None = None,
        clean: bool = True,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.path: Path | None = None
        self.warning = ""
        self._warn = warn
        self._file = -1
        started = time.time()
        home = Home(os.path.expanduser("~"))
        header = Header(
            run=run,
            cell=cell,
            notebook=home.hide(notebook),
            conversation=conversation,
            started=round(started, 3),
            pid=os.getpid(),
        )
        try:
            self._open((where or folder()), f"{started:.3f}-{_safe(run)}{ENDING}", header)
        except OSError as fault:
            todo = f"Make {tilde(where or folder())} writable, or set XDG_STATE_HOME."
            self._end(
                f"No journal of this run is kept ({fault.strerror or fault}). If the kernel dies, what is not saved is lost. {todo}"
            )
            return
        if clean:
            tidy(where)

    def _open(self, where: Path, name: str, header: Header) -> None:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = where / name
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        self.path = path
        file_lock.take(self._file)
        self._write(msgspec.json.encode(header) + b"\n")

    def __call__(self, event: Event) -> None:
        """Write one event."""
        if self._file < 0:
            return
        try:
            self._write(encode_event(event) + b"\n")
        except OSError as fault:
            where = tilde(self.path.parent) if self.path is not None else "its folder"
            lost = "If the kernel dies before the notebook is saved, the run is lost from here on."
            self._end(
                f"The journal of this run stopped ({fault.strerror or fault}). {lost} Make room at {where}."
            )

    def _end(self, warning: str) -> None:
        self.close()
        self.warning = warning
        self._warn(warning)

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._file, rest) :]

    def close(self, *, discard: bool = False) -> None:
        """End the journal; with `discard` remove its file (the run is safe elsewhere)."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        if discard and self.path is not None:
            _remove(self.path)


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A journal on disk. `status` is the run's, or `running` while its process lives, or `lost`;
    `size` in bytes.
    """

    path: Path
    header: Header
    status: str
    prompt: str = ""
    size: int = 0


def recoverable(known: Iterable[str] = (), *, where: Path | None = None) -> list[Found]:
    """Return the journals of runs that are not `known` (run ids), newest first, without unreadable
    files and runs that never began.
    """
    skip = set(known)
    found = [f for f in map(_look, journals(where)) if f is not None and f.header.run not in skip]
    return sorted(found, key=lambda f: f.header.started, reverse=True)


def journals(where: Path | None = None) -> list[Path]:
    """Return the journal files, oldest first."""
    try:
        return sorted((where or folder()).glob("*" + ENDING))
    except OSError:
        return []


def recover(path: str | Path) -> EventLog:
    """Return the log of a journal: complete events as they were, blocks that never ended as
    incomplete ones, closed as interrupted.

    Raises OSError when the file cannot be read.
    """
    _, found = read(Path(path))
    return EventLog.of_events(closed(fold(found)))


def read(path: Path) -> tuple[Header, list[Event]]:
    """Return the header and the events of a journal, deltas included. Raises OSError."""
    lines = path.read_bytes().split(b"\n")
    header = _header(lines[0])
    found = [e for e in (_event(line) for line in lines[1:]) if e is not None]
    return header, found


def fold(stream: Iterable[Event]) -> list[Event]:
    """Return the stored events of a stream; deltas of blocks that never ended become incomplete
    blocks at the end.
    """
    stored: list[Event] = []
    open_blocks: dict[str, list[Delta]] = {}
    for event in stream:
        if not isinstance(event, Delta):
            stored.append(event)
            open_blocks.pop(getattr(event, "block", ""), None)
        elif event.of in _BLOCKS and event.block:
            open_blocks.setdefault(event.block, []).append(event)
    start = stored[0].ts if stored else next((d[0].ts for d in open_blocks.values()), 0.0)
    for seq, pieces in enumerate(open_blocks.values(), len(stored) + 1):
        stored.append(_BLOCKS[pieces[0].of](pieces, start, seq))
    return stored


def _incomplete(pieces: list[Delta], start: float, seq: int) -> dict[str, Any]:
    first, pairs, last = pieces[0], [], round(start * 1000)
    for piece in pieces:
        ms = round(piece.ts * 1000)
        pairs.append((len(piece.text), max(ms - last, 0)))
        last = max(ms, last)
    return {
        "seq": seq,
        "ts": pieces[-1].ts,
        "run": first.run,
        "turn": first.turn,
        "span": first.span,
        "parent": first.parent,
        "origin": first.origin,
        "block": first.block,
        "incomplete": True,
        "chunks": encode_chunks(pairs),
    }


def _think(pieces: list[Delta], start: float, seq: int) -> Event:
    return Think(content=_text(pieces), **_incomplete(pieces, start, seq))


def _respond(pieces: list[Delta], start: float, seq: int) -> Event:
    return Respond(content=_text(pieces), **_incomplete(pieces, start, seq))


def _call(pieces: list[Delta], start: float, seq: int) -> Event:
    name = next((p.name for p in pieces if p.name), "")
    block = pieces[0].block
    return Call(
        call_id=f"lost_{block}",
        synthetic=True,
        name=name,
        raw_args=_text(pieces),
        **_incomplete(pieces, start, seq),
    )


def _text(pieces: list[Delta]) -> str:
    return "".join(p.text for p in pieces)


_BLOCKS: dict[str, Callable[[list[Delta], float, int], Event]] = {
    "think": _think,
    "respond": _respond,
    "call": _call,
}


def tidy(
    where: Path | None = None,
    *,
    now: float | None = None,
    max_age: float = MAX_AGE,
    max_bytes: int = MAX_BYTES,
) -> int:
    """Remove journals that are older than `max_age` seconds, then the oldest until all take at most
    `max_bytes`; return how many.
    """
    now = time.time() if now is None else now
    kept, removed = 0, 0
    for path in reversed(journals(where)):
        try:
            status = path.stat()
        except OSError:
            continue
        if (now - status.st_mtime > max_age or kept + status.st_size > max_bytes) and not _alive(
            path
        ):
            removed += _remove(path)
        else:
            kept += status.st_size
    return removed


def forget(run: str, *, where: Path | None = None) -> int:
    """Remove the journals of the run `run` ("" for all) that no process writes; return how many."""
    chosen = [p for p in journals(where) if not run or p.name.endswith(f"-{_safe(run)}{ENDING}")]
    return sum(_remove(p) for p in chosen if not _alive(p))


def _look(path: Path) -> Found | None:
    """Read as much of a journal as a list of journals shows: its beginning and its end; None when
    it cannot be read or holds no event.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            head = file.read(_HEAD).split(b"\n")
            file.seek(max(0, size - _TAIL))
            tail = file.read(_TAIL).split(b"\n")
    except OSError:
        return None
    begun = [e for e in map(_event, head[1:]) if e is not None]
    if not begun and size <= _HEAD:
        return None
    prompt = next((e.content for e in begun if isinstance(e, events.User)), "")
    last = _event(tail[-2]) if len(tail) > 1 else None
    ended = last.status if isinstance(last, events.End) and not last.span else ""
    return Found(
        path=path,
        header=_header(head[0]),
        status=ended or ("running" if _alive(path) else "lost"),
        prompt=prompt,
        size=size,
    )


def _alive(path: Path) -> bool:
    """Return whether a process is writing the journal."""
    try:
        held = file_lock.held(path)
        return time.time() - path.stat().st_mtime < QUIET if held is None else held
    except OSError:
        return False


def _header(line: bytes) -> Header:
    try:
        return msgspec.json.decode(line, type=Header)
    except msgspec.DecodeError:
        return Header()


def _event(line: bytes) -> Event | None:
    try:
        return decode_event(line) if line.strip() else None
    except (msgspec.DecodeError, RecursionError):
        return None


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:
        return False
    return True


def _safe(run: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "_" for c in run)[:64]
