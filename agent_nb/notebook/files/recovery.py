"""`%agent recover` and `%agent forget`: bringing lost runs back, and removing runs.

Rules
- Offered are journals of runs that neither this kernel nor a notebook file knows: the file they
  were made in, or this one. Those of this notebook come first. A run is not lost if its cell has
  since saved as many newer runs as are kept.
- A recovered run is shown and recorded where it is recovered, and kept for the cell that made it;
  its journal stays until it is old or forgotten.
- Forgetting removes a run from this kernel, its conversations and the journals at once, and from
  the file with its next save.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...events.log import EventLog
from ...record import journal, journal_recovery
from ...record.journal_recovery import Found
from ...record.packing import Home
from ...record.ranking import KEPT, started
from ...record.record import run_record
from ...record.signing import sign, user_key
from .library import File, Library, file_of

LONGEST = 50  # characters of a prompt


def offered(file: File, notebook: str, known: Iterable[str] = ()) -> list[Found]:
    """Return the journals of lost runs, newest first, those of `notebook` before the others.

    notebook: the path of the notebook, and `file` its content.
    known: ids of runs that are not lost.
    """
    home = Home(os.path.expanduser("~"))
    here = home.hide(notebook)
    made_in = cache(
        lambda hidden: file_of(Path(home.show(hidden))) if hidden and hidden != here else file
    )
    found = [f for f in journal_recovery.recoverable(known) if f.status != "running"]
    lost = [
        f
        for f in found
        if not any(_kept(f, notebook) for notebook in (file, made_in(f.header.notebook)))
    ]
    return sorted(lost, key=lambda f: f.header.notebook != here)


def _kept(found: Found, file: File) -> bool:
    """Return whether a file has the run, or enough newer runs of its cell to have dropped it."""
    listed = file.runs.get(found.header.cell, ())
    newer = [r for r in listed if started(r) > found.header.started]
    return len(newer) >= KEPT or any(
        r.get("id") == found.header.run for runs in file.runs.values() for r in runs
    )


def date(seconds: float) -> str:
    """Return epoch seconds as local time like `22 Nov 2026 14:05`, `-` for 0."""
    return time.strftime("%d %b %Y %H:%M", time.localtime(seconds)) if seconds else "-"


def rows(found: Iterable[Found]) -> list[tuple[str, ...]]:
    """Return the journals as rows of a table."""
    title = ("run", "when", "status", "notebook", "prompt")
    return [
        title,
        *(
            (
                f.header.run,
                date(f.header.started),
                f.status,
                f.header.notebook.replace("\\", "/").rpartition("/")[2] or "-",
                " ".join(f.prompt.split())[:LONGEST],
            )
            for f in found
        ),
    ]


def recover(found: Found, library: Library) -> tuple[EventLog, dict[str, Any]]:
    """Return the log and the signed record of a journal, and keep the record in `library`.

    Raises UsageError if the journal cannot be read.
    """
    try:
        log = journal_recovery.recover(found.path)
    except OSError as fault:
        raise UsageError(
            f"The journal of {found.header.run} cannot be read: {fault.strerror or fault}."
        ) from None
    header = found.header
    record = sign(
        run_record(log, cell=header.cell, conversation=header.conversation or "main"), user_key()
    )
    if header.cell:
        library.keep(header.cell, record)
    return log, record


def chosen(found: list[Found], wanted: str) -> list[Found]:
    """Return the journals that `wanted` names: `all`, or the beginning of a run id.

    Raises UsageError if there are none.
    """
    if wanted == "all":
        return found
    hits = [f for f in found if f.header.run.startswith(wanted)]
    if not hits:
        raise UsageError(f"There is no lost run {wanted!r}. %agent recover lists them.")
    return hits[:1]


def drop(ids: Iterable[str]) -> int:
    """Remove the journals of runs; return how many there were."""
    return sum(journal.forget(run) for run in ids if run)
