"""`%agent recover` and `%agent forget`: records that were lost, and records that are to go.

Rules
- What is offered are journals of runs that neither this kernel nor the notebook's file knows; those of this notebook come first.
- A recovered run is shown and recorded where it is recovered, and known for the cell it was made in; its journal stays until it is
  old or forgotten.
- Forgetting removes a run from this kernel, its conversations and the journals at once, and from the file with its next save.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from typing import Any

from .. import journal
from ..errors import UsageError
from ..journal import Found
from ..log import EventLog
from ..portable import Home
from ..record import run_record
from ..signing import sign, user_key
from .library import Library

LONGEST = 50  # characters of a prompt


def offered(known: Iterable[str], notebook: str) -> list[Found]:
    """Return the journals of runs that are not `known` and not going on, newest first, those of `notebook` before the others."""
    here = Home(os.path.expanduser("~")).hide(notebook)
    found = [f for f in journal.recoverable(known) if f.status != "running"]
    return sorted(found, key=lambda f: f.header.notebook != here)


def rows(found: Iterable[Found]) -> list[tuple[str, ...]]:
    """Return the journals as rows of a table."""
    title = ("run", "when", "status", "notebook", "prompt")
    return [title, *(
        (
            f.header.run, time.strftime("%d %b %Y %H:%M", time.localtime(f.header.started)), f.status,
            f.header.notebook.replace("\\", "/").rpartition("/")[2] or "-", " ".join(f.prompt.split())[:LONGEST],
        )
        for f in found
    )]  # fmt: skip


def recover(found: Found, library: Library) -> tuple[EventLog, dict[str, Any]]:
    """Return the log and the signed record of a journal, and let `library` know it. Raises UsageError when it cannot be read."""
    try:
        log = journal.recover(found.path)
    except OSError as fault:
        raise UsageError(f"The journal of {found.header.run} cannot be read: {fault.strerror or fault}.") from None
    header = found.header
    record = sign(run_record(log, cell=header.cell, conversation=header.conversation or "main"), user_key())
    if header.cell:
        library.keep(header.cell, record)
    return log, record


def chosen(found: list[Found], wanted: str) -> list[Found]:
    """Return the journals that `wanted` names: `all`, or the beginning of a run id. Raises UsageError when there is none."""
    if wanted == "all":
        return found
    hits = [f for f in found if f.header.run.startswith(wanted)]
    if not hits:
        raise UsageError(f"There is no lost run {wanted!r}. %agent recover lists them.")
    return hits[:1]


def drop(ids: Iterable[str]) -> int:
    """Remove the journals of runs; return how many there were."""
    return sum(journal.forget(run) for run in ids if run)
