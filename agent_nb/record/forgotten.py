"""`%agent forget`: runs that are removed from the notebook and stay removed.

Why marks (digests of run ids): until its page is loaded again, a front end sends the records that
it once loaded with every save. Without its mark a forgotten run would come back.
"""

from __future__ import annotations

from typing import Any

from ..wire import as_dict
from .ipynb import Notebook, all_outputs
from .metadata import FORGOTTEN, Runs, read_texts
from .outputs import RunNumbers
from .packing import hash_text
from .record import RECORD_MIME

MOST_MARKS = 500  # the most marks that are kept


def erase_forgotten(nb: Notebook, *saved: Any) -> list[str]:
    """Remove forgotten runs from the outputs; return the newest `MOST_MARKS` marks, oldest first.

    `saved`: versions of our metadata, which hold the marks of earlier saves.
    """
    marks = [mark for value in saved for mark in read_texts(as_dict(value).get(FORGOTTEN))]
    for _, output in all_outputs(nb):
        marks += map(_make_mark, read_texts(RunNumbers.of(output).get(RunNumbers.FORGET)))
    if not marks:
        return []
    for _, output in all_outputs(nb):
        value = as_dict(output.get("data")).get(RECORD_MIME)
        run_ids = read_texts([as_dict(value).get("id"), as_dict(value).get("ref")])
        if any(_make_mark(run) in marks for run in run_ids):
            del output["data"][RECORD_MIME]
    return list(dict.fromkeys(marks))[-MOST_MARKS:]


def remove_forgotten(runs: Runs, marks: list[str]) -> Runs:
    """Return the runs, except those whose id has one of these marks."""
    if not marks:
        return runs
    return {
        cell: [r for r in listed if _make_mark(r["id"]) not in marks]
        for cell, listed in runs.items()
    }


def _make_mark(run: str) -> str:
    # the scheme without a prefix, so that all 16 characters are digits of the hash
    return hash_text(run, like="")[:16]
