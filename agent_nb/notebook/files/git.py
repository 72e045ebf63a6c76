"""Notebooks with records in git: a diff that people can read, a merge that keeps the runs of both
sides.

Why: a record is long lines of JSON. Without these drivers a diff shows them, and two people who ran
different cells get a conflict.

Rules
- The diff shows cells and what was said, called and answered in the newest execution of each; ids,
  times, tokens, addresses in reprs and outputs do not appear. What a sub-agent did stands before
  the result of its call, whatever ran beside it.
- The merge takes the runs of both sides: what one side added is there, what one side removed is
  gone. Each cell's outputs come whole from one side (`branches`). The rest is git's; where it finds
  a conflict, the markers stand around that alone.
- A pager may show it: control characters become visible.
- Set up per repository: the commands go into its configuration, one line into `.gitattributes`.
- nbstripout without `--keep-id` gives every cell another id at each commit: records survive that
  (`heirs`), and it is said to whoever has it set up so.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...events import Call, Event, Result
from ...record import ipynb, metadata, notebook_file
from ...record.diff import items
from ...record.find import records
from ...record.ipynb import source_of
from ...record.ranking import execution, newest, oldest, ordinal
from ...record.record import KEY, events_of
from ...record.split_merge import renumbered
from ..notices import printable
from .branches import agree

DRIVER = "agent-nb"
PATTERN = "*.ipynb"
DEEPEST = 20  # agents within agents whose events are put in order
KEEP_ID = "--keep-id"
HOOKS = ".pre-commit-config.yaml"
_ADDRESS = re.compile(r"(?<= at )0x[0-9a-fA-F]+(?=>)")


def text(nb: Mapping[str, Any]) -> str:
    """Return a notebook as the lines that a diff compares."""
    return printable("\n".join(_lines(nb))) + "\n"


def _lines(nb: Mapping[str, Any]) -> Iterator[str]:
    cells = [c for c in nb.get("cells", []) if isinstance(c, dict)]
    listed: dict[str, list[Mapping[str, Any]]] = {}
    for item in records(nb):
        listed.setdefault(item.cell, []).append(item.record)
    found = renumbered(cells, listed)
    for number, cell in enumerate(cells, 1):
        name = str(cell.get("id", ""))
        yield f"=== {cell.get('cell_type', '?')} cell {name or number}"
        yield from source_of(cell).splitlines()
        for record in _latest(found.pop(name, ())):
            yield from _run(record)
    for name, left in found.items():
        if left:
            yield f"=== of a cell that is gone: {name}"
            yield from (line for record in _latest(left) for line in _run(record))


def _latest(listed: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the records of the newest execution, in the order in which their runs began."""
    of = execution(newest(listed)[0]) if listed else ""
    return sorted((r for r in oldest(listed) if execution(r) == of), key=ordinal)


def _run(record: Mapping[str, Any]) -> Iterator[str]:
    yield f"--- run, {record.get('status', '?')}"
    for item in items(_by_call(events_of(record))):
        yield f"{item.head}:"
        yield from (f"    {_ADDRESS.sub('0x…', line)}" for line in item.body.splitlines())


def _by_call(log: Sequence[Event], span: str = "") -> Iterator[Event]:
    """Yield the events of a run, those within a call before its result: calls that run at the same
    time do not mix.
    """
    calls = {e.call_id for e in log if isinstance(e, Call)}
    below: dict[str, list[Event]] = {}
    for event in log:
        place = event.span.removeprefix(span).lstrip("/").partition("/")[0]
        call = f"{span}/{place}" if span else place
        if event.span != span and call in calls:
            below.setdefault(call, []).append(event)
            continue
        if isinstance(event, Result) and event.span == span:
            within = below.pop(event.call_id, [])
            yield from (
                _by_call(within, event.call_id) if event.call_id.count("/") < DEEPEST else within
            )
        yield event
    yield from (event for rest in below.values() for event in rest)


def merge(base: Path, ours: Path, theirs: Path) -> bool:
    """Merge notebook files as a git merge driver does: the result replaces `ours`; return whether
    there was no conflict.

    A file that is no notebook, or one of a newer version, is merged as text. Raises UsageError when
    git is not installed.
    """
    old, mine, yours = (_read(path) for path in (base, ours, theirs))
    if mine is None or yours is None:
        return _merge_file([ours, base, theirs])
    agree(old := old or {"cells": []}, mine, yours)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("ours", "base", "theirs")]
        for path, nb in zip(paths, (mine, old, yours), strict=True):
            path.write_text(_dump(nb), encoding="utf-8", newline="\n")
        clean = _merge_file(paths)
        merged = paths[0].read_text(encoding="utf-8")
    if clean:
        try:
            nb = json.loads(merged)
        except ValueError:
            return False  # what each side did to the lines makes no notebook: ours stays
        notebook_file.lift(nb)
        merged = _dump(nb)
    ours.write_text(merged, encoding="utf-8", newline="\n")
    return clean


def _merge_file(paths: Sequence[Path]) -> bool:
    """Merge the third file into the first; return whether there was no conflict."""
    return (
        _git(
            [
                "git",
                "merge-file",
                "-q",
                "-L",
                "ours",
                "-L",
                "base",
                "-L",
                "theirs",
                *map(str, paths),
            ]
        ).returncode
        == 0
    )


def setup(folder: Path, *, filtered: bool = False) -> list[str]:
    """Install the drivers in the repository of `folder` and return what was done; `filtered` keeps
    records out of commits altogether.

    Raises UsageError when there is no repository, or no git.
    """
    found = _git(["git", "-C", str(folder), "rev-parse", "--show-toplevel"])
    if found.returncode:
        raise UsageError(f"{folder} is in no git repository.")
    root = Path(found.stdout.strip())
    # -P: git runs it in the repository, from where nothing is to be imported
    command = f'"{sys.executable}" -P -m agent_nb'
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
    """Return what sets nbstripout up, for the repository of `folder`, so that it gives cells other
    ids; nothing without git.
    """
    try:
        clean = _git(["git", "-C", str(folder), "config", "filter.nbstripout.clean"]).stdout
        root = _git(["git", "-C", str(folder), "rev-parse", "--show-toplevel"]).stdout.strip()
    except UsageError:
        return []
    hooks = Path(root or folder) / HOOKS
    listed = hooks.read_text(encoding="utf-8", errors="replace") if hooks.is_file() else ""
    places = {
        "git's filter nbstripout": clean.strip(),
        HOOKS: listed if "nbstripout" in listed else "",
    }
    effect = (
        "gives all cells new ids, so that their records are found by the texts of the cells only"
    )
    return [f"{place} {effect}" for place, text in places.items() if text and KEEP_ID not in text]


def _attribute(path: Path, line: str) -> str:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    if line in lines:
        return f"{path.name} has the line already"
    kept = [
        other for other in lines if not (other.startswith(f"{PATTERN} ") and f"={DRIVER}" in other)
    ]
    path.write_text("\n".join([*kept, line]) + "\n", encoding="utf-8", newline="\n")
    return f"added to {path.name}: {line}"


def _git(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  (git, with paths)
    except FileNotFoundError:
        raise UsageError("git is not installed, or not on the PATH.") from None


def _read(path: Path) -> dict[str, Any] | None:
    try:
        nb = ipynb.load(path)
    except UsageError:
        return None
    return None if metadata.newer((nb.get("metadata") or {}).get(KEY)) else nb


def _dump(nb: Mapping[str, Any]) -> str:
    return json.dumps(nb, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
