"""Lost runs, which only their journals hold: for `%agent recover` and `%agent forget`.

Why: a killed kernel, or a page that closes before it is saved, leaves a run in its journal only.

Rules
- A run is lost if it no longer goes on, and neither this kernel nor its notebook nor this notebook
  holds it.
- A taped model call comes back without its exchange: it can be shown, but not replayed.
- A run is superseded, and not offered, if its cell has since completed a run, or saved as many
  newer runs as a notebook keeps.
- A recovered run's journal stays until it is old or forgotten.
- Forgetting removes a run here at once, and from the file with its next save.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from ...errors import UsageError
from ...events import EventLog
from ...record import (
    CellRecords,
    Home,
    Journal,
    Provenance,
    RecoverableRun,
    read_start_time,
    run_record,
    sign_record,
    user_key,
)
from .library import Library
from .notebook_file import NotebookFile, read_notebook_file

LONGEST = 50  # characters of a prompt


class LostRuns(msgspec.Struct, frozen=True):
    """The journals of lost runs, newest first: of this notebook, of others, and superseded ones."""

    here: Sequence[RecoverableRun] = ()
    others: Sequence[RecoverableRun] = ()
    superseded: Sequence[RecoverableRun] = ()


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
    home = Home(os.path.expanduser("~"))
    here = home.hide(notebook)

    @cache
    def content_of(hidden: str) -> NotebookFile:
        """Return the content of the notebook at a path whose home folder is hidden."""
        if not hidden or hidden == here:
            return file
        return read_notebook_file(Path(home.show(hidden)))

    journals = [j for j in RecoverableRun.list_all(known) if j.status != "running"]
    lost: dict[str, list[RecoverableRun]] = {"here": [], "others": [], "superseded": []}
    # (path, cell) -> when its latest run that ended well began, and in which execution
    latest = {(here, cell): (began, "") for cell, began in (answered or {}).items()}
    for journal in journals:  # the newest first
        header = journal.header
        files = (file, content_of(header.notebook))
        records = (r for content in files for runs in content.runs.values() for r in runs)
        if any(record.get("id") == header.run for record in records):
            continue
        cell = header.notebook, header.cell
        began, execution = latest.get(cell, (0.0, ""))
        newer = header.cell and began > header.started and _differs(journal, execution)
        if newer or any(_supersedes(content, journal) for content in files):
            lost["superseded"].append(journal)
        else:
            lost["here" if header.notebook == here else "others"].append(journal)
        if journal.status == "ok" and answered is not None:
            latest[cell] = max((began, execution), (header.started, header.execution))
    return LostRuns(**lost)


def _supersedes(file: NotebookFile, lost: RecoverableRun) -> bool:
    """Return whether a file has a newer answer of the cell, or as many newer runs as it keeps."""
    header = lost.header
    newer = [
        r
        for r in file.runs.get(header.cell, ())
        if read_start_time(r) > header.started and _differs(lost, str(r.get("execution", "")))
    ]
    return len(newer) >= CellRecords.EXECUTIONS or any(r.get("status") == "ok" for r in newer)


def _differs(lost: RecoverableRun, execution: str) -> bool:
    """Return whether `execution` is not the lost run's own: its calls do not supersede another."""
    return not lost.header.execution or lost.header.execution != execution


def format_date(seconds: float) -> str:
    """Return epoch seconds as local time like `22 Nov 2026 14:05`, `-` for 0."""
    return time.strftime("%d %b %Y %H:%M", time.localtime(seconds)) if seconds else "-"


def journal_table(journals: Iterable[RecoverableRun]) -> list[tuple[str, ...]]:
    """Return the journals as a table; its first row names the columns."""
    rows: list[tuple[str, ...]] = [("run", "when", "status", "notebook", "prompt")]
    for journal in journals:
        header, prompt = journal.header, " ".join(journal.prompt.split())[:LONGEST]
        name = header.notebook.replace("\\", "/").rpartition("/")[2] or "-"
        rows.append((header.run, format_date(header.started), journal.status, name, prompt))
    return rows


def recover_run(lost: RecoverableRun, library: Library) -> tuple[EventLog, dict[str, Any]]:
    """Return the log and the signed record of a journal, and keep the record in `library`.

    Raises UsageError if the journal cannot be read.
    """
    try:
        log = RecoverableRun.recover(lost.path)
    except OSError as fault:
        raise UsageError(
            f"The journal of {lost.header.run} cannot be read: {fault.strerror or fault}."
        ) from None
    header = lost.header
    taped = bool(header.execution)
    provenance = Provenance(
        cell=header.cell,
        conversation=Provenance.NO_CONVERSATION if taped else header.conversation or "main",
        execution=header.execution,
    )
    record = sign_record(run_record(log, provenance, taped=taped), user_key())
    if header.cell:
        library.keep(header.cell, record)
    return log, record


def choose_journals(journals: Iterable[RecoverableRun], prefix: str) -> list[RecoverableRun]:
    """Return the first journal whose run id begins with `prefix`, in a list.

    Raises UsageError if there is none.
    """
    hits = [f for f in journals if f.header.run.startswith(prefix)]
    if not hits:
        raise UsageError(f"There is no lost run {prefix!r}. %agent recover lists them.")
    return hits[:1]


def drop_journals(ids: Iterable[str]) -> int:
    """Remove the journals of runs; return how many there were."""
    return sum(Journal.remove(run) for run in ids if run)
