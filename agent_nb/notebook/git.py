"""Notebooks with records in git: a diff that people can read, a merge that keeps the runs of both sides.

Why: a record is long lines of JSON. Without these drivers a diff shows them, and two people who ran different cells get a conflict.

Rules
- The diff shows cells and what was said, called and answered; ids, times, tokens and outputs do not appear.
- The merge takes the records out, lets git merge the rest, and puts the runs of both sides back: what one side added is there, what one
  side removed is gone. If git finds a conflict, it is left in the whole file as git writes it.
- Set up per repository: the commands go into its configuration, one line into `.gitattributes`.
- nbstripout without `--keep-id` gives every cell another id at each commit: records survive that (`heirs`), and it is said to whoever
  has it set up so.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import countersign
from ..collect import records
from ..compare import items
from ..errors import UsageError
from ..record import KEY, MIME, VERSION, events_of, published
from . import metadata
from .transform import source_of

DRIVER = "agent-nb"
PATTERN = "*.ipynb"
KEEP_ID = "--keep-id"
HOOKS = ".pre-commit-config.yaml"
Runs = dict[str, list[dict[str, Any]]]


def text(nb: Mapping[str, Any]) -> str:
    """Return a notebook as the lines that a diff compares."""
    return "\n".join(_lines(nb)) + "\n"


def _lines(nb: Mapping[str, Any]) -> Iterator[str]:
    found = records(nb)
    for number, cell in enumerate((c for c in nb.get("cells", []) if isinstance(c, dict)), 1):
        name = str(cell.get("id", ""))
        yield f"=== {cell.get('cell_type', '?')} cell {name or number}"
        yield from source_of(cell).splitlines()
        for item in found:
            if item.cell == name and name:
                yield from _run(item.record)
    for item in found:
        if item.cell not in {c.get("id") for c in nb.get("cells", []) if isinstance(c, dict)}:
            yield f"=== of a cell that is gone: {item.cell}"
            yield from _run(item.record)


def _run(record: Mapping[str, Any]) -> Iterator[str]:
    yield f"--- run, {record.get('status', '?')}"
    for item in items(events_of(record)):
        yield f"{item.head}:"
        yield from (f"    {line}" for line in item.body.splitlines())


def merge(base: Path, ours: Path, theirs: Path) -> bool:
    """Merge notebook files as a git merge driver does: the result replaces `ours`; return whether there was no conflict.

    A file that is no notebook is merged as text. Raises UsageError when git is not installed.
    """
    sides = [_read(path) for path in (base, ours, theirs)]
    if all(side is not None for side in sides):
        notebooks = [side for side in sides if side is not None]
        merged = _merged(*notebooks)
        if merged is not None:
            ours.write_text(merged, encoding="utf-8", newline="\n")
            return True
    return _merge_file([ours, base, theirs], write=True) == 0


def _merged(base: dict[str, Any], ours: dict[str, Any], theirs: dict[str, Any]) -> str | None:
    """Return the merged notebook, or None when git finds a conflict outside the records."""
    kept = _three_way(*(metadata.records(nb) for nb in (base, ours, theirs)))
    signatures = countersign.merged(*((nb.get("metadata") or {}).get(KEY) for nb in (ours, theirs)))
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, nb in (("ours", ours), ("base", base), ("theirs", theirs)):
            _bare(nb)
            paths.append(Path(folder) / name)
            paths[-1].write_text(_dump(nb), encoding="utf-8", newline="\n")
        if _merge_file(paths, write=True):
            return None
        try:
            nb = json.loads(paths[0].read_text(encoding="utf-8"))
        except ValueError:
            return None
    if kept:
        nb.setdefault("metadata", {})[KEY] = {"version": VERSION, "runs": kept, countersign.SIGNATURES: signatures}
        metadata.lift(nb)
    return _dump(nb)


def _bare(nb: dict[str, Any]) -> None:
    """Take the records out of a notebook; references to them stay."""
    (nb.get("metadata") or {}).pop(KEY, None)
    for cell in nb["cells"]:
        for output in (cell.get("outputs") or []) if isinstance(cell, dict) else []:
            if (record := published(output)) is not None:
                output["data"][MIME] = {"version": VERSION, "ref": record["id"]}


def _three_way(base: Runs, ours: Runs, theirs: Runs) -> Runs:
    """Return the runs of both sides without those that one side has removed."""
    before, mine, yours = ({r["id"] for listed in side.values() for r in listed} for side in (base, ours, theirs))
    gone = before - (mine & yours)
    cells = {cell: [*ours.get(cell, []), *theirs.get(cell, [])] for cell in (*ours, *theirs)}
    return {cell: kept for cell, listed in cells.items() if (kept := [r for r in listed if r["id"] not in gone])}


def _merge_file(paths: Sequence[Path], *, write: bool) -> int:
    command = ["git", "merge-file", "-q", *([] if write else ["-p"]), *map(str, paths)]
    return _git(command).returncode


def setup(folder: Path, *, filtered: bool = False) -> list[str]:
    """Install the drivers in the repository of `folder` and return what was done; `filtered` keeps records out of commits altogether.

    Raises UsageError when there is no repository, or no git.
    """
    found = _git(["git", "-C", str(folder), "rev-parse", "--show-toplevel"])
    if found.returncode:
        raise UsageError(f"{folder} is in no git repository.")
    root = Path(found.stdout.strip())
    command = f'"{sys.executable}" -P -m agent_nb'  # -P: git runs it in the repository, from where nothing is to be imported
    settings = {
        f"diff.{DRIVER}.textconv": f"{command} git-text",
        f"merge.{DRIVER}.name": "notebooks with recorded runs",
        f"merge.{DRIVER}.driver": f"{command} git-merge %O %A %B",
        **({f"filter.{DRIVER}.clean": f"{command} strip"} if filtered else {}),
    }
    for name, value in settings.items():
        if _git(["git", "-C", str(root), "config", name, value]).returncode:
            raise UsageError(f"git could not set {name} in {root}.")
    line = f"{PATTERN} diff={DRIVER} merge={DRIVER}" + (f" filter={DRIVER}" if filtered else "")
    done = [*(f"set {name}" for name in settings), _attribute(root / ".gitattributes", line)]
    return [*done, *(f"{said}: add {KEEP_ID}" for said in renumbering(root))]


def renumbering(folder: Path) -> list[str]:
    """Return what sets nbstripout up, for the repository of `folder`, so that it gives cells other ids; nothing without git."""
    try:
        clean = _git(["git", "-C", str(folder), "config", "filter.nbstripout.clean"]).stdout
        root = _git(["git", "-C", str(folder), "rev-parse", "--show-toplevel"]).stdout.strip()
    except UsageError:
        return []
    hooks = Path(root or folder) / HOOKS
    listed = hooks.read_text(encoding="utf-8", errors="replace") if hooks.is_file() else ""
    places = {"git's filter nbstripout": clean.strip(), HOOKS: listed if "nbstripout" in listed else ""}
    effect = "gives all cells new ids, so that their records are found by the texts of the cells only"
    return [f"{place} {effect}" for place, text in places.items() if text and KEEP_ID not in text]


def _attribute(path: Path, line: str) -> str:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if line in lines:
        return f"{path.name} has the line already"
    kept = [other for other in lines if not (other.startswith(f"{PATTERN} ") and f"={DRIVER}" in other)]
    path.write_text("\n".join([*kept, line]) + "\n", encoding="utf-8", newline="\n")
    return f"added to {path.name}: {line}"


def _git(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  (git, with paths)
    except FileNotFoundError:
        raise UsageError("git is not installed, or not on the PATH.") from None


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return metadata.load(path)
    except UsageError:
        return None


def _dump(nb: Mapping[str, Any]) -> str:
    return json.dumps(nb, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
