"""Notebooks with records in git: a readable diff, and a merge that keeps the runs of both sides.

Why: a record is long lines of JSON. Without these drivers a diff shows them, and two people who ran
different cells get a conflict.

Rules
- The diff shows each cell with its newest execution, then the newest ones of deleted cells. It has
  no ids of runs, times, tokens and outputs.
- The merge keeps runs that either side added, and drops those that either side removed.
- Outputs of a cell come whole from one side: the file is a notebook even where a conflict is left.
- A pager may show the text of the diff, so its control characters are escaped.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...events import Call, Event, Result
from ...record import (
    CellRecords,
    Notebook,
    NotebookRuns,
    Record,
    cell_id,
    events_of,
    list_cells,
    load_notebook,
    source_of,
    with_ids,
)
from ..notices import make_printable
from .cell_merge import add_ids, merge_notebooks, remove_ids
from .run_diff import list_comparable_parts
from .three_way_merge import merge_results

DEEPEST = 20  # levels of nested agents whose events are put in order
# the address in a repr, such as <A object at 0x7f…>
_ADDRESS = re.compile(r"(?<= at )0x[0-9a-fA-F]+(?=>)")


def diff_text(nb: Notebook) -> str:
    """Return the text of a notebook that git's diff compares."""
    return make_printable("\n".join(_diff_lines(nb))) + "\n"


def _diff_lines(nb: Notebook) -> Iterator[str]:
    """Yield the lines of the cells and of their runs."""
    nb = with_ids(nb)
    runs, used = NotebookRuns(nb).all_by_cell(), NotebookRuns(nb).used_calls()
    for number, cell in enumerate(list_cells(nb), 1):
        name = cell_id(cell)
        yield f"=== {cell.get('cell_type', '?')} cell {name or number}"
        yield from source_of(cell).splitlines()
        for record in CellRecords(runs.pop(name, ())).newest_execution(used.newest(name)):
            yield from _run_lines(record)
    for name, records in runs.items():
        if records:
            yield f"=== of a cell that is gone: {name}"
            for record in CellRecords(records).newest_execution():
                yield from _run_lines(record)


def _run_lines(record: Record) -> Iterator[str]:
    """Yield the comparable parts of a run as lines."""
    yield f"--- run, {record.get('status', '?')}"
    for part in list_comparable_parts(_order_by_call(events_of(record))):
        yield f"{part.head}:"
        yield from (f"    {_ADDRESS.sub('0x…', line)}" for line in part.body.splitlines())


def _order_by_call(log: Sequence[Event], span: str = "") -> Iterator[Event]:
    """Yield the events of the run at `span`, those of a sub-agent before the result of its call.

    The events of calls that ran at the same time thus stay apart.
    """
    calls = {e.call_id for e in log if isinstance(e, Call)}
    inner: dict[str, list[Event]] = {}  # call -> the events of its sub-agent so far
    for event in log:
        call = _call_of_span(event.span, span)
        if event.span != span and call in calls:
            inner.setdefault(call, []).append(event)
            continue
        if isinstance(event, Result) and event.span == span:
            events = inner.pop(event.call_id, [])
            is_deep = event.call_id.count("/") >= DEEPEST
            yield from events if is_deep else _order_by_call(events, event.call_id)
        yield event
    for events in inner.values():  # of calls without a result
        yield from events


def _call_of_span(span: str, around: str) -> str:
    """Return the call at `around` that led to `span`: `a/b` for `a/b/c` around `a`.

    The span of a sub-agent is the id of its call, which begins with the span around it.
    """
    call_id = span.removeprefix(around).lstrip("/").partition("/")[0]
    return f"{around}/{call_id}" if around else call_id


def merge_files(
    base: Path, ours: Path, theirs: Path, report: Callable[[str], object] = lambda conflict: None
) -> bool:
    """Merge notebook files as a git merge driver; return whether there was no conflict.

    The result replaces `ours`; `report` receives a sentence for each conflict of a notebook. The
    files are merged as text if ours or theirs is not a notebook, or has records of a newer format.
    Such a base counts as an empty notebook. Raises UsageError if git is not installed.
    """
    base_nb, our_nb, their_nb = (_read_notebook(path) for path in (base, ours, theirs))
    if our_nb is None or their_nb is None:
        return _merge_as_text([ours, base, theirs])
    versions = (base_nb or {"cells": []}, our_nb, their_nb)
    add_ids(versions)
    merge_results(*versions)
    merged, conflicts = merge_notebooks(versions, _merge_text)
    remove_ids(merged)
    NotebookRuns(merged).lift()
    ours.write_bytes(_dump_notebook(merged))
    for conflict in conflicts:
        report(conflict)
    return not conflicts


def _merge_text(base: str, ours: str, theirs: str) -> tuple[str, bool]:
    """Return the lines of three texts merged by git, and whether there was no conflict."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("ours", "base", "theirs")]
        for path, text in zip(paths, (ours, base, theirs), strict=True):
            path.write_bytes(text.encode("utf-8", "surrogatepass"))
        clean = _merge_as_text(paths)
        return paths[0].read_bytes().decode("utf-8", "surrogatepass"), clean


def _merge_as_text(paths: Sequence[Path]) -> bool:
    """Merge the files ours, base, theirs into the first; return whether there was no conflict."""
    labels = [word for label in ("ours", "base", "theirs") for word in ("-L", label)]
    return run_git(["git", "merge-file", "-q", *labels, *map(str, paths)]).returncode == 0


def run_git(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run git. Raises UsageError if it is not installed."""
    # git prints paths in UTF-8 on Windows, elsewhere as their bytes
    try:
        return subprocess.run(  # noqa: S603  (git, with paths)
            command, capture_output=True, encoding="utf-8", errors="surrogateescape", check=False
        )
    except FileNotFoundError:
        raise UsageError("git is not installed, or not on the PATH.") from None


def _read_notebook(path: Path) -> dict[str, Any] | None:
    """Return a notebook; None if the file is not one, or its records have a newer format."""
    try:
        nb = load_notebook(path)
    except UsageError:
        return None
    return None if NotebookRuns(nb).has_newer_format() else nb


def _dump_notebook(nb: Notebook) -> bytes:
    text = json.dumps(nb, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    # a lone surrogate has no UTF-8, but its escape in Python is also its escape in JSON
    return text.encode("utf-8", "backslashreplace")
