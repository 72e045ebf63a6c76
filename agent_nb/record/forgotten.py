"""`%agent forget`: runs that are taken out of the notebook and stay out.

The command leaves run ids in its output (`RunNumbers.FORGET`). Saving removes those runs wherever
they stand, and keeps marks of the ids in the metadata (`metadata.FORGOTTEN`), because a front end
sends the records that it once loaded with every save until the page is loaded again. A mark is a
digest of the id.
"""

from __future__ import annotations

from typing import Any

from ..wire import as_dict, as_list
from .ipynb import Notebook, all_outputs
from .metadata import FORGOTTEN, Runs
from .outputs import RunNumbers
from .packing import hash_text
from .record import RECORD_MIME

REMEMBERED = 500  # marks that are kept


def take_forgotten(nb: Notebook, *saved: Any) -> list[str]:
    """Return the marks of forgotten runs, those of earlier saves first; clean the outputs of them.

    `saved` are versions of our metadata.
    """
    marks = [mark for value in saved for mark in _texts(as_dict(value).get(FORGOTTEN))]
    for _, output in all_outputs(nb):
        marks += map(_mark, _texts(RunNumbers.of(output).get(RunNumbers.FORGET)))
    for _, output in all_outputs(nb) if marks else ():
        value = as_dict(output.get("data")).get(RECORD_MIME)
        named = _texts([as_dict(value).get("id"), as_dict(value).get("ref")])
        if any(_mark(run) in marks for run in named):
            del output["data"][RECORD_MIME]
    return list(dict.fromkeys(marks))[-REMEMBERED:]


def remove_forgotten(runs: Runs, marks: list[str]) -> Runs:
    """Return the runs that have none of these marks."""
    if not marks:
        return runs
    return {
        cell: [r for r in listed if _mark(r["id"]) not in marks] for cell, listed in runs.items()
    }


def _mark(run: str) -> str:
    return hash_text(run, like="")[:16]


def _texts(value: Any) -> list[str]:
    return [text for text in as_list(value) if isinstance(text, str)]
