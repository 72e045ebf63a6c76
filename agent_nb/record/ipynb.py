"""A notebook file as JSON: read with errors that say what is wrong, written whole or not at all.

Why one reader, which needs no Jupyter package: notebooks come from many tools and out of merges,
and all code must take a damaged one alike. Cells of older files, and of Colab, have no ids:
`with_ids` adds them for reading; nothing writes them into the cells.
"""

from __future__ import annotations

import glob
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from errno import EACCES, EBUSY, EPERM, EROFS
from pathlib import Path
from typing import Any

import msgspec

from ..errors import UsageError
from ..wire import as_dict, as_list, loads

NOTEBOOK_SUFFIX = ".ipynb"
HIDDEN_FOLDERS = frozenset({".ipynb_checkpoints"})  # where the Jupyter server keeps copies
MARKER = "<<<<<<<"  # the line by which git begins a conflict
CONFLICT_MESSAGE = (  # the message of MergeConflictError
    "{path} holds a merge conflict that git has left (line {line}: <<<<<<<). Take one side: git checkout --ours {name}, or --theirs. "
    "Or keep the runs of both: jupyter agent-nb git-setup, then git checkout -m {name} merges it again. What is then still marked is text "
    "of cells: edit it."
)
_DEFAULT_LAYOUT = 1, "\n"  # of a new file, and of one without indents
Notebook = Mapping[str, Any]
Cell = dict[str, Any]
Output = dict[str, Any]


class MergeConflictError(ValueError):
    """The file holds an unresolved merge conflict; the message says how to resolve it."""


def find_notebooks(path: str | os.PathLike[str]) -> list[Path]:
    """Return the files that `path` (a file, folder or glob) means, by name.

    Of a folder, the notebooks below it; of a glob, all files that match. A file is taken as it is,
    even a checkpoint; other checkpoints do not count.
    """
    path_or_glob = Path(os.path.expanduser(path))
    if path_or_glob.is_dir():
        files = path_or_glob.rglob("*" + NOTEBOOK_SUFFIX)
    elif path_or_glob.exists():
        return [path_or_glob]
    else:
        files = (Path(p) for p in glob.iglob(str(path_or_glob), recursive=True))
    return sorted({f for f in files if f.is_file() and not HIDDEN_FOLDERS.intersection(f.parts)})


def read_notebook(path: str | Path) -> dict[str, Any]:
    """Return a notebook's JSON, with or without cells.

    Raises OSError, ValueError for text that is not a JSON object, and MergeConflictError.
    """
    nb = _read_json(path)
    if not isinstance(nb, dict):
        raise ValueError("not a notebook: its JSON is not an object")  # noqa: TRY004  (what is wrong is the file's content)
    return nb


def _read_json(path: str | Path) -> Any:
    """Return the JSON of a file. Raises OSError, ValueError and MergeConflictError."""
    text = Path(path).read_bytes().decode("utf-8-sig")
    # msgspec, which is fast, refuses NaN and lone surrogates: `json` reads these below
    with suppress(msgspec.MsgspecError, UnicodeError, RecursionError):
        return loads(text)
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("its JSON is nested too deeply") from None
    except ValueError as fault:
        line = next((n for n, row in enumerate(text.splitlines(), 1) if row.startswith(MARKER)), 0)
        if not line:
            raise
        message = CONFLICT_MESSAGE.format(path=path, name=Path(path).name, line=line)
        raise MergeConflictError(message) from fault


def load_notebook(path: str | Path) -> dict[str, Any]:
    """Return a notebook of format 4. Raises UsageError if the file does not hold one."""
    try:
        nb = _read_json(path)
    except FileNotFoundError:
        raise UsageError(f"File not found: {path}.") from None
    except MergeConflictError as fault:
        raise UsageError(str(fault)) from fault
    except (OSError, ValueError) as fault:
        # the text of an OSError names the file, too
        reason = getattr(fault, "strerror", None) or fault
        raise UsageError(f"{path} cannot be read as a notebook: {reason}") from fault
    if not isinstance(nb, dict) or not isinstance(nb.get("cells"), list):
        raise UsageError(f"{path} is not a notebook of format 4: it has no list of cells.")
    return nb


def save_notebook(nb: dict[str, Any], path: str | Path, *, sort_keys: bool = False) -> None:
    """Write a notebook file atomically, laid out as the existing file; a link to it stays.

    A file that cannot be replaced is written over, if the disk has room, and so is what is not a
    regular file, such as a pipe. Raises OSError.
    """
    path = Path(path)
    is_file = path.is_file()
    indent, line_end = _read_layout(path) if is_file else _DEFAULT_LAYOUT
    text = json.dumps(nb, ensure_ascii=False, indent=indent, sort_keys=sort_keys) + "\n"
    # a lone surrogate has no UTF-8, but its escape in Python is also its escape in JSON
    data = text.replace("\n", line_end).encode("utf-8", "backslashreplace")
    try:
        if is_file or not path.exists():
            _replace_file(Path(os.path.realpath(path)), data)
            return
    except OSError as fault:
        # the folder takes no other file, or the file is mounted alone, as into a container
        if not is_file or fault.errno not in (EACCES, EPERM, EROFS, EBUSY):
            raise
        _extend_file(path, data)
        with path.open("r+b") as file:
            file.write(data)
            file.truncate()
    else:
        path.write_bytes(data)


def _extend_file(path: Path, data: bytes) -> None:
    """Make a file as long as `data`: a full disk then fails before the old content is lost."""
    size = path.stat().st_size
    try:
        with path.open("ab") as file:
            file.write(data[size:])
    except BaseException:
        os.truncate(path, size)
        raise


def _replace_file(target: Path, data: bytes) -> None:
    # a short name, since that of the target may be as long as names can be
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".agent-nb-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        # `mkstemp` lets only the owner read: give the mode of the old file, or of any new file
        os.chmod(name, target.stat().st_mode if target.exists() else 0o666 & ~_read_umask())
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def list_cells(nb: Notebook) -> list[Cell]:
    """Return the cells of a notebook that are JSON objects."""
    return [cell for cell in as_list(nb.get("cells")) if isinstance(cell, dict)]


def with_ids(nb: Notebook) -> Notebook:
    """Return a notebook whose cells all have an id: `nb`, or a shallow copy that shares its parts.

    A cell without an id is named after its place.
    """
    listed = list_cells(nb)
    if all(cell_id(cell) for cell in listed):
        return nb
    used_ids = {cell_id(cell) for cell in listed}
    cells = list(as_list(nb.get("cells")))
    for index, cell in enumerate(cells):
        if isinstance(cell, dict) and not cell_id(cell):
            name = numbered_id(index + 1)
            while name in used_ids:
                name += "-"
            cells[index] = {**cell, "id": name}
    return {**nb, "cells": cells}


def numbered_id(number: int) -> str:
    """Return the id of a cell whose file gives it none; `number` counts from 1."""
    return f"cell-{number}"


def list_outputs(cell: Mapping[str, Any]) -> list[Output]:
    """Return the outputs of a cell that are JSON objects."""
    return [output for output in as_list(cell.get("outputs")) if isinstance(output, dict)]


def all_outputs(nb: Notebook) -> Iterator[tuple[Cell, Output]]:
    """Yield every output of a notebook with its cell."""
    for cell in list_cells(nb):
        for output in list_outputs(cell):
            yield cell, output


def metadata_of(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a notebook, a cell or an output, {} if it has none."""
    return as_dict(part.get("metadata"))


def cell_id(cell: Mapping[str, Any]) -> str:
    """Return the id of a cell, "" if it has none; an id that is a number becomes its digits."""
    value = cell.get("id")
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def source_of(cell: Mapping[str, Any]) -> str:
    """Return the source of a cell, which is a string or a list of lines in its JSON."""
    source = cell.get("source", "")
    return "".join(map(str, source)) if isinstance(source, list) else str(source)


def _read_layout(path: Path) -> tuple[int | str, str]:
    """Return the white space before a file's first key, and its line end."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first_lines = re.match(r"\{(\r?\n)([ \t]+)", file.read(100))
    except (OSError, ValueError):
        return _DEFAULT_LAYOUT
    return (first_lines[2], first_lines[1]) if first_lines else _DEFAULT_LAYOUT


def _read_umask() -> int:
    # the umask can only be read by setting another one
    mask = os.umask(0)
    os.umask(mask)
    return mask
