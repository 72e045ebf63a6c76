"""Lost runs, which only their journals hold: for `%agent recover`.

Why: a killed kernel, or a page that closes before it is saved, leaves a run in its journal only.

Rules
- A run is superseded, and not offered, if its cell has since completed a run, or saved as many
  newer runs as a notebook keeps.
- A taped model call comes back without its exchange: it can be shown, but not replayed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ...errors import UsageError
from ...events import EventLog
from ...record import (
    CellRecords,
    Home,
    Provenance,
    RecoverableRun,
    UserKey,
    read_start_time,
    run_record,
)
from ..notices import format_date
from .library import Library
from .notebook_file import NotebookFile, read_notebook_file

LONGEST_PROMPT = 50  # characters


class LostRuns(msgspec.Struct, frozen=True):
    """The journals of lost runs, newest first: of this notebook, of others, and superseded ones."""

    here: list[RecoverableRun] = []
    others: list[RecoverableRun] = []
    superseded: list[RecoverableRun] = []


def find_lost_runs(
    file: NotebookFile,
    notebook: str,
    known: Iterable[str] = (),
    answered: Mapping[str, float] | None = None,
) -> LostRuns:
    """Return the journals of lost runs.

    `notebook` is the path of this notebook, `file` its content, `known` the ids of runs that are
    not lost. `answered`: when the latest run that ended well in this kernel began, by cell id;
    None: only runs in a file supersede a run.
    """
    home = Home.of_user()
    our_path = home.hide(notebook)  # as journals name it

    @cache
    def read_file(path: str) -> NotebookFile:
        """Return the content of the notebook at a path whose home folder is hidden."""
        if not path or path == our_path:
            return file
        return read_notebook_file(Path(home.show(path)))

    lost = LostRuns()
    # (path, cell) -> the start of its newest run that ended well, as far as read
    answers = {(our_path, cell): _Start(began) for cell, began in (answered or {}).items()}
    for journal in RecoverableRun.list_all(known):  # the newest first
        header = journal.header
        files = (file, read_file(header.notebook))
        recorded = (r.get("id") for each in files for listed in each.runs.values() for r in listed)
        if journal.status == "running" or header.run in recorded:
            continue
        cell = header.notebook, header.cell
        answer = answers.get(cell, _Start())
        is_answered = bool(header.cell) and answer.is_after(journal)
        if is_answered or any(_supersedes(each, journal) for each in files):
            lost.superseded.append(journal)
        elif header.notebook == our_path:
            lost.here.append(journal)
        else:
            lost.others.append(journal)
        if journal.status == "ok" and answered is not None:
            answers[cell] = max(answer, _Start(header.started, header.execution))
    return lost


class _Start(NamedTuple):
    """When a run began (epoch seconds), and the id of its execution."""

    time: float = 0.0
    execution: str = ""

    def is_after(self, journal: RecoverableRun) -> bool:
        """Return whether the run began after a lost one, and outside the lost one's execution."""
        header = journal.header
        # the model calls of one execution do not supersede each other
        is_same = bool(header.execution) and header.execution == self.execution
        return self.time > header.started and not is_same


def _supersedes(file: NotebookFile, journal: RecoverableRun) -> bool:
    """Return whether a file has a newer answer of the cell, or as many newer runs as it keeps."""
    newer = [
        record
        for record in file.runs.get(journal.header.cell, ())
        if _Start(read_start_time(record), str(record.get("execution", ""))).is_after(journal)
    ]
    return len(newer) >= CellRecords.EXECUTIONS or any(r.get("status") == "ok" for r in newer)


def make_journal_table(journals: Iterable[RecoverableRun]) -> list[tuple[str, ...]]:
    """Return the journals as a table; its first row names the columns."""
    rows: list[tuple[str, ...]] = [("run", "when", "status", "notebook", "prompt")]
    for journal in journals:
        header, prompt = journal.header, " ".join(journal.prompt.split())[:LONGEST_PROMPT]
        name = header.notebook.replace("\\", "/").rpartition("/")[2] or "-"
        rows.append((header.run, format_date(header.started), journal.status, name, prompt))
    return rows


def recover_run(journal: RecoverableRun, library: Library) -> tuple[EventLog, dict[str, Any]]:
    """Return the log and the signed record of a journal, and keep the record in `library`.

    Raises UsageError if the journal cannot be read.
    """
    try:
        log = RecoverableRun.recover(journal.path)
    except OSError as fault:
        raise UsageError(
            f"The journal of {journal.header.run} cannot be read: {fault.strerror or fault}."
        ) from None
    header = journal.header
    taped = bool(header.execution)  # only the journal of a taped call names one
    provenance = Provenance(
        cell=header.cell,
        conversation=Provenance.NO_CONVERSATION if taped else header.conversation or "main",
        execution=header.execution,
    )
    record = UserKey.read().sign(run_record(log, provenance, taped=taped))
    if header.cell:
        library.keep_record(header.cell, record)
    return log, record
