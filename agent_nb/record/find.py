"""Every recorded run of a notebook, a folder or a glob, as a sequence that becomes a DataFrame.

    runs("notebooks/**/*.ipynb").to_frame(RUNS)

Why plain JSON: reading records needs no Jupyter, and a broken notebook among a hundred must not
stop the others.

Rules
- Records count wherever they stand, in the notebook's metadata, in an output or where nbdime has
  put them; a run that stands in several places counts once (the ids of imported runs are somebody
  else's, so equal ids alone do not make a run the same).
- Order: files by name, cells as in the notebook, runs by their start. Cells that are gone come
  after the others.
- Nothing about a file raises: what could not be read is in `problems`, as `path: reason`.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .ranking import oldest
from .record import KEY, attach, published

if TYPE_CHECKING:
    pass

ENDING = ".ipynb"
HIDDEN = (".ipynb_checkpoints",)
# in the metadata of a notebook: the changes of both sides that nbdime could not merge
NBDIME = "nbdime-conflicts"
MARKER = "<<<<<<<"
CONFLICT = (
    "{path} holds a merge conflict that git has left (line {line}: <<<<<<<). Take one side: git checkout --ours {name}, or --theirs. "
    "Or keep the runs of both: jupyter agent-nb git-setup, then git checkout -m {name} merges it again. What is then still marked is text "
    "of cells: edit it."
)


class Found(NamedTuple):
    """One record as it stands in a file, its payloads attached."""

    cell: str
    record: Mapping[str, Any]


def notebooks(path: str | os.PathLike[str]) -> list[Path]:
    """Return the notebook files that `path` means, by name; checkpoints do not count."""
    text = os.fspath(path)
    given = Path(text).expanduser()
    if given.is_dir():
        files = given.rglob("*" + ENDING)
    elif given.exists():
        return [given]
    else:
        files = (Path(p) for p in glob.iglob(str(given), recursive=True))
    return sorted({f for f in files if f.is_file() and not any(part in HIDDEN for part in f.parts)})


def records(notebook: Mapping[str, Any]) -> list[Found]:
    """Return the records of a notebook's JSON, in the order of its cells, each cell's oldest first,
    equal ones of a cell once.
    """
    cells = [c for c in _list(notebook.get("cells")) if isinstance(c, dict)]
    found: dict[str, list[Mapping[str, Any]]] = {str(c.get("id", "")): [] for c in cells}
    for cell, record in (*_lifted(notebook), *_in_outputs(cells), *unmerged(notebook)):
        if record not in (listed := found.setdefault(cell, [])):
            listed.append(record)
    return [Found(cell, record) for cell, listed in found.items() for record in oldest(listed)]


def _lifted(notebook: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    ours = _dict(_dict(notebook.get("metadata")).get(KEY))
    payloads = _dict(ours.get("payloads"))
    for cell, listed in _dict(ours.get("runs")).items():
        for record in _list(listed):
            if isinstance(record, dict):
                yield str(cell), attach(record, payloads)


def unmerged(
    notebook: Mapping[str, Any], *, take: bool = False
) -> list[tuple[str, dict[str, Any]]]:
    """Return cell and record of what nbdime has kept aside, because both sides of a merge had a new
    run of one cell; `take` it out.
    """
    metadata = _dict(notebook.get("metadata"))
    aside = _dict(metadata.get(NBDIME))
    ours = [
        entry for side in aside.values() for entry in _list(side) if _dict(entry).get("key") == KEY
    ]
    if take and ours:
        left = {
            side: [e for e in _list(entries) if e not in ours] for side, entries in aside.items()
        }
        metadata.pop(NBDIME)
        metadata |= {NBDIME: left} if any(left.values()) else {}
    found = [(path, value) for entry in ours for path, value in _added(entry)]
    payloads = {
        **_dict(_dict(metadata.get(KEY)).get("payloads")),
        **{p[2]: value for p, value in found if p[1] == "payloads"},
    }
    listed = [(p[2], value) for p, value in found if p[1] == "runs"]
    return [(cell, attach(record, payloads)) for cell, record in listed if isinstance(record, dict)]


def _added(change: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield what a change in nbdime's form adds to the runs of a cell, or to the payloads, with its
    path.
    """
    described = isinstance(change, dict) and isinstance(change.get("op"), str)
    if described and isinstance(change.get("key"), str):
        path = (*path, change["key"])
    if described:
        for part in (change.get("diff"), change.get("value"), change.get("valuelist")):
            yield from _added(part, path)
    elif isinstance(change, list):
        for part in change:
            yield from _added(part, path)
    elif len(path) == 3 and change is not None:
        yield path, change
    elif isinstance(change, dict) and len(path) < 3:
        for key, part in change.items():
            yield from _added(part, (*path, key))


def _in_outputs(cells: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for cell in cells:
        for output in _list(cell.get("outputs")):
            if (record := published(output)) is not None:
                yield str(cell.get("id", "")) or str(record.get("cell", "")), record


def marked(text: str, path: str | os.PathLike[str]) -> str:
    """Return what is wrong with a file in which git has left a merge conflict, and what to do ("":
    it has left none).
    """
    line = next((n for n, said in enumerate(text.splitlines(), 1) if said.startswith(MARKER)), 0)
    return CONFLICT.format(path=path, name=Path(path).name, line=line) if line else ""


def load(path: Path) -> Mapping[str, Any]:
    """Return a notebook's JSON. Raises OSError, and ValueError that says what is wrong."""
    text = path.read_bytes().decode("utf-8")
    try:
        value = json.loads(text)
    except ValueError as fault:
        raise ValueError(marked(text, path.name) or str(fault)) from fault
    if not isinstance(value, dict):
        raise ValueError("not a notebook: its JSON is not an object")  # noqa: TRY004  (what is wrong is the file's content)
    return value


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
