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

from .ipynb import ENDING, Notebook, all_outputs, cell_id, cells, metadata_of, read, with_ids
from .metadata import stored
from .nbdime_conflicts import unmerged
from .outputs import published
from .payloads import attach
from .ranking import oldest
from .record import KEY, Record

HIDDEN = (".ipynb_checkpoints",)


class Found(NamedTuple):
    """One whole record and the id of the cell it belongs to."""

    cell: str
    record: Record


def notebooks(path: str | os.PathLike[str]) -> list[Path]:
    """Return the notebook files that `path` (a file, folder or glob) means, by name.

    Checkpoints do not count.
    """
    text = os.fspath(path)
    given = Path(text).expanduser()
    if given.is_dir():
        files = given.rglob("*" + ENDING)
    elif given.exists():
        return [given]
    else:
        files = (Path(p) for p in glob.iglob(str(given), recursive=True))
    return sorted({f for f in files if f.is_file() and not any(part in HIDDEN for part in f.parts)})


def records(notebook: Notebook) -> list[Found]:
    """Return the records of a notebook in the order of its cells, each cell's oldest first.

    Cells are named as by `with_ids`.
    """
    notebook = with_ids(notebook)
    found: dict[str, list[Record]] = {cell_id(c): [] for c in cells(notebook)}
    shown = (
        (cell_id(cell), attach(record))
        for cell, output in all_outputs(notebook)
        if (record := published(output)) is not None
    )
    for cell, record in (
        *stored(metadata_of(notebook).get(KEY)),
        *shown,
        *unmerged(notebook),
    ):
        if record not in (listed := found.setdefault(cell, [])):
            listed.append(record)
    return [Found(cell, record) for cell, listed in found.items() for record in oldest(listed)]


def load(path: Path) -> dict[str, Any]:
    """Return a notebook's JSON, with or without cells. Raises OSError and ValueError."""
    value = read(path, path.name)
    if not isinstance(value, dict):
        raise ValueError("not a notebook: its JSON is not an object")  # noqa: TRY004  (what is wrong is the file's content)
    return value
