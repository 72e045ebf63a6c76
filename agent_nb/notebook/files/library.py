"""The records a kernel knows: what it made itself, what our runner sent along, what stands in the
file.

Why three places: the file lags behind what a front end shows until it is saved, a kernel forgets at
a restart, and a runner's kernel should need no file at all.

Rules
- Of a cell's records those count first that this kernel made, then the others as they are `ranked`;
  each run counts once.
- What the cells above have said comes from whole records only; whose they are goes along.
- Without a cell id, a cell is found by the hash of its text and how many cells of that text ran
  before it.
- A run that stands with several cells (a cell was pasted) was said once: by the cell it was made
  in, as long as that one has it.
- The file is read only when it is needed and again only when it has changed; whatever is wrong with
  it is as if there were none.
- Where nobody says which file it is, a kernel takes the one notebook of the folder in which it was
  started that holds the running cell (`beside`), and stays with it as long as that holds the cells
  that run.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...agent.run import Run
from ...record import find as collect
from ...record.agent_cells import content_hash, source_of
from ...record.match import candidates
from ...record.notebook_file import cleared
from ...record.ranking import kept, newest, ranked
from ...record.record import events_of
from ...record.signing import intact, mine, user_key
from ...record.split_merge import renumbered
from ..cell.identity import Cell
from ..conversations import Turn
from .beside import Beside
from .notebook_path import VARIABLE, served_path, session_path, told_path
from .tool_names import tool_names

FRESH = 5.0  # seconds for which the answer of a Jupyter server holds
SILENCE = 60.0  # seconds without asking again, when no Jupyter server knew this kernel
SENT = "runs"  # what our runner sends: the records of the cell
NAMELESS = f"The kernel does not know which notebook it runs: if that is recorded, name the file in {VARIABLE}."
AMBIGUOUS = f"The kernel does not know which notebook it runs, for this cell stands in {{names}}: name the file in {VARIABLE}."
SIGNED = "signed"  # what `test` sends: the hashes of those that a signer has signed


class File(msgspec.Struct, frozen=True):
    """What a notebook file holds of us: records by the cell whose they are, the order of its cells,
    the source of each code cell, which cells have a record but no output, the names that may be
    tools, and when it was saved (epoch s).
    """

    runs: Mapping[str, Sequence[Mapping[str, Any]]] = {}
    order: Sequence[str] = ()
    sources: Mapping[str, str] = {}
    cleared: Sequence[str] = ()
    tools: Collection[str] = ()
    saved: float = 0.0

    def said_by(self, cell: str, record: Mapping[str, Any]) -> bool:
        """Return whether a record of `cell` was made there, or at least not in another cell that
        still has it.
        """
        maker = str(record.get("cell", ""))
        return maker == cell or all(
            r.get("id") != record.get("id") for r in self.runs.get(maker, ())
        )


NOTHING = File()


class Library:
    """The records of one kernel's notebook."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace
        self._made: dict[str, list[Mapping[str, Any]]] = {}
        self._gone: set[str] = set()
        self._read: tuple[tuple[str, int, int], File] | None = None
        self._told: Path | None = None
        self._served: Path | None = None
        self._ask_at = 0.0
        self._silent_until = 0.0
        self._beside = Beside(_started_in(namespace))
        self._found: Path | None = None

    def keep(self, key: str, record: Mapping[str, Any]) -> None:
        """Remember a record that this kernel made for the cell `key`."""
        others = [r for r in self._made.get(key, []) if r.get("id") != record.get("id")]
        self._made[key] = kept([record, *others], user_key())

    def of(self, cell: Cell) -> list[Mapping[str, Any]]:
        """Return the records of a cell in the order in which they count."""
        elsewhere = self._elsewhere(cell)
        elsewhere = (
            ranked(elsewhere, user_key(), countersigned(cell.sent))
            if len(elsewhere) > 1
            else elsewhere
        )
        return self._known([*newest(self._made.get(cell.key, [])), *elsewhere])

    def made(self, record: Mapping[str, Any]) -> bool:
        """Return whether this kernel made a record."""
        name = (record.get("id"), record.get("hash"))
        return any(
            (r.get("id"), r.get("hash")) == name for listed in self._made.values() for r in listed
        )

    def owns(self, record: Mapping[str, Any]) -> bool:
        """Return whether this kernel made a record, or this user."""
        return self.made(record) or mine(record, user_key())

    def forget(self, keys: Iterable[str] | None = None) -> list[str]:
        """Forget the records of these cells (None: of all); return the ids of their runs, those in
        the file included.
        """
        file = self.file()
        chosen = [*self._made, *file.runs] if keys is None else list(keys)
        ids = {
            str(r.get("id", ""))
            for key in chosen
            for r in (*self._made.pop(key, ()), *file.runs.get(key, ()))
        }
        self._gone |= ids
        return sorted(ids)

    def path(self, sent: Mapping[str, Any] = {}, *, ask: bool = False) -> Path | None:
        """Return the path of the notebook, if it can be known; `ask`: a Jupyter server may be
        asked.
        """
        self._told = told_path(sent, self._namespace) or self._told
        if self._told is not None and self._told.is_file():
            return self._told
        now = time.monotonic()
        renamed = self._served is not None and not self._served.is_file()
        if now >= self._silent_until and (renamed or (ask and now >= self._ask_at)):
            self._served, self._ask_at = served_path(), now + FRESH
            self._silent_until = 0.0 if self._served is not None else now + SILENCE
        return self._served or session_path() or self._found

    def unplaced(self, cell: Cell) -> str:
        """Return "" where the notebook of a cell is known, else in words what to do."""
        if self.path(cell.sent) is not None:
            return ""
        found = self._beside.holding(_text(cell)) if cell.kernel else []
        return AMBIGUOUS.format(names=_listed([path.name for path in found])) if found else NAMELESS

    def file(self, sent: Mapping[str, Any] = {}) -> File:
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
            self._read = (stamp, read(path))
        return self._read[1]

    def before(self, cell: Cell, conversation: str) -> list[Turn]:
        """Return the turns of `conversation` that the cells above `cell` have on record, in the
        order of the notebook.
        """
        file = self.file(cell.sent)
        if SENT in cell.sent or cell.id not in file.order:
            return []
        turns, key = [], user_key()
        for above in file.order[: list(file.order).index(cell.id)]:
            known = self._known(ranked(file.runs.get(above, ()), key))
            record = next(
                (r for r in known if r.get("conversation", "main") == conversation and intact(r)),
                None,
            )
            if record is not None and file.said_by(above, record):
                turns.append(
                    Turn(
                        above,
                        events_of(record),
                        bool(record.get("fresh")),
                        foreign=not self.owns(record),
                    )
                )
        return [t for t in turns if Run(t.events).status == "ok" or Run(t.events).answer]  # type: ignore[arg-type]  # any sequence does

    def _elsewhere(self, cell: Cell) -> Sequence[Mapping[str, Any]]:
        sent = cell.sent.get(SENT)
        if isinstance(sent, list):
            return [r for r in sent if isinstance(r, dict)]
        if cell.kernel and not cell.id:  # who sends ids says the file, too
            self._look(cell)
        file = self.file(cell.sent)
        return candidates(
            file.runs,
            cell=cell.id,
            source=_text(cell),
            occurrence=_occurrence(cell),
            order=file.order,
        )

    def _look(self, cell: Cell) -> None:
        """Find the notebook of a cell in the kernel's folder, where nobody says which it is."""
        if self.path(cell.sent, ask=True) != self._found:
            return
        found = self._beside.holding(_text(cell))
        if self._found not in found:
            self._found = found[0] if len(found) == 1 else None

    def _known(self, found: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return each run once, without those that were forgotten."""
        by_id: dict[str, Mapping[str, Any]] = {}
        for record in found:
            by_id.setdefault(str(record.get("id", "")), record)
        return [record for run, record in by_id.items() if run not in self._gone]


def countersigned(sent: Mapping[str, Any]) -> frozenset[str]:
    """Return the hashes of the records that a signer has signed, as our runner sent them."""
    listed = sent.get(SIGNED)
    return frozenset(map(str, listed)) if isinstance(listed, list) else frozenset()


def _text(cell: Cell) -> str:
    return content_hash(cell.line, cell.body)


def _started_in(namespace: Mapping[str, Any]) -> str:
    """Return the folder in which a shell was started: IPython's list of visited folders begins with
    it.
    """
    visited = namespace.get("_dh")
    return str(visited[0]) if isinstance(visited, list) and visited else os.curdir


def _listed(names: Sequence[str], most: int = 5) -> str:
    """Return names in words."""
    more = [f"{len(names) - most} more"] if len(names) > most else []
    *first, last = [*names[:most], *more]
    return f"{', '.join(first)} and {last}" if first else last


def _occurrence(cell: Cell) -> int:
    last = cell.key.rpartition(":")[2]
    return int(last) if not cell.id and last.isdigit() else 1


def read(path: Path) -> File:
    """Return what a notebook file holds, nothing when it cannot be read."""
    try:
        return _parsed(json.loads(path.read_bytes()), path.stat().st_mtime)
    except (OSError, ValueError, RecursionError):
        return NOTHING


def _parsed(notebook: Any, saved: float) -> File:
    if not isinstance(notebook, dict):
        return NOTHING
    runs: dict[str, list[Mapping[str, Any]]] = {}
    for found in collect.records(notebook):
        runs.setdefault(found.cell, []).append(found.record)
    cells = notebook.get("cells")
    cells = [c for c in cells if isinstance(c, dict)] if isinstance(cells, list) else []
    code = [(str(c.get("id", "")), source_of(c)) for c in cells if c.get("cell_type") == "code"]
    tools = tool_names(source for _, source in code)
    order, without_output = (
        [str(c.get("id", "")) for c in cells],
        cleared({**notebook, "cells": cells}),
    )
    return File(renumbered(cells, runs), order, dict(code), without_output, tools, saved)
