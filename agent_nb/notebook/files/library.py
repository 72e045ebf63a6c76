"""The records a kernel knows: those it made, those the runner sent, those in the notebook's file.

Why three sources: the file lags behind the front end until it is saved, a kernel forgets at a
restart, and a runner's kernel should need no file.

Rules
- Of a cell's records, those that this kernel made come first, then the others as `CellRecords.rank`
  orders them; each run counts once.
- The conversation of the cells above comes from whole records only, with their ownership.
- Without a cell id, or where the file has no ids, a cell is found by the hash of its text and the
  number of cells of that text that ran before it.
- A run that stands with several cells (a cell was pasted) was said once: by the cell that made it,
  as long as that one has it.
- The file is read only when needed and again only if it has changed; an unreadable file counts as
  missing.
- If the path is unknown, a kernel takes the one notebook of its start folder that holds the running
  cell (`folder_search`), as long as that holds the cells that run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...agent import Run
from ...events import is_map
from ...record import (
    CellRecords,
    NotebookRuns,
    Payloads,
    Record,
    cell_id,
    content_hash,
    events_of,
    is_intact,
    is_own_record,
    list_cells,
    metadata_of,
    read_notebook,
    source_hash,
    source_of,
    user_key,
    with_ids,
)
from ...wire import as_list
from ..conversations import Turn
from ..identity import Cell
from ..runner_options import NO_OPTIONS, RunnerOptions
from .cell_records import select_cell_records
from .folder_search import FolderSearch
from .notebook_path import PATH_VARIABLE, served_path, session_path, told_path
from .tool_names import tool_names

FRESH = 5.0  # seconds for which the answer of a Jupyter server is reused
SILENCE = 60.0  # seconds before asking again, if no Jupyter server knew this kernel
NAMELESS = f"The kernel does not know which notebook it runs: if that is recorded, name the file in {PATH_VARIABLE}."
AMBIGUOUS = f"The kernel does not know which notebook it runs, for this cell stands in {{names}}: name the file in {PATH_VARIABLE}."
EXCLUDE = "agent-exclude"  # tag of a cell that is never sent to a model


class File(msgspec.Struct, frozen=True):
    """What a kernel needs of a notebook file."""

    runs: Mapping[str, Sequence[Record]] = {}  # whole records by cell id
    order: Sequence[str] = ()  # cell ids
    sources: Mapping[str, str] = {}  # of code cells, by cell id
    cleared: Sequence[str] = ()  # cells with a record and without output
    tools: Collection[str] = ()  # names that may be tools
    excluded: Collection[str] = ()  # cells whose tag keeps them from models
    saved: float = 0.0  # epoch seconds
    nameless: bool = False  # the file has no ids: a front end made up those that it sends

    def id_of(self, cell: Cell) -> str:
        """Return the id under which the file holds a cell, "" if it does not."""
        if not self.nameless or cell.id in self.order:
            return cell.id
        text = _text(cell)
        same = [name for name, source in self.sources.items() if source_hash(source) == text]
        return same[cell.occurrence - 1] if cell.occurrence <= len(same) else ""

    def said_by(self, cell: str, record: Record) -> bool:
        """Return whether `cell` made a record, or the cell that made it no longer has it."""
        maker = str(record.get("cell", ""))
        return maker == cell or all(
            r.get("id") != record.get("id") for r in self.runs.get(maker, ())
        )


NOTHING = File()


class Library:
    """The records of one kernel's notebook."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self._records: dict[str, list[Record]] = {}
        self._gone: set[str] = set()
        self._read: tuple[tuple[str, int, int], File] | None = None
        self._named_path: Path | None = None
        self._served: Path | None = None
        self._ask_at = 0.0
        self._silent_until = 0.0
        self._search = FolderSearch(_started_in(namespace))
        self._only_path: Path | None = None
        self._remarked = False

    def keep(self, key: str, record: Record) -> None:
        """Remember a record that this kernel made for the cell `key`."""
        others = [r for r in self._records.get(key, []) if r.get("id") != record.get("id")]
        self._records[key] = CellRecords([record, *others]).select_kept(user_key())

    def of(self, cell: Cell) -> list[Record]:
        """Return the records of a cell, ranked."""
        elsewhere = self._elsewhere(cell)
        elsewhere = (
            CellRecords(elsewhere).rank(user_key(), countersigned_hashes(cell.sent))
            if len(elsewhere) > 1
            else elsewhere
        )
        return self._known(
            [*CellRecords(self._records.get(cell.key, [])).newest_first(), *elsewhere]
        )

    def made(self, record: Record) -> bool:
        """Return whether this kernel made a record."""
        name = (record.get("id"), record.get("hash"))
        return any(
            (r.get("id"), r.get("hash")) == name
            for listed in self._records.values()
            for r in listed
        )

    def owns(self, record: Record) -> bool:
        """Return whether this kernel or this user made a record."""
        return self.made(record) or is_own_record(record, user_key())

    def of_cells(self, keys: Iterable[str] | None = None) -> list[Record]:
        """Return the records of these cells (None: all), also those of the file."""
        file = self.file()
        chosen = dict.fromkeys([*self._records, *file.runs] if keys is None else keys)
        return [r for k in chosen for r in (*self._records.get(k, ()), *file.runs.get(k, ()))]

    def forget(self, keys: Iterable[str] | None = None) -> list[str]:
        """Forget the records of these cells (None: all); return their run ids, also of the file."""
        ids = {str(r.get("id", "")) for r in self.of_cells(keys)}
        for key in list(self._records) if keys is None else keys:
            self._records.pop(key, None)
        self._gone |= ids
        return sorted(ids)

    def path(self, sent: RunnerOptions = NO_OPTIONS, *, ask: bool = False) -> Path | None:
        """Return the path of the notebook, if known; with `ask`, Jupyter servers may be asked."""
        self._named_path = told_path(sent, self._namespace) or self._named_path
        if self._named_path is not None and self._named_path.is_file():
            return self._named_path
        now = time.monotonic()
        renamed = self._served is not None and not self._served.is_file()
        if now >= self._silent_until and (renamed or (ask and now >= self._ask_at)):
            self._served, self._ask_at = served_path(), now + FRESH
            self._silent_until = 0.0 if self._served is not None else now + SILENCE
        return self._served or session_path() or self._only_path

    def unplaced(self, cell: Cell) -> str:
        """Return what to do if the notebook of a cell is unknown, else ""."""
        if self.path(cell.sent) is not None:
            return ""
        paths = self._search.holding(_text(cell)) if cell.kernel else []
        return AMBIGUOUS.format(names=_listed([path.name for path in paths])) if paths else NAMELESS

    def unplayed(self, cell: Cell) -> str:
        """Return, once, that records are not played because copies of a notebook hold the cell."""
        if self._remarked or self.path(cell.sent) is not None or not cell.kernel:
            return ""
        paths = self._search.holding(_text(cell))
        self._remarked = any(file_of(path).runs for path in paths)
        return f"Nothing is replayed. {self.unplaced(cell)}" if self._remarked else ""

    def file(self, sent: RunnerOptions = NO_OPTIONS) -> File:
        """Return what the notebook's file holds."""
        path = self.path(sent, ask=True)
        if path is None:
            return NOTHING
        try:
            status = path.stat()
            stamp = (str(path), status.st_mtime_ns, status.st_size)
        except OSError:
            return NOTHING
        if self._read is None or self._read[0] != stamp:
            self._read = (stamp, file_of(path))
        return self._read[1]

    def before(self, cell: Cell, conversation: str) -> list[Turn]:
        """Return the recorded turns of `conversation` in the cells above, in notebook order."""
        file = self.file(cell.sent)
        own = file.id_of(cell) if cell.id else ""
        if "runs" in cell.sent or own not in file.order:
            return []
        turns, key = [], user_key()
        for above in file.order[: list(file.order).index(own)]:
            known = self._known(CellRecords(file.runs.get(above, ())).rank(key))
            record = next(
                (
                    r
                    for r in known
                    if r.get("conversation", "main") == conversation and is_intact(r)
                ),
                None,
            )
            if record is None or not file.said_by(above, record):
                continue
            events = events_of(record)
            fresh, foreign = bool(record.get("fresh")), not self.owns(record)
            turns += [] if is_map(events) else [Turn(above, events, fresh, foreign)]
        return [t for t in turns if Run(t.events).status == "ok" or Run(t.events).answer]  # type: ignore[arg-type]  # any sequence does

    def _elsewhere(self, cell: Cell) -> Sequence[Record]:
        sent = cell.sent.get("runs")
        if isinstance(sent, list):
            return [Payloads.attach(r) for r in sent if isinstance(r, dict)]
        if cell.kernel and not cell.id:  # front ends that send ids also name the file
            self._look(cell)
        file = self.file(cell.sent)
        known = bool(cell.id) and not file.nameless
        return select_cell_records(
            file.runs,
            cell=file.id_of(cell),
            source=_text(cell),
            occurrence=1 if known else cell.occurrence,
            order=file.order,
        )

    def _look(self, cell: Cell) -> None:
        """Find the notebook of a cell in the kernel's folder if its path is unknown."""
        if self.path(cell.sent, ask=True) != self._only_path:
            return
        paths = self._search.holding(_text(cell))
        if self._only_path not in paths:
            self._only_path = paths[0] if len(paths) == 1 else None

    def _known(self, listed: Iterable[Record]) -> list[Record]:
        """Return each run once, without forgotten ones."""
        by_id: dict[str, Record] = {}
        for record in listed:
            by_id.setdefault(str(record.get("id", "")), record)
        return [record for run, record in by_id.items() if run not in self._gone]


def countersigned_hashes(sent: RunnerOptions) -> frozenset[str]:
    """Return the hashes of records that a signer has signed, as the runner sent them."""
    listed = sent.get("signed")
    return frozenset(map(str, listed)) if isinstance(listed, list) else frozenset()


def _text(cell: Cell) -> str:
    return content_hash(cell.line, cell.body)


def _started_in(namespace: Mapping[str, Any]) -> str:
    """Return the start folder of a shell: the first of IPython's visited folders."""
    visited = namespace.get("_dh")
    return str(visited[0]) if isinstance(visited, list) and visited else os.curdir


def _listed(names: Sequence[str], most: int = 5) -> str:
    """Join names in a sentence."""
    more = [f"{len(names) - most} more"] if len(names) > most else []
    *first, last = [*names[:most], *more]
    return f"{', '.join(first)} and {last}" if first else last


def file_of(path: Path) -> File:
    """Return what a notebook file holds; nothing if it cannot be read."""
    try:
        return _parsed(read_notebook(path), path.stat().st_mtime)
    except (OSError, ValueError, RecursionError):
        return NOTHING


def _parsed(notebook: Mapping[str, Any], saved: float) -> File:
    nameless = not any(cell.get("id") for cell in list_cells(notebook))
    notebook = with_ids(notebook)
    recorded = NotebookRuns(notebook)
    listed = list_cells(notebook)
    code = [(cell_id(c), source_of(c)) for c in listed if c.get("cell_type") == "code"]
    return File(
        runs=recorded.all_by_cell(),
        order=[cell_id(c) for c in listed],
        sources=dict(code),
        cleared=recorded.cleared_cells(),
        tools=tool_names(source for _, source in code),
        excluded=frozenset(
            cell_id(c) for c in listed if EXCLUDE in as_list(metadata_of(c).get("tags"))
        ),
        saved=saved,
        nameless=nameless,
    )
