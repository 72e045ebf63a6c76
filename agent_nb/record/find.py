"""Every recorded run of a notebook, wherever it stands, and the notebooks that a path means.

Why plain JSON: reading records needs no Jupyter.

Rules
- Records count in the notebook's metadata, in an output, and where nbdime set them aside; equal
  records of one cell count once.
- Order: cells as in the notebook, then cells that are gone; runs by their start.
"""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Any, NamedTuple

from .ipynb import (
    NOTEBOOK_SUFFIX,
    Notebook,
    all_outputs,
    cell_id,
    list_cells,
    metadata_of,
    read_file_json,
    with_ids,
)
from .metadata import read_stored_records
from .nbdime_conflicts import list_unmerged_records
from .outputs import read_published_record
from .packing import Payloads
from .ranking import CellRecords
from .record import METADATA_KEY, Record

HIDDEN = (".ipynb_checkpoints",)


class CellRecord(NamedTuple):
    """One whole record and the id of the cell it belongs to."""

    cell: str
    record: Record


def find_notebooks(path: str | os.PathLike[str]) -> list[Path]:
    """Return the notebook files that `path` (a file, folder or glob) means, by name.

    Checkpoints do not count.
    """
    text = os.fspath(path)
    path_or_glob = Path(text).expanduser()
    if path_or_glob.is_dir():
        files = path_or_glob.rglob("*" + NOTEBOOK_SUFFIX)
    elif path_or_glob.exists():
        return [path_or_glob]
    else:
        files = (Path(p) for p in glob.iglob(str(path_or_glob), recursive=True))
    return sorted({f for f in files if f.is_file() and not any(part in HIDDEN for part in f.parts)})


def find_records(notebook: Notebook) -> list[CellRecord]:
    """Return the records of a notebook in the order of its cells, each cell's oldest first.

    Cells are named as by `with_ids`.
    """
    notebook = with_ids(notebook)
    by_cell: dict[str, list[Record]] = {cell_id(c): [] for c in list_cells(notebook)}
    shown = (
        (cell_id(cell), Payloads.attach(record))
        for cell, output in all_outputs(notebook)
        if (record := read_published_record(output)) is not None
    )
    for cell, record in (
        *read_stored_records(metadata_of(notebook).get(METADATA_KEY)),
        *shown,
        *list_unmerged_records(notebook),
    ):
        if record not in (listed := by_cell.setdefault(cell, [])):
            listed.append(record)
    return [
        CellRecord(cell, record)
        for cell, listed in by_cell.items()
        for record in CellRecords(listed).oldest_first()
    ]


def read_notebook(path: Path) -> dict[str, Any]:
    """Return a notebook's JSON, with or without cells. Raises OSError and ValueError."""
    value = read_file_json(path, path.name)
    if not isinstance(value, dict):
        raise ValueError("not a notebook: its JSON is not an object")  # noqa: TRY004  (what is wrong is the file's content)
    return value
