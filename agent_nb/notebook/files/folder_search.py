"""Find the notebooks of a folder that hold a cell, for kernels that were given no path.

Why: `jupyter execute`, papermill and nbconvert start a kernel in the notebook's folder and send
only the text of the cells. So a notebook holds a cell if one of its code cells has the same text. A
copy that a runner writes counts only if no other notebook holds the cell.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec

from ...record import NOTEBOOK_SUFFIX, RunNumbers, list_cells, source_hash, source_of
from ...wire import as_dict

COPY_SUFFIX = ".run.ipynb"  # of the copies that our runner writes
MOST_NOTEBOOKS = 300
MOST_BYTES = 200_000_000  # of all notebooks
Stamp = tuple[int, int]  # the time of a file in ns, and its size


class Content(msgspec.Struct, frozen=True):
    """The hashes of a notebook's code cells, and whether a runner copied it from another."""

    stamp: Stamp
    texts: frozenset[str] = frozenset()
    is_copy: bool = False


class FolderSearch:
    """The notebooks of one folder."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._contents: dict[Path, Content] = {}

    def find_holding(self, text: str) -> list[Path]:
        """Return the notebooks that hold a cell with this hash, by name."""
        matches = {path: c for path, c in self._read_all().items() if text in c.texts}
        return [path for path, c in matches.items() if not c.is_copy] or list(matches)

    def _read_all(self) -> dict[Path, Content]:
        """Return the content of each notebook, {} if there is too much to read."""
        stamps = _read_stamps(self._folder)
        if len(stamps) > MOST_NOTEBOOKS or sum(size for _, size in stamps.values()) > MOST_BYTES:
            return {}
        unchanged = {p: c for p, c in self._contents.items() if c.stamp == stamps.get(p)}
        self._contents = {p: unchanged.get(p) or _read_content(p, s) for p, s in stamps.items()}
        return self._contents


def _read_stamps(folder: Path) -> dict[Path, Stamp]:
    """Return the stamp of each notebook in a folder, by name; of at most MOST_NOTEBOOKS + 1."""
    stamps: dict[Path, Stamp] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if (
                    entry.name.endswith(NOTEBOOK_SUFFIX)
                    and not entry.name.startswith(".")
                    and entry.is_file()
                    and len(stamps) <= MOST_NOTEBOOKS
                ):
                    status = entry.stat()
                    stamps[Path(entry.path)] = (status.st_mtime_ns, status.st_size)
    except OSError:
        return {}
    return dict(sorted(stamps.items()))


def _read_content(path: Path, stamp: Stamp) -> Content:
    """Return the content of a notebook; empty if the file cannot be read or is not a notebook."""
    try:
        notebook = json.loads(path.read_bytes())
        code = (c for c in list_cells(notebook) if c.get("cell_type") == "code")
        texts = frozenset(source_hash(source_of(c)) for c in code)
        return Content(stamp, texts, path.name.endswith(COPY_SUFFIX) or _is_copy(notebook))
    except Exception:  # a file of that name may hold anything
        return Content(stamp)


def _is_copy(notebook: dict[str, Any]) -> bool:
    """Return whether papermill is writing the notebook, or all runs that it shows are replays."""
    papermill = as_dict(notebook["metadata"].get("papermill"))
    if papermill.get("start_time") and not papermill.get("end_time"):
        return True
    all_numbers = [numbers for _, numbers in RunNumbers.list_all(notebook)]
    return bool(all_numbers) and all(numbers.get("replayed") for numbers in all_numbers)
